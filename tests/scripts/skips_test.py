"""Skips: each way to report one is read, and an unexpected one fails its lane."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Logs of ctest, and the skips that must be found in them.
LOG = """1/9 Testing: core.a
1/9 Test: core.a
[ RUN      ] A.b
/x/a_test.cpp:2: Skipped
the data
is missing
[  SKIPPED ] A.b (0 ms)
[ RUN      ] all/A.c/1
/x/a_test.cpp:9: Skipped
a parameter
[  SKIPPED ] all/A.c/1, where GetParam() = 4 (0 ms)
[  PASSED  ] 0 tests.
[  SKIPPED ] 2 tests, listed below:
[  SKIPPED ] A.b
[  SKIPPED ] all/A.c/1
2/9 Testing: install.b
2/9 Test: install.b
skip: no backend
3/9 Testing: races
3/9 Test: races
skipped: oclgrind is not installed
4/9 Testing: cli.c
4/9 Test: cli.c
test_one (__main__.C.test_one)
What it does. ... skipped 'no "strace" here'
test_two (__main__.C.test_two) ... skipped "it's shut"
skip: it's shut
OK (skipped=2)
5/9 Testing: quiet.py
5/9 Test: quiet.py
OK (skipped=1)
6/9 Testing: conformance.x
6/9 Test: conformance.x
passed        ops.one                                                   3 ms
skipped       threads.two_devices                                       0 ms
              there is one device only
skipped       threads.silent                                            0 ms
x 1: 1 passed, 0 failed, 0 known to fail, 0 unsupported, 2 skipped; level none
7/9 Testing: sober
7/9 Test: sober
the word skipped: in the middle, and skip it
"""
CONSOLE = """skipped       threads.two_devices                                       0 ms
              which ctest prints again where the test failed
