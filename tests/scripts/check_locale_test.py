"""scripts/check-locale must see each planted fault and nothing else."""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/check-locale"


def faults_of(content):
    """By the script's own function: a process for each row would take a minute."""
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("check_locale", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_locale", loader))
    loader.exec_module(module)
    return module.faults_of(content)


# What a file has, the fault that is found (None: none), why
ROWS = [
    ('printf("%g", x);', "printf", "the plainest"),
    ('std::snprintf(text, sizeof text, "%.*f", digits, x);', "printf", "precision as an argument"),
    ('fprintf(stderr,\n        "%s"\n        "%8.3lf", name, x);', "printf", "a format of two lines"),
    ('vsnprintf(out, size, "%a", list);', "printf", "hexadecimal ones have a point, too"),
    ("printf(\"%'d\", n);", "printf", "thousands"),
    ('printf("100%% of %d files", n);', None, "a percent sign before f"),
    ('printf("%08x %s %zu", a, b, c);', None, "whole numbers and texts"),
    ('sscanf(text, "%f", &x);', "scanf", "reading"),
    ('sscanf(text, "OpenCL %u.%u", &a, &b);', None, "whole numbers are read alike everywhere"),
    ("x = strtod(text, &end);", "number", "C"),
    ("x = std::atof(text);", "number", "C++"),
    ("x = std::stof(text);", "number", "of a string"),
    ("n = std::stoull(text);", None, "of a whole number"),
    ("double error = 1; s = std::to_string(error);", "to_string", "a name that is a double in this file"),
    ("s = std::to_string(1.5 * n);", "to_string", "a literal"),
    ("s = std::to_string(static_cast<float>(n));", "to_string", "a cast"),
    ("float part = 0; s = std::to_string(std::lround(part * 100));", None, "rounded before"),
    ("s = std::to_string(items.size());", None, "a count"),
    ("std::ostringstream out; out << x;", "stream", "it has the global locale"),
    ("std::ifstream in(path); in >> x;", "stream", "for reading"),
    ("c = std::toupper(c);", "letter", "Turkish has two i"),
    ("if (isalpha(c)) return;", "letter", "umlauts"),
    ("if (text.isalpha(c)) return;", None, "a member of its own"),
    ("is_digit(c);", None, "a function of ours"),
    ("strcasecmp(a, b);", "letter", "names without case"),
    ('setlocale(LC_ALL, "");', "locale", "of the whole process"),
    ("#include <locale>", "locale", "the facets"),
    ('fmt::format("{:L}", n);', "locale", "fmt's only one that asks"),
    ('fmt::format("{:.2f}", x);', None, "fmt does not read the locale"),
    ("strftime(out, n, pattern, &t);", "time", "names of months"),
    ("strcoll(a, b);", "order", "sorting"),
    ("std::regex words(pattern);", "regex", "classes of letters"),
    ('// printf("%g", x) and strtod(x)', None, "a comment"),
    ("/* std::regex */ int x;", None, "the other kind"),
    ('s = "// no comment"; x = strtod(t, 0);', "number", "two slashes in a text"),
]


class CheckLocale(unittest.TestCase):
    def check(self, content, name):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / name
            file.parent.mkdir(parents=True)
            file.write_text(content + "\n", encoding="utf-8")
            done = subprocess.run([SCRIPT, "--root", folder], capture_output=True, text=True, check=False)
        self.assertIn("check-locale: 1 files", done.stdout, done)
        return done

    def test_calls_that_depend_on_the_locale_are_found(self):
        for content, wanted, why in ROWS:
            with self.subTest(content, why=why):
                self.assertEqual({kind for _, kind, _ in faults_of(content)}, {wanted} if wanted else set())

    def test_exemptions_hold_in_their_file_only(self):
        line = "const char* locale = setlocale(LC_ALL, nullptr);"
        self.assertEqual(self.check(line, "core/src/probe/hygiene.cpp").returncode, 0)
        self.assertEqual(self.check(line, "plugins/cpu/device.cpp").returncode, 1)

    def test_this_tree_passes(self):
        done = subprocess.run([SCRIPT], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
