"""What comments cite exists: pages, headings, files, rules. And no formatter has broken them."""

import io
import pathlib
import re
import tokenize
import unittest

import headings

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("abi", "cmake", "common", "core", "docs", "host", "models", "plugins", "python",
           "scripts", "tests")
C_LIKE = (".h", ".hpp", ".c", ".cpp", ".inl", ".cu", ".cuh", ".glsl", ".comp", ".cl")
INCLUDED = (ROOT / "abi/include", ROOT / "plugins/sdk/include")
FORMATTED = (".h", ".hpp", ".c", ".cpp", ".cu", ".cuh", ".inl")
MOST_COLUMNS = 100
FIELD = re.compile(r"(?://|\*|/\*) ([A-Z][A-Za-z]*(?: [a-z]+)?)  +(?=\S)")
LONGEST_FIELD = re.compile(r"(?://|\*) [A-Z][A-Za-z]* (?=\S)")  # leaves room for one blank


def at(file, number, why):
    return f"{file.relative_to(ROOT)}:{number}: {why}"


def files():
    for folder in FOLDERS:
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and (file.suffix in (*C_LIKE, ".py", ".cmake", ".sh", ".rs")
                                   or file.name == "CMakeLists.txt" or file.parent.name == "scripts"):
                if "__pycache__" not in file.parts and file.name != pathlib.Path(__file__).name:
                    yield file


def of_c(text):
    """(line number, text from // or * on) for each line that is, or ends in, a comment."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        at = re.search(r"^\s*(\*)(?!/)" if inside else r"(?<![:\"'/])(//|/\*)", line)
        inside = ("/*" in line or inside) and "*/" not in line
        if at:
            yield number, line[at.start(1):]


def of_python(text):
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_docstring = token.type == tokenize.STRING and before in (
            tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
        if token.type == tokenize.COMMENT or is_docstring:
            yield from enumerate(token.string.splitlines(), token.start[0])
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            before = token.type


def of_shell(text):
    for number, line in enumerate(text.splitlines(), 1):
        at = re.search(r"(^|\s)#[ !]", line)
        if at:
            yield number, line[at.start():]


def comments(file):
    text = file.read_text(encoding="utf-8")
    if file.suffix in (*C_LIKE, ".rs"):
        return list(of_c(text))
    return list(of_python(text) if file.suffix == ".py" else of_shell(text))


def names_of_fields(texts):
    """First words that stand before two blanks somewhere: Shapes, Owner, Errors ..."""
    found = [FIELD.match(text) for text in texts]
    return {field.group(1) for field in found if field}


def wrong_citations(file, text):
    for page, heading in re.findall(r"([\w./-]*\w\.md)(#[\w-]+)?", text):
        place = next((base / page for base in (ROOT, file.parent) if (base / page).is_file()), None)
        if place is None:
            yield f"there is no page {page}"
        elif heading and heading[1:] not in headings.of(place):
            yield f"{page} has no heading {heading}"
    folders = "bitnet/abi|bitnet/sdk|" + "|".join(FOLDERS)
    for path in re.findall(rf"(?<![\w/])((?:{folders})/[\w./-]*\w\.\w+)\b", text):
        if not any((base / path).exists() for base in (ROOT, *INCLUDED)):
            yield f"there is no file {path}"
    for rule in re.findall(r"\bBR-\d+\b", text):
        if f"| {rule} |" not in (ROOT / "docs/reference/backend-rules.md").read_text(encoding="utf-8"):
            yield f"there is no rule {rule}"
    for number in re.findall(r"\bADR (\d{4})\b", text):
        if not list((ROOT / "docs/adr").glob(f"{number}-*.md")):
            yield f"there is no decision {number}"


class Citations(unittest.TestCase):
    def test_pages_and_headings_in_comments_exist(self):
        wrong, headings_cited = [], 0
        for file in files():
            for number, text in comments(file):
                headings_cited += ".md#" in text
                wrong += [at(file, number, why) for why in wrong_citations(file, text)]
        self.assertEqual(wrong, [])
        self.assertGreater(headings_cited, 30, "citations are not recognised any more")

    def test_sections_are_of_something_published(self):
        """A section that only has a number is one that a reader cannot find."""
        wrong = []
        for file in files():
            before = ""
            for number, text in comments(file):
                if (re.search(r"§|\bsections? \d", text)
                        and not re.search(r"RFC \d|arXiv:|https://", before + text)):
                    wrong.append(at(file, number, "of what is this a section?"))
                before = text
        self.assertEqual(wrong, [])


class Layout(unittest.TestCase):
    """clang-format must not wrap comments: it knows nothing of their columns."""

    @classmethod
    def setUpClass(cls):
        cls.of_file = {file: comments(file) for file in files() if file.suffix in FORMATTED}
        cls.fields = names_of_fields(text for lines in cls.of_file.values() for _, text in lines)

    def blocks(self):
        """(file, lines) for each run of whole lines of comment."""
        for file, lines in self.of_file.items():
            whole = file.read_text(encoding="utf-8").splitlines()
            block = []
            for number, text in lines:
                alone = whole[number - 1].strip() == text.strip()
                if block and not (alone and block[-1][0] == number - 1):
                    yield file, block
                    block = []
                if alone:
                    block.append((number, text))
            if block:
                yield file, block

    def test_fields_are_known(self):
        self.assertLessEqual({"Shapes", "Errors", "Owner", "Threads", "Source"}, self.fields)

    def test_lines_are_short(self):
        wrong = []
        for file, lines in self.of_file.items():
            whole = file.read_text(encoding="utf-8").splitlines()
            wrong += [at(file, number, f"has more than {MOST_COLUMNS} columns")
                      for number, text in lines if len(whole[number - 1]) > MOST_COLUMNS
                      and "https://" not in text and "NOLINT" not in text]
        self.assertEqual(wrong, [])

    def test_fields_are_whole(self):
        wrong = []
        for file, block in self.blocks():
            column = None  # of the fields' text in this paragraph
            for number, text in block:
                begins, long = FIELD.match(text), LONGEST_FIELD.match(text)
                if not begins and long and long.end() == column:
                    begins = long
                inset = re.match(r"(?://|\*)  +\S", text)
                joined = re.search(r"\S ([A-Z][a-z]+)  +\S", text[3:])
                if column is not None and not begins and not inset and len(text) > 3:
                    wrong.append(at(file, number, "is of a field, but not set in like its other lines"))
                if joined and joined.group(1) in self.fields:
                    wrong.append(at(file, number, f"the field {joined.group(1)} begins in it"))
                column = begins.end() if begins else column if inset else None
        self.assertEqual(wrong, [])

    def test_no_word_stands_alone(self):
        """A word or two behind a full line, and the rest set in deeper: a table was cut."""
        wrong = []
        for file, block in self.blocks():
            for (_, full), (number, text), (_, rest) in zip(block, block[1:], block[2:]):
                inset = [len(line) - len(re.sub(r"^(//|\*) *", "", line)) for line in (text, rest)]
                words = text.split()[1:]
                if (len(full) >= 80 and 0 < len(words) <= 2 and inset[0] < inset[1]
                        and not re.search(r"[.:;,)]$|  \S", text[3:].strip())):
                    wrong.append(at(file, number, f"'{' '.join(words)}' belongs to the next line"))
        self.assertEqual(wrong, [])

    def test_rulers_end_their_line(self):
        wrong = [at(file, number, "belongs behind the title above")
                 for file, block in self.blocks()
                 for (_, title), (number, text) in zip(block, block[1:])
                 if title.startswith("// ----") and re.fullmatch(r"// -{8,}", text)]
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