The following tests did not run:
\t  2 - install.b (Skipped)
\t  8 - quiet.c (Skipped)
skip: lane x: there is no tool
"""
FOUND = [
    "cli.c: it's shut",
    'cli.c: no "strace" here',
    "conformance.x: threads.silent: gave no reason",
    "conformance.x: threads.two_devices: there is one device only",
    "core.a: A.b: the data is missing",
    "core.a: all/A.c/1: a parameter",
    "install.b: no backend",
    "lane x: there is no tool",
    "quiet.c: gave no reason",
    "quiet.py: gave no reason",
    "races: oclgrind is not installed",
]

CTEST = """#!/bin/sh
mkdir -p build/release/Testing/Temporary
printf '1/1 Test: core.a\\n%s\\n' "$SAYS" > build/release/Testing/Temporary/LastTest.log
printf '100%% tests passed, 0 tests failed out of 2\\n\\nTotal Test time (real) = 1 sec\\n'
"""


class Tree(unittest.TestCase):
    def setUp(self):
        self.tree = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.tree)
        for folder in ("scripts", "tests", "bin"):
            (self.tree / folder).mkdir()
        for script in ("test", "skips", "failures"):
            shutil.copy(ROOT / "scripts" / script, self.tree / "scripts")
        self.expect("core.a: known * -- it is of no use here")
        (self.tree / "bin/ctest").write_text(CTEST, encoding="utf-8")
        (self.tree / "bin/ctest").chmod(0o755)

    def expect(self, *lines):
        (self.tree / "tests/expected-skips").write_text("# why\n\n" + "\n".join(lines) + "\n", encoding="utf-8")

    def run_script(self, name, *words, **env):
        mine = {k: v for k, v in os.environ.items() if not k.startswith("BITNET_")}
        env = {**mine, "PATH": f"{self.tree}/bin:{os.environ['PATH']}", **env}
        return subprocess.run([self.tree / "scripts" / name, *words], check=False, capture_output=True,
                              text=True, env=env, cwd=self.tree, stdin=subprocess.DEVNULL)


class Reading(Tree):
    def read(self, *words):
        (self.tree / "a.ctest.log").write_text(LOG, encoding="utf-8")
        (self.tree / "a.log").write_text(CONSOLE, encoding="utf-8")
        return self.run_script("skips", *words, "a.log", "a.ctest.log")

    def test_skips_are_found_in_each_way_to_report(self):
        done = self.read("--unexpected")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines(), FOUND)

    def test_skips_outside_of_tests_belong_to_the_lane(self):
        (self.tree / "packages.log").write_text(CONSOLE, encoding="utf-8")
        self.assertIn("lane packages: threads.two_devices: which", self.run_script("skips", "packages.log").stdout)
        self.expect("lane packages: threads.two_devices: * -- because")
        self.assertNotIn("packages", self.run_script("skips", "--unexpected", "packages.log").stdout)

    def test_equal_skips_of_several_tests_are_one_line(self):
        log = self.tree / "log.ctest.log"
        log.write_text("".join(f"1/9 Test: core.{name}\nskip: {words}\n" for name, words in
                               (("a", "known one"), ("b", "known one"), ("a", "another"), ("c", "known one"))),
                       encoding="utf-8")
        self.expect("core.*: known * -- why", "core.a: another -- why", "core.c: nothing -- why")
        self.assertEqual(self.run_script("skips", log).stdout.splitlines(),
                         ["core.a: another", "core.a, core.b, core.c: known one"])
        self.expect("core.a: * -- why")
        self.assertEqual(self.run_script("skips", log).stdout.splitlines(),
                         ["core.a: another", "core.a: known one", "UNEXPECTED core.b, core.c: known one"])

    def test_expected_skips_are_not_reported(self):
        self.expect(*(f"{skip} -- because" for skip in FOUND))
        self.assertEqual(self.read("--unexpected").returncode, 0)
        self.expect(*(f"{skip} -- because" for skip in FOUND[1:]))
        self.assertEqual(self.read("--unexpected").stdout, FOUND[0] + "\n")
        self.assertIn(f"UNEXPECTED {FOUND[0]}\n{FOUND[1]}\n", self.read().stdout)
        self.expect("core.*: *: the data * -- a pattern is of the whole line")
        self.assertNotIn(FOUND[4], self.read("--unexpected").stdout)
        self.expect("core.a: A.b -- half of what it says is not enough")
        self.assertIn(FOUND[4], self.read("--unexpected").stdout)

    def test_a_backend_has_its_own_list(self):
        self.expect(*(f"{skip} -- because" for skip in FOUND[1:]))
        (self.tree / "plugins/x").mkdir(parents=True)
        (self.tree / "plugins/x/expected-skips").write_text(f"{FOUND[0]} -- because\n", encoding="utf-8")
        self.assertEqual(self.read("--unexpected").returncode, 0)

    def test_a_rule_without_a_reason_is_rejected(self):
        self.expect("core.a: A.b: the data is missing")
        done = self.read()
        self.assertEqual(done.returncode, 1)
        self.assertIn("expected-skips:3: expected", done.stderr)

    def test_our_own_list_can_be_read(self):
        log = self.tree / "empty.log"
        log.write_text("", encoding="utf-8")
        done = subprocess.run([ROOT / "scripts/skips", log], check=False, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


class Lanes(Tree):
    """Runs the lane `tests` with a fake ctest that prints the output of a row."""

    def lane(self, says, **env):
        return self.run_script("test", "--lane", "tests", SAYS=says, **env)

    def test_an_unexpected_skip_fails_the_lane(self):
        for says, ends, why in (
                ("fine", 0, "nothing was skipped"),
                ("skip: known and named", 0, "the list allows it"),
                ("skipped: known and named", 0, "in the other word for it"),
                ("skip: the driver did not come up", 1, "planted"),
                ("skipped: the driver did not come up", 1, "planted, in the other word")):
            with self.subTest(why):
                done = self.lane(says)
                self.assertEqual(done.returncode, ends, done.stdout + done.stderr)
                self.assertRegex(done.stdout, rf"(?m)^tests +{'FAILED' if ends else 'ok'}")
                self.assertEqual("UNEXPECTED core.a: the driver" in done.stdout, ends == 1)

    def test_a_lane_that_ci_has_no_time_for(self):
        limit = "lane *: not begun, the time of CI was over"
        self.expect(f"{limit} -- slow")
        page = self.tree / "page"
        done = self.run_script("test", "--ci", "--lane", "tests", SAYS="fine", BITNET_CI_MINUTES="0",
                               GITHUB_STEP_SUMMARY=page)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^tests +cut")
        self.assertIn("lane tests: not begun", done.stdout)
        cut = "cut, as the time of CI was over: tests (not begun)"
        self.assertIn(f"\n== {cut}\n", done.stdout)
        self.assertRegex(page.read_text(encoding="utf-8"), r"\| tests \| cut \| \d+ s \| \d+ s \|\n\n\*\*Cut, as the time of "
                         r"CI was over:\*\* tests \(not begun\)\n")
        page.unlink()
        done = self.run_script("test", "--ci", "--lane", "tests", SAYS="fine", BITNET_CI_MINUTES="9",
                               GITHUB_STEP_SUMMARY=page)
        self.assertRegex(done.stdout, r"(?m)^tests +ok")
        self.assertNotIn("cut", done.stdout + page.read_text(encoding="utf-8"))
        # A failure stays one.
        done = self.run_script("test", "--ci", "--lane", "tests", SAYS="skip: planted", BITNET_CI_MINUTES="9")
        self.assertEqual(done.returncode, 1, done.stdout)

    def test_a_setup_without_packages_may_leave_some_out(self):
        done = self.lane("skip: the driver did not come up", BITNET_SETUP="skip")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("UNEXPECTED core.a: the driver did not come up", done.stdout)


if __name__ == "__main__":
    unittest.main()
