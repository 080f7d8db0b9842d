"""scripts/demo with fakes for the steps that take minutes: their order, its progress, and its last line."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

FAKE = """#!/bin/sh
me=${0##*/}
echo "$me $*" >>"$CALLS"
case "$FAIL" in "$me${1:+ $1}"|"$me") echo "$me says: planted"; exit 3;; esac
case "$me $1" in
  "cmake --preset") mkdir -p build/release; : >build/release/build.ninja ;;
  "bitnet run") echo "a story of $3" ;;
esac
"""


class Demo(unittest.TestCase):
    def setUp(self):
        self.tree = pathlib.Path(tempfile.mkdtemp()).resolve()
        self.addCleanup(shutil.rmtree, self.tree)
        for place in ("scripts/setup", "bin/cmake", "build/release/bin/bitnet"):
            (self.tree / place).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / place).write_text(FAKE, encoding="utf-8")
            (self.tree / place).chmod(0o755)
        shutil.copy(ROOT / "scripts/demo", self.tree / "scripts")

    def demo(self, *words, fail=""):
        calls = self.tree / "calls"
        calls.write_text("", encoding="utf-8")
        done = subprocess.run(
            [self.tree / "scripts/demo", *words], check=False, capture_output=True, text=True, cwd="/",
            stdin=subprocess.DEVNULL, env={**os.environ, "PATH": f"{self.tree}/bin:{os.environ['PATH']}",
                                           "CALLS": str(calls), "FAIL": fail})
        return done, calls.read_text(encoding="utf-8").splitlines()

    def test_the_story_alone_is_on_stdout(self):
        done, calls = self.demo("Once")
        self.assertEqual((done.returncode, done.stdout), (0, "a story of Once\n"), done.stderr)
        self.assertEqual([call.split()[:2] for call in calls],
                         [["setup", "--for"], ["cmake", "--preset"], ["cmake", "--build"],
                          ["bitnet", "run"]])
        for step in ("1/4 ", "2/4 ", "3/4 ", "4/4 "):
            self.assertIn(f"demo: {step}", done.stderr)

    def test_completed_steps_are_not_repeated(self):
        self.demo()
        _, calls = self.demo()
        self.assertNotIn("--preset", " ".join(calls))

    def test_the_step_that_fails_is_named_with_what_to_do(self):
        for fail, says, steps in (("setup", "scripts/setup could not install", 1),
                                  ("cmake --preset", "CMake could not configure", 2),
                                  ("cmake --build", "the build failed", 3)):
            with self.subTest(fail):
                shutil.rmtree(self.tree / "build/release", ignore_errors=True)
                done, calls = self.demo(fail=fail)
                self.assertEqual(done.returncode, 1)
                self.assertEqual(len(calls), steps, "nothing comes after a failure")
                self.assertIn("planted", done.stdout + done.stderr)
                first, last = done.stderr.splitlines()[-2:]
                self.assertTrue(first.startswith(f"demo: {says}"), first)
                self.assertIn("then start scripts/demo again", last)
                self.assertEqual(done.stdout if fail != "setup" else "", "")


if __name__ == "__main__":
    unittest.main()
