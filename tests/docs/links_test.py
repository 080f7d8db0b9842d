"""Every relative link leads to a page, and to a heading in it; every page is linked from another; lists and tables are whole."""

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


class Lists(unittest.TestCase):
    def test_each_entry_has_its_line_and_one_mark(self):
        for page in PAGES:
            for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
                with self.subTest(f"{page.relative_to(ROOT)}:{number}"):
                    self.assertNotRegex(line, r"^\s*(?:[-*]|\d+\.) (?:[-*]|\d+\.) ", "two marks")
                    self.assertNotRegex(line, r"[a-z`)][.;:] - [*`a-z]", "an entry within a line")

    def test_rows_of_a_table_have_the_cells_of_its_head(self):
        for page in PAGES:
            cells, code = 0, False
            for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
                code ^= line.lstrip().startswith("```")
                if code or not line.startswith("|"):
                    cells = 0
                    continue
                found = len(re.findall(r"(?<!\\)\|", line))
                cells = cells or found
                with self.subTest(f"{page.relative_to(ROOT)}:{number}"):
                    self.assertEqual(found, cells)


class Links(unittest.TestCase):
    def test_targets_and_their_headings_exist(self):
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

    def test_the_list_of_decisions_has_their_headings(self):
        """A further sentence of a row names another page, such as the one that supersedes it."""
        folder = ROOT / "docs/adr"
        rows = re.findall(r"^- \[(\d{4})\]\((\S+)\): (.*)$", (folder / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
        pages = sorted(file.name for file in folder.glob("0*.md"))
        self.assertGreater(len(pages), 80)
        self.assertEqual([file for _, file, _ in rows], pages)
        for number, file, said in rows:
            with self.subTest(file):
                heading = (folder / file).read_text(encoding="utf-8").split("\n", 1)[0]
                self.assertTrue(heading.startswith(f"# {number}: "), heading)
                said_of_it, _, more = said.partition(heading.removeprefix(f"# {number}: ") + ".")
                self.assertEqual(said_of_it, "", f"the row must begin with the heading: {said}")
                self.assertRegex(more, r"^(?: .*\b\d{4}\b.*\.)?$")


if __name__ == "__main__":
    unittest.main()
