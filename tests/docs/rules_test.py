"""The rules of a backend cite codes, tests and fakes that exist; no plugin's code is without a rule."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "docs/reference/backend-rules.md"
STAGES = {"i", "p", "l", "r", "reload", "-"}
# Codes of which each is a rule's; those of a manifest and of a selection are not the plugin's fault.
OF_PLUGINS = ("BN-I-", "BN-A-", "BN-P-")


def rows():
    """(number, stages, codes, tests) for each row of the page's tables."""
    for line in RULES.read_text(encoding="utf-8").splitlines():
        if re.match(r"\| *BR-", line):
            yield tuple(cell.strip() for cell in line.strip("| ").split(" | "))


def names(cell):
    """What a cell names between backticks; a dash is nothing."""
    rest = re.sub(r"`[^`]+`", "", cell).strip()
    if rest not in ("", "-"):
        raise ValueError(f"'{rest}' is neither a name in backticks nor a dash")
    return re.findall(r"`([^`]+)`", cell)


def fakes():
    """Patterns of the fakes that CMake builds: fake-crash-${place} is fake-crash-[a-z-]+."""
    text = (ROOT / "tests/fakes/CMakeLists.txt").read_text(encoding="utf-8")
    made = re.findall(r"^ *bitnet_(?:add|patch)\w*_fake\(([^\s)]+)|^ *bitnet_add_fake\(([^\s)]+)"
                      r"|^ *add_custom_target\(fake-([^\s)]+)", text, re.MULTILINE)
    patterns = {re.sub(r"\$\{\w+\}", "[a-z-]+", "".join(groups)) for groups in made}
    return patterns - {"[a-z-]+"}  # of the functions themselves


def tests_text():
    """All of tests/ but the fakes and the documentation's own."""
    return "\n".join(file.read_text(encoding="utf-8") for kind in ("*.cpp", "*.py")
                   for file in (ROOT / "tests").rglob(kind)
                   if file.parent.name not in ("fakes", "docs"))


def codes_beside(fake, text):
    """The codes in the rows that `text` has of a fake: those shortly behind its name."""
    behind = [text[at.end():at.end() + 260] for at in re.finditer(f'"{fake}"', text)]
    return set(re.findall(r'"(BN-[A-Z-]+)"', "".join(behind)))


class Rules(unittest.TestCase):
    def test_numbers_have_no_gap_and_are_unique(self):
        numbers = [number for number, *_ in rows()]
        self.assertGreater(len(numbers), 30)
        wanted = [f"BR-{i:02}" for i in range(1, len(numbers) + 1)]
        self.assertEqual(sorted(numbers), wanted, "a number is missing or there twice")

    def test_each_row_names_stages_that_exist(self):
        for row in rows():
            with self.subTest(row[0]):
                self.assertEqual(len(row), 5)
                found = {word.split()[0] for word in row[2].split(", ") if "warning" not in word}
                self.assertLessEqual(found, STAGES)

    def test_each_code_of_plugins_has_a_rule(self):
        known = set(re.findall(r'"(BN-[A-Z-]+)"',
                               (ROOT / "core/src/plugin/codes/codes.hpp").read_text(encoding="utf-8")))
        cited = {code for row in rows() for code in names(row[3])}
        self.assertEqual(cited - known, set(), "codes that there are not")
        owed = {code for code in known if code.startswith(OF_PLUGINS)}
        self.assertGreater(len(owed), 30)
        self.assertEqual(owed - cited, set(), "codes without a rule")

    def test_each_proof_exists(self):
        built, used = fakes(), tests_text()
        self.assertGreater(len(built), 60)
        for row in rows():
            for proof in names(row[4]):
                with self.subTest(f"{row[0]} {proof}"):
                    if proof.startswith("fake-"):
                        name = proof.removeprefix("fake-")
                        self.assertTrue(any(re.fullmatch(made, name) for made in built),
                                        "no such fake is built")
                        expected = set(names(row[3]))
                        self.assertTrue(expected & codes_beside(name, used),
                                        f"no test has it beside one of {sorted(expected)}")
                        continue
                    file, _, case = proof.partition(":")
                    self.assertTrue((ROOT / "tests" / file).is_file(), "no such file")
                    text = (ROOT / "tests" / file).read_text(encoding="utf-8")
                    found = re.search(rf"\bTEST(_F|_P)?\(\w+, {case}\)", text)
                    self.assertTrue(not case or found, "no such case")


if __name__ == "__main__":
    unittest.main()
