"""An identifier or a path in backticks, in a page or in a comment, is in the tree.

Read are comments of C, C++, CUDA and Python, and pages, except docs/adr and the change logs, which speak of what
was, and the page of names that are reserved. An identifier is a word in snake_case with an underscore, with or without :: and ().
A name counts as there when a file other than a page has it outside backticks. a::b counts as there when a file
of C or C++ outside tests/ has it as it is, or declares a and has b. a::b is looked for in the diagrams of pages, too.
"""

import itertools
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = (".c", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".inl", ".py")
IDENTIFIER = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+|[a-z_0-9]+(?:::[a-z_0-9~]+)+")
QUALIFIED = re.compile(r"\b[a-z_0-9]+(?:::[a-z_0-9]+)+")
SCOPE = re.compile(r"\b(?:namespace|struct|class|union|enum)\s+([\w:]+)\s*(?:final\s*)?[:{]|\}\s*(\w+)\s*;")
ASIDE = re.compile(r'"(?:[^"\\\n]|\\.)*"|//.*')
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r'(?://|#|^\s*\*|""")(.*)')
PATTERN = re.compile(r"[<>{}$*?|=…: ]|NAME")

# What belongs to others: the name, whose it is
OF_OTHERS = {
    "build_bitnet": "a function of llama.cpp",
    "build_number": "a column of llama-bench",
    "clean_spaces": "an option of llama.cpp's tokenizer",
    "generation_settings": "a member that llama-server has and bitnet serve leaves out",
    "id_slot": "a member that llama-server has and bitnet serve leaves out",
    "libboost_program_options": "a library's file",
    "models/bitnet": "a folder of transformers",
    "models/qwen3_5": "a folder of transformers",
    "snake_case": "a way of writing",
}
# Its names are in no header until they are built.
RESERVED = "docs/reference/abi-reserved.md"
# Where a path in a page may begin, beside the root and the page's own folder
BEGINS = ("tests", "host/src", "core/src")


def tracked():
    done = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True, check=False)
    if done.returncode == 0 and done.stdout:
        return done.stdout.split("\0")[:-1]
    return [str(p.relative_to(ROOT)) for p in ROOT.rglob("*")
            if p.is_file() and p.relative_to(ROOT).parts[0] not in ("build", ".git")]


def spans_of(name, content):
    """What stands in backticks: of a page anywhere, of code in comments."""
    lines = content.split("\n")
    if not name.endswith(".md"):
        lines = [found[1] for line in lines if (found := COMMENT.search(line))]
    spans = [span for line in lines for span in re.findall(r"`([^`]+)`", line)]
    if name.endswith(".md"):
        spans += [found for language, block in BLOCK.findall(content) if language in ("", "text")
                  for found in QUALIFIED.findall(block)]
    return spans


def scopes_of(code):
    """The names of namespaces and types that a file of C or C++ declares."""
    return {word for found in SCOPE.findall(code) for word in (found[0] or found[1]).split("::")}


class Tree:
    def __init__(self, files):
        """files: {path: text}."""
        self.paths = set(files) | {str(folder) for f in files for folder in pathlib.PurePath(f).parents}
        self.words = {part for f in files for part in pathlib.PurePath(f).parts}
        self.words |= {pathlib.PurePath(f).stem for f in files}
        self.tops = {f.split("/")[0] for f in files if "/" in f}
        self.qualified, self.members = set(), {}
        for name, content in files.items():
            if not name.endswith(".md"):
                self.words.update(re.findall(r"\w+", re.sub(r"`[^`\n]*`", " ", content)))
            if name.endswith(CODE) and not name.endswith(".py") and not name.startswith("tests/"):
                self.add_scopes(ASIDE.sub("", content))

    def add_scopes(self, code):
        names = [found.split("::") for found in QUALIFIED.findall(code)]
        self.qualified |= {pair for name in names for pair in itertools.pairwise(name)}
        words = set(re.findall(r"\w+", code))
        for scope in scopes_of(code):
            self.members.setdefault(scope, set()).update(words)

    def has_pair(self, scope, member):
        return (scope, member) in self.qualified or member in self.members.get(scope, ())

    def misses(self, name, span):
        if span in OF_OTHERS:
            return False
        if IDENTIFIER.fullmatch(span.removesuffix("()")):
            words = span.removesuffix("()").split("::")
            return (any(word not in self.words for word in words)
                    or not all(self.has_pair(*pair) for pair in itertools.pairwise(words)))
        path = re.sub(r"#.*", "", span).rstrip("/")
        if not name.endswith(".md") or "/" not in path or PATTERN.search(path) or path.split("/")[0] not in self.tops:
            return False
        places = [path, str(pathlib.PurePath(name).parent / path), *(f"{begin}/{path}" for begin in BEGINS)]
        return not any(place in self.paths for place in places)


class Identifiers(unittest.TestCase):
    def test_planted_identifiers_are_judged(self):
        tree = Tree({
            "core/a.cpp": "namespace x::core {\nint n_rows() { return has_it; }  // `not_code`\n}",
            "core/b.hpp": "typedef struct { int n_columns; } table;  // n_rows\nauto z = \"n_rows\";\nauto y = std::min(x, x);",
            "docs/page.md": "`n_rows`"})
        for name, span, expected in [
                ("docs/page.md", "n_rows", False), ("docs/page.md", "n_rows()", False),
                ("docs/page.md", "n_cells", True), ("docs/page.md", "core::n_rows", False),
                ("docs/page.md", "x::core::n_rows()", False), ("docs/page.md", "table::n_columns", False),
                ("docs/page.md", "std::min", False), ("docs/page.md", "core::n_columns", True),
                ("docs/page.md", "table::n_rows", True), ("core/a.cpp", "not_code", True),
                ("docs/page.md", "core/a.cpp", False), ("docs/page.md", "core/b.cpp", True),
                ("docs/page.md", "core/*.cpp", False), ("docs/page.md", "elsewhere/b.cpp", False),
                ("docs/page.md", "id_slot", False)]:
            self.assertEqual(tree.misses(name, span), expected, span)
        self.assertEqual(spans_of("a.cpp", "auto x = \"`no_comment`\";\nint y;  // `a_comment`"), ["a_comment"])
        self.assertEqual(spans_of("a.md", "`one` and `two`"), ["one", "two"])
        self.assertEqual(spans_of("a.md", "```text\n └─ core::n_rows\n```\n```c\nstd::min\n```\n"), ["core::n_rows"])

    def test_identifiers_on_the_pages_exist(self):
        files = {}
        for name in tracked():
            try:
                files[name] = (ROOT / name).read_text(encoding="utf-8")
            except (UnicodeDecodeError, OSError):
                continue
        tree, found, looked, used = Tree(files), [], 0, set()
        for name, content in files.items():
            not_read = "CHANGELOG" in name or name.startswith("docs/adr/") or name == RESERVED
            if not_read or not name.endswith((*CODE, ".md")):
                continue
            for span in spans_of(name, content):
                looked += 1
                used.add(span)
                if tree.misses(name, span):
                    found.append(f"{name}: `{span}`")
        self.assertGreater(looked, 3000)
        self.assertEqual(found, [], "names that no file of the tree has")
        self.assertEqual(sorted(set(OF_OTHERS) - used), [], "nothing uses these")


if __name__ == "__main__":
    unittest.main()
