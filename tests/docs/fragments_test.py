"""A .inl file is a part of each file that includes it, so its first comment says who that is, what it expects there and
what it gives: the names in backticks behind "Gives" are in its text, or in that of a fragment that it includes, and so
are the macros behind "Expects". The patterns behind "Used by" are those of the files that name it in a directive."""

import fnmatch
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


def faults_of_users(text, users):
    """`users`: the files that include the fragment."""
    patterns = re.findall(r"[\w*]+\.\w+", field(first_comment(text)[0], "Used by") or "")
    return ([f"{user} is not named behind Used by" for user in users
             if not any(fnmatch.fnmatchcase(user, pattern) for pattern in patterns)]
            + [f"{pattern} behind Used by does not include it" for pattern in patterns if not fnmatch.filter(users, pattern)])


def users_of(file):
    """Files beside it, since a fragment is included from its own folder."""
    return sorted(other.name for other in file.parent.iterdir() if other.suffix in (".cpp", ".hpp", ".inl")
                  and re.search(rf'^#.*"{file.name}"', other.read_text(encoding="utf-8"), re.MULTILINE))


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
    def test_say_who_uses_them_and_what_they_expect_and_give(self):
        files = [file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.inl"))]
        if (ROOT / "plugins/cpu").is_dir():
            self.assertGreater(len(files), 20, "the files were not found")
        for file in files:
            with self.subTest(str(file.relative_to(ROOT))):
                text = file.read_text(encoding="utf-8")
                self.assertEqual(faults(text, file.parent) + faults_of_users(text, users_of(file)), [])

    def test_faults_are_found(self):
        whole = "// Adds.\n//\n// Expects  BITNET_LANES, floats.\n// Gives    `add`.\n\nint add() { return BITNET_LANES; }\n"
        self.assertEqual(faults(whole), [])
        self.assertEqual(faults(whole.replace("`add`", "`sub`")), ["sub is not in the text"])
        self.assertEqual(faults(whole.replace("BITNET_LANES, f", "BITNET_ISA, f")), ["BITNET_ISA is not in the text"])
        self.assertEqual(faults(whole.replace("// Gives", "// Has  ")), ["no field Gives"])
        self.assertEqual(faults("int a;\n"), ["no field Expects", "no field Gives"])

    def test_wrong_users_are_found(self):
        text = "// Adds.\n//\n// Used by  sum_*.cpp,\n//          all.hpp.\n// Expects  nothing.\n"
        self.assertEqual(faults_of_users(text, ["all.hpp", "sum_neon.cpp"]), [])
        self.assertEqual(faults_of_users(text, ["all.hpp", "more.cpp", "sum_neon.cpp"]), ["more.cpp is not named behind Used by"])
        self.assertEqual(faults_of_users(text, ["sum_neon.cpp"]), ["all.hpp behind Used by does not include it"])


if __name__ == "__main__":
    unittest.main()
