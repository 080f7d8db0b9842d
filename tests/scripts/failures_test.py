"""scripts/failures shows what complains, and only of tests that failed."""

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


class Failures(unittest.TestCase):
    def test_what_complains_and_the_end(self):
        with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
            log.write(LOG)
            log.flush()
            done = subprocess.run([ROOT / "scripts/failures", log.name], check=False, capture_output=True,
                                  text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual([line for line in lines if not line.startswith(" ")],
                         ["b: Test Failed.", "c: ctest was ended"])
        self.assertIn("  b_test.cpp:3: Failure", lines)
        self.assertIn("    2", lines)
        self.assertIn("  the end", lines)
        self.assertIn("  it hung", lines)
        self.assertNotIn("  line 40", lines)
        self.assertNotIn("of a test that passed", done.stdout)

    def test_words(self):
        self.assertEqual(subprocess.run([ROOT / "scripts/failures"], check=False,
                                        capture_output=True).returncode, 2)


if __name__ == "__main__":
    unittest.main()
