"""scripts/check-exports reports each planted defect and accepts correct files.

check_exports_test.py CC CXX
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/check-exports"
CC, CXX = "cc", "c++"
if len(sys.argv) > 2:
    CC, CXX = sys.argv[1:3]
    del sys.argv[1:3]

ENTRY = "int bitnet_backend_abi0(void) { return 0; }\n"
SHARED = ["-shared", "-fPIC"]

# kind, source, flags, what the complaint says (None: right), why
ROWS = [
    ("plugin", ENTRY, SHARED, None, "the smallest plugin"),
    ("plugin", "static int f(void){return 0;} int g(void){return f();}", SHARED,
     "expected only", "no entry"),
    ("plugin", ENTRY + "int helper(void) { return 1; }", SHARED, "expected only",
     "a second export"),
    ("plugin", ENTRY, [*SHARED, "-lm", "-Wl,--no-as-needed,-lz"], "needs libz", "a library beside"),
    ("plugin", ENTRY, [*SHARED, "-Wl,-rpath,/opt/x"], "run path", "a run path"),
    ("plugin", ENTRY, [*SHARED, "-Wl,-z,execstack"], "executable stack", "an executable stack"),
    ("plugin", ENTRY + "static __thread int t __attribute__((tls_model(\"initial-exec\")));"
     "__attribute__((visibility(\"hidden\"))) int *h(void){return &t;}", SHARED, "static TLS",
     "initial-exec thread storage"),
    ("plugin", "extern \"C\" int bitnet_backend_abi0() { return 0; }\n"
     "inline int& n() { static int v = 0; return v; } int use = n();",
     [*SHARED, "-xc++", "-fgnu-unique"], "unique", "a unique symbol pins the library"),
    ("library", "int bitnet_version(void){return 0;}", SHARED, None, "only bitnet_*"),
    ("library", "int bitnet_version(void){return 0;} int leak(void){return 0;}", SHARED,
     "exports leak", "another name"),
    ("library", ENTRY, SHARED, "belongs to plugins", "an entry in the library"),
    ("kernel", "int dot_avx2(int a){return a;}", ["-c"], None, "a function"),
    ("kernel", "inline int shared(int a){return a*3;} int dot(int a){return shared(a);}"
     "int (*p())(int){return &shared;}", ["-c", "-xc++", "-O0"], "defines 'W",
     "an inline function may win over the baseline's"),
    ("kernel", "int table[2] = {1, 2};", ["-c"], "defines 'D", "data"),
    ("kernel", "int g(); int x = g();", ["-c", "-xc++"], "runs code at load",
     "a static constructor"),
]


def has_unique_symbols():
    return "clang" not in subprocess.run([CXX, "--version"], capture_output=True, text=True,
                                         check=True).stdout


class Exports(unittest.TestCase):
    def test_each_library_has_the_complaint_of_its_row(self):
        for kind, source, flags, complaint, why in ROWS:
            if "-fgnu-unique" in flags and not has_unique_symbols():
                continue  # only GCC makes them
            with self.subTest(why), tempfile.TemporaryDirectory() as folder:
                made = pathlib.Path(folder, "made.so")
                code = pathlib.Path(folder, "code.c")
                code.write_text(source, encoding="utf-8")
                compiler = CXX if "-xc++" in flags else CC
                language = [f for f in flags if f == "-xc++"]
                rest = [f for f in flags if f != "-xc++"]
                subprocess.run([compiler, *language, str(code), *rest, "-o", str(made)], check=True)
                done = subprocess.run([SCRIPT, f"--{kind}", made], capture_output=True, text=True,
                                      check=False)
                self.assertEqual(done.returncode, 0 if complaint is None else 1,
                                 why + "\n" + done.stdout + done.stderr)
                if complaint is not None:
                    self.assertIn(complaint, done.stdout, why)

    def test_a_folder_without_libbitnet_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([SCRIPT, folder], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1, "a build without libbitnet proves nothing")


if __name__ == "__main__":
    unittest.main()
