"""scripts/failures prints error messages, and only those of failed tests and build steps."""

import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUIET = "\n".join(f"line {i}" for i in range(90))
LOG = f"""1/3 Testing: a
1/3 Test: a
[  FAILED  ] of a test that passed all the same
Test Passed.
2/3 Testing: b
2/3 Test: b
{QUIET}
b_test.cpp:3: Failure
Expected equality of these values:
  1
  2
{QUIET}
the end
<end of output>
Test time =   1.20 sec
Test Failed.
3/3 Testing: c
3/3 Test: c
it hung
"""
BUILD = f"""[1/4] Building CXX object a.o
a.cpp:1:1: warning: of a step that succeeded
[2/4] Building CXX object b.o
FAILED: [code=1] b.o
c++ -DERROR -c b.cpp -o b.o
{QUIET}
b.cpp:7:3: error: no such name
    7 |   one();
{QUIET}
1 error generated.
[3/4] Linking CXX executable c
FAILED: c
c++ -o c
ld: error: undefined symbol: two
[4/4] Building CXX object d.o
ninja: build stopped: cannot make progress due to previous errors.
"""


class Failures(unittest.TestCase):
    def lines_of(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
            log.write(text)
            log.flush()
            done = subprocess.run([ROOT / "scripts/failures", log.name], check=False, capture_output=True,
                                  text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def test_steps_of_a_build(self):
        lines = self.lines_of(BUILD)
        self.assertEqual([line for line in lines if not line.startswith(" ")],
                         ["b.o: the build of it failed", "c: the build of it failed"])
        self.assertIn("  b.cpp:7:3: error: no such name", lines)
        self.assertIn("      7 |   one();", lines)
        self.assertIn("  1 error generated.", lines)
        self.assertIn("  ld: error: undefined symbol: two", lines)
        for other in ("a.cpp:1:1: warning: of a step that succeeded", "c++ -o c", "c++ -DERROR -c b.cpp -o b.o"):
            self.assertNotIn("  " + other, lines)

    def test_failures_and_the_last_lines_are_printed(self):
        lines = self.lines_of(LOG)
        self.assertEqual([line for line in lines if not line.startswith(" ")],
                         ["b: Test Failed.", "c: ctest was ended"])
        self.assertIn("  b_test.cpp:3: Failure", lines)
        self.assertIn("    2", lines)
        self.assertIn("  the end", lines)
        self.assertIn("  it hung", lines)
        self.assertNotIn("  line 40", lines)
        self.assertNotIn("[  FAILED  ] of a test that passed all the same", [line.strip() for line in lines])

    def test_a_missing_argument_is_rejected(self):
        self.assertEqual(subprocess.run([ROOT / "scripts/failures"], check=False,
                                        capture_output=True).returncode, 2)


if __name__ == "__main__":
    unittest.main()
