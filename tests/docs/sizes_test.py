"""A function is one thought, and a file of what is shipped one concept: they have at most 60 and 500 lines.

A function's signature counts. Read from how the formatter lays code out: a function ends where its signature began."""

import ast
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("abi", "common", "core", "docs", "host", "models", "plugins", "python", "scripts", "tests")
C_LIKE = (".h", ".hpp", ".c", ".cpp", ".inl", ".cu", ".cuh")
MOST_LINES = 60
MOST_LINES_OF_A_FILE = 500
SHIPPED = ("abi", "common", "core", "host", "plugins", "python/src", "tests/conformance")
LARGER = {  # and why
    "abi/include/bitnet/bitnet.h": "the contract with programs, in one file",
    "host/src/settings/option_table.cpp": "a table",
    "plugins/sdk/include/bitnet/sdk/interpreter/program.hpp": "one class: what a graph became, and how it runs",
}
LONGER = {  # and why
    "core/src/tokenizer/pre_rules.cpp:rule_table": "a table",
    "tests/fossils/program.c:main": "one call after the other, as a program that embeds us makes them",
    "tests/reference/make_models.py:specs": "a table",
}
# Functions may stand in these.
INSIDE = re.compile(r"\s*(?:(?:const|constexpr|static|typedef) )*(?:namespace|class|struct|union|enum|extern \"C\")\b")
TABLE = re.compile(r"(?:=|\()\s*\{$")
NAME = re.compile(r"([~\w]+|operator\W+)\s*\(")
TEST = re.compile(r"\s*TEST(?:_[FP])?\(\w+, (\w+)\)")


def braces(line):
    """How many more are opened than closed."""
    code = re.sub(r""" "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])' | //.* """, "", line, flags=re.VERBOSE)
    return code.count("{") - code.count("}")


def functions_of_c(lines):
    """(name, how many lines) of each; what is inside of one counts with it."""
    begin, number = 0, 0
    while number < len(lines):
        line = re.sub(r"(?:^|\s)//.*", "", lines[number]).rstrip()
        number += 1
        if not line.endswith("{") or line.startswith(" * "):  # also of an example in a comment
            if not line or line.endswith((";", "}", ":", ">")) or line.lstrip().startswith(("#", "*", "/*")):
                begin = number
            continue
        said, first, begin = " ".join(lines[begin:number]), begin, number
        if INSIDE.match(said):
            continue
        table = TABLE.search(line)
        end = re.compile(re.match(" *", lines[first]).group() + r"\}")
        open_braces = max(braces(said), 1)
        while number < len(lines) and not end.match(lines[number]):
            open_braces += braces(lines[number])
            if table and open_braces <= 0:  # its last row and its end in one line
                break
            number += 1
        number = begin = number + 1
        if "(" in said and not table:
            name = TEST.match(said) or NAME.search(said)
            yield name.group(1) if name else said, number - first


def functions_of_python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.end_lineno - node.lineno + 1


def is_script(file):
    """Whether it is a command for developers in Python, whose names have no suffix."""
    return not file.suffix and file.parent == ROOT / "scripts" and file.read_bytes().startswith(b"#!/usr/bin/env python3\n")


def functions():
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*")):
            if "__pycache__" in file.parts or not file.is_file():
                continue
            if file.suffix in C_LIKE:
                found = functions_of_c(file.read_text(encoding="utf-8").splitlines())
            elif file.suffix == ".py" or is_script(file):
                found = functions_of_python(file.read_text(encoding="utf-8"))
            else:
                continue
            for name, lines in found:
                yield f"{file.relative_to(ROOT)}:{name}", lines


class Functions(unittest.TestCase):
    def test_are_short(self):
        all_of_them = list(functions())
        self.assertGreater(len(all_of_them), 5000, "the functions were not found")
        long = {name: lines for name, lines in all_of_them if lines > MOST_LINES}
        self.assertEqual({n: lines for n, lines in long.items() if n not in LONGER}, {})
        self.assertEqual(set(LONGER) - set(long), set(), "no longer so long")

    def test_are_found_beside_tables_and_classes(self):
        code = """\
int a() {
  if (b()) {
  }
}

template <class T>
class c : public d<e(0)> {
 public:
  c(int i)
      : i_(i) {
  }
  void f(int x,
         int y) const {
    for (;;) {
    }
  }
  int i_;
};

const row rows[] = {
    {f(1), [](int i) {
       return i;
     }},
};
const row all[] = {
    {1}, {2}};
TEST_F(g, is_h) {
}
"""
        self.assertEqual(list(functions_of_c(code.splitlines())), [("a", 4), ("c", 3), ("f", 5), ("is_h", 2)])


class Files(unittest.TestCase):
    def test_are_short(self):
        lines = {}
        for folder in SHIPPED:
            for file in sorted((ROOT / folder).rglob("*")):
                if file.suffix in (*C_LIKE, ".py", ".comp", ".glsl", ".cl", ".wgsl") and file.is_file():
                    lines[str(file.relative_to(ROOT))] = len(file.read_text(encoding="utf-8").splitlines())
        self.assertGreater(len(lines), 500, "the files were not found")
        long = {name: n for name, n in lines.items() if n > MOST_LINES_OF_A_FILE}
        self.assertEqual({name: n for name, n in long.items() if name not in LARGER}, {})
        self.assertEqual(set(LARGER) - set(long), set(), "no longer so long")


if __name__ == "__main__":
    unittest.main(verbosity=2)
