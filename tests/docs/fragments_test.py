"""A .inl file is a part of each file that includes it, so its first comment says what it expects there and what it
gives: the names in backticks behind "Gives" are in its text, or in that of a fragment that it includes, and so are the
macros behind "Expects"."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("abi", "common", "core", "host", "plugins", "tests")


def first_comment(text):
    """Its lines without the slashes, and the rest of the text."""
    lines = text.splitlines()
    n = next((i for i, line in enumerate(lines) if not line.startswith("//")), len(lines))
    return [line[2:].rstrip() for line in lines[:n]], "\n".join(lines[n:])


def field(comment, name):
    """What stands behind a name in the comment, up to the next name, blank line or end; None without it."""
    begin = next((i for i, line in enumerate(comment) if re.match(rf" {name}(?: |$)", line)), None)
    if begin is None:
        return None
    rest = [re.sub(rf"^ {name}", "", comment[begin])]
    for line in comment[begin + 1:]:
        if not line.startswith("  "):
            break
        rest.append(line)
    return " ".join(rest)


def code_of(text):
    return re.sub(r"//.*", "", text)


def faults(text, folder=None):
    comment, rest = first_comment(text)
    for name in re.findall(r'^#include "(\w+\.inl)"', rest, re.MULTILINE):
        rest += first_comment((folder / name).read_text(encoding="utf-8"))[1]
    expects, gives = field(comment, "Expects"), field(comment, "Gives")
    out = [f"no field {name}" for name, said in (("Expects", expects), ("Gives", gives)) if not said]
    known = set(re.findall(r"\w+", code_of(rest)))
    named = set(re.findall(r"`(\w+)`", gives or "")) | set(re.findall(r"\bBITNET_[A-Z_]+\b(?!\*)", expects or ""))
    return out + [f"{name} is not in the text" for name in sorted(named - known) if not name.endswith("_")]


class Fragments(unittest.TestCase):
    def test_say_what_they_expect_and_give(self):
        files = [file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.inl"))]
        if (ROOT / "plugins/cpu").is_dir():
            self.assertGreater(len(files), 20, "the files were not found")
        for file in files:
            with self.subTest(str(file.relative_to(ROOT))):
                self.assertEqual(faults(file.read_text(encoding="utf-8"), file.parent), [])

    def test_faults_are_found(self):
        whole = "// Adds.\n//\n// Expects  BITNET_LANES, floats.\n// Gives    `add`.\n\nint add() { return BITNET_LANES; }\n"
        self.assertEqual(faults(whole), [])
        self.assertEqual(faults(whole.replace("`add`", "`sub`")), ["sub is not in the text"])
        self.assertEqual(faults(whole.replace("BITNET_LANES, f", "BITNET_ISA, f")), ["BITNET_ISA is not in the text"])
        self.assertEqual(faults(whole.replace("// Gives", "// Has  ")), ["no field Gives"])
        self.assertEqual(faults("int a;\n"), ["no field Expects", "no field Gives"])


if __name__ == "__main__":
    unittest.main()
