"""bench --report in a real browser: charts with every row, nothing cut off, and nothing loaded or run."""

import os
import pathlib
import unittest

import browser
import support

QUICK = ("-p", "8", "-n", "4", "-r", "2", "--ceiling-mb", "8", "-d", "0,16,32")

# Texts of charts that extend beyond the drawing, in its own units.
CUT_OFF = """[...document.querySelectorAll('svg')].flatMap(svg => {
  const {width, height} = svg.viewBox.baseVal;
  return [...svg.querySelectorAll('text')].filter(text => {
    const box = text.getBBox();
    return box.x < 0 || box.y < -1 || box.x + box.width > width || box.y + box.height > height + 1;
  }).map(text => text.textContent); })"""


class File(browser.Page):
    """A page that has no script, so that it does not say when it is ready."""

    def go(self, url):
        self.call("Page.navigate", url=url)
        self.wait("location.protocol === 'file:' && document.readyState === 'complete'", "the page is loaded")


@support.needs_backend
class Report(support.Case):
    def write(self, *words):
        self.ok("bench", *words, "--report", "page.html")
        return pathlib.Path(self.path("page.html"))

    @unittest.skipUnless(browser.CHROMIUM, "there is no chromium")
    def test_the_page_renders_in_a_browser(self):
        page = self.write(*QUICK)
        chromium = browser.Browser()
        self.addCleanup(chromium.close)
        for width, dark in ((1280, False), (390, True)):
            with self.subTest(width=width, dark=dark):
                tab = File(chromium, page.as_uri(), width=width, dark=dark)
                titles = tab.js("[...document.querySelectorAll('h2')].map(x => x.textContent)")
                self.assertEqual(titles, ["Throughput", "Share of the roofline", "Depth of the context", "Time of a repetition",
                                          "Numbers"])
                self.assertEqual(tab.js("document.querySelector('svg').querySelectorAll('rect').length"), 6)
                self.assertEqual(tab.js("document.querySelectorAll('polyline').length"), 2)
                self.assertEqual(tab.js("document.querySelectorAll('tr').length"), 7)
                self.assertEqual(tab.js(CUT_OFF), [])
                self.assertLessEqual(tab.js("document.documentElement.scrollWidth"), width, "charts scroll for themselves")
                self.assertEqual(tab.js("performance.getEntriesByType('resource').length"), 0)
                self.assertEqual(tab.js("document.scripts.length"), 0)
                back = tab.js("getComputedStyle(document.body).backgroundColor")
                self.assertEqual(back, "rgb(21, 24, 28)" if dark else "rgb(255, 255, 255)")
                self.assertEqual(tab.troubles, [])

    def test_each_kind_of_row_has_its_section(self):
        for words, title in ((("--parallel", "1,2", "-p", "4", "-n", "4", "-r", "1", "--ceiling-mb", "0"), "Requests at once"),
                             (("--kernel", "matmul_i2s", "--shape", "64x256", "-r", "2", "--ceiling-mb", "8"), "Share of the roofline")):
            with self.subTest(title):
                self.assertIn(f"<h2>{title}</h2>", self.write(*words).read_text(encoding="utf-8"))

    def test_an_unwritable_report_fails_after_the_results(self):
        words = ("bench", "-p", "0", "-n", "2", "-r", "1", "--ceiling-mb", "0")
        done = self.bitnet(*words, "--report", "/no/such/folder/x.html")
        self.assertEqual((done.code, len(done.errors)), (1, 1), done)
        self.assertIn("| tg2 |", done.text, "the results are printed all the same")
        self.rejected(2, "model", *words, "--report", support.demo_model())
        self.rejected(2, "--report is of", "bench", "--list", "--report", "x.html")
        self.assertFalse(os.path.exists(self.path("x.html")))
        self.path("old.html", "old")
        self.ok(*words, "--report", "old.html")
        self.assertIn("<svg", pathlib.Path(self.path("old.html")).read_text(encoding="utf-8"))


if __name__ == "__main__":
    support.main()
