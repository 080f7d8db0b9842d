"""Every relative link leads to a page, and to a heading in it; every page is linked from another."""

import pathlib
import re
import unittest

import headings

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def links(page):
    inside_code = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
    for target in LINK.findall(inside_code.sub("", page.read_text(encoding="utf-8"))):
        if "://" not in target and not target.startswith("mailto:"):
            path = target.split("#")[0]
            yield target, (page.parent / path).resolve() if path else page.resolve()


class Links(unittest.TestCase):
    def test_lead_somewhere(self):
        for page in PAGES:
            for target, path in links(page):
                with self.subTest(f"{page.relative_to(ROOT)} -> {target}"):
                    self.assertTrue(path.exists())
                    heading = target.partition("#")[2]
                    if heading:
                        self.assertIn(heading, headings.of(path))

    def test_every_page_is_reached(self):
        reached, waiting = set(), [ROOT / "README.md"]
        while waiting:
            page = waiting.pop()
            if page in reached or not page.exists():
                continue
            reached.add(page)
            if page.is_dir():
                waiting += page.glob("*.md")
            elif page.suffix == ".md":
                waiting += [path for _, path in links(page)]
        for page in PAGES:
            with self.subTest(str(page.relative_to(ROOT))):
                self.assertIn(page, reached)


if __name__ == "__main__":
    unittest.main()
