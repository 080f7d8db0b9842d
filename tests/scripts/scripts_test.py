"""The scripts of the house: help, rejections, and that a planted fault turns them red."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = sorted(p for p in (ROOT / "scripts").iterdir() if os.access(p, os.X_OK) and p.is_file())


def run(*words, cwd="/", **more):
    return subprocess.run([str(w) for w in words], cwd=cwd, capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL, **more)


class Help(unittest.TestCase):
    def test_every_script_explains_itself(self):
        self.assertGreaterEqual(len(SCRIPTS), 7)
        for script in SCRIPTS:
            with self.subTest(script.name):
                done = run(script, "--help")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"Usage: scripts/{script.name}", done.stdout)

    def test_every_script_rejects_an_unknown_flag(self):
        for script in SCRIPTS:
            with self.subTest(script.name):
                self.assertEqual(run(script, "--no-such-flag").returncode, 2)


class Pipes(unittest.TestCase):
    """Under pipefail a reader that leaves early fails its writer, now and then."""

    LEAVES = re.compile(r"\|\s*(?:grep (?:-\w+ )*-\w*q|head\b|sed -n '?\d*[^|]*q'?)")

    def test_nothing_is_piped_into_a_reader_that_leaves(self):
        looked = 0
        for folder in (".ci", "cmake", "plugins", "scripts", "tests"):
            for file in sorted((ROOT / folder).rglob("*")):
                if not file.is_file() or file.suffix in (".md", ".py") or "corpus" in file.parts:
                    continue
                text = file.read_text(encoding="utf-8", errors="ignore")
                if "pipefail" in text:
                    looked += 1
                    self.assertEqual(self.LEAVES.findall(text), [], file)
        self.assertGreaterEqual(looked, 10)

    def test_planted_fault(self):
        for line in ("a | grep -q b", "a | grep -E -q b", "a |\n  grep -qF b", "a | head -n 1"):
            self.assertTrue(self.LEAVES.search(line), line)
        for line in ("a | grep b >/dev/null", "a | sed -n 1p", "grep -q b file || c"):
            self.assertFalse(self.LEAVES.search(line), line)


class Format(unittest.TestCase):
    def test_planted_fault(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(ROOT / ".clang-format", folder)
            file = pathlib.Path(folder, "a.cpp")
            file.write_text("int  main( ){return 0;}\n", encoding="utf-8")
            self.assertEqual(run(ROOT / "scripts/format", "--check", file).returncode, 1)
            self.assertEqual(run(ROOT / "scripts/format", file).returncode, 0)
            self.assertEqual(run(ROOT / "scripts/format", "--check", file).returncode, 0)


@unittest.skipUnless(shutil.which("git"), "there is no git; scripts/setup installs it")
class Hooks(unittest.TestCase):
    def setUp(self):
        self.tree = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.tree)
        (self.tree / "core").mkdir()
        (self.tree / "scripts").mkdir()
        shutil.copy(ROOT / ".clang-format", self.tree)
        for name in ("format", "check-commits"):
            shutil.copy(ROOT / "scripts" / name, self.tree / "scripts")
        shutil.copytree(ROOT / "scripts/hooks", self.tree / "scripts/hooks")
        self.assertEqual(run("git", "init", "-q", cwd=self.tree).returncode, 0)

    def commit(self, *words, hooks="scripts/hooks"):
        own = ("-c", f"core.hooksPath={hooks}", "-c", "user.name=a", "-c", "user.email=a@example.org")
        return run("git", *own, "commit", "-q", *words, cwd=self.tree)

    def test_an_unformatted_file_is_rejected(self):
        for text, code in (("int  main( ){return 0;}\n", 1), ("int main() {\n  return 0;\n}\n", 0)):
            (self.tree / "core/a.cpp").write_text(text, encoding="utf-8")
            run("git", "add", "core/a.cpp", cwd=self.tree)
            done = self.commit("-m", "core: A program")
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)

    def test_a_subject_is_judged_before_it_is_in_the_history(self):
        done = self.commit("--allow-empty", "-m", "A program")
        self.assertEqual(done.returncode, 1)
        self.assertIn("A program\n    area: expected", done.stdout + done.stderr)
        self.assertEqual(self.commit("--allow-empty", "-m", "# a comment\n\ncore: A program", "--cleanup=strip").returncode, 0)
        self.assertEqual(self.commit("--allow-empty", "--fixup=HEAD").returncode, 0)

    def test_a_subject_in_the_history_can_be_mended(self):
        self.assertEqual(self.commit("--allow-empty", "-m", "A program", hooks="none").returncode, 0)
        self.assertEqual(self.commit("--allow-empty", "--amend", "-m", "core: A program").returncode, 0)


class Lint(unittest.TestCase):
    """In a small tree of its own, since the script finds the tree by its own place."""

    def setUp(self):
        self.tree = pathlib.Path(tempfile.mkdtemp()).resolve()
        self.addCleanup(shutil.rmtree, self.tree)
        (self.tree / "core").mkdir()
        (self.tree / "scripts").mkdir()
        shutil.copy(ROOT / "scripts/lint", self.tree / "scripts")
        shutil.copy(ROOT / ".clang-tidy", self.tree)
        self.write("CMakePresets.json", '{"version": 6, "configurePresets": [{"name": "clang", '
                   '"generator": "Ninja", "binaryDir": "${sourceDir}/build/clang", '
                   '"cacheVariables": {"CMAKE_CXX_COMPILER": "clang++-19", '
                   '"CMAKE_EXPORT_COMPILE_COMMANDS": "ON"}}]}')
        self.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.25)\nproject(t CXX)\n"
                   "add_library(t STATIC core/a.cpp)")
        self.write("core/a.hpp", "inline int one() {\n  return 1;\n}")
        self.write("core/a.cpp", '#include "a.hpp"\nint two() {\n  return one() + one();\n}')

    def write(self, name, text):
        (self.tree / name).write_text(text + "\n", encoding="utf-8")

    def lint(self):
        return run(self.tree / "scripts/lint")

    def test_sees_faults_and_remembers_clean_files(self):
        done = self.lint()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("1 files, 1 looked at", done.stdout)
        self.assertIn("1 files, 0 looked at", self.lint().stdout)

        self.write("core/a.hpp", "inline int One() {\n  return 1;\n}\n#define one One")
        done = self.lint()
        self.assertEqual(done.returncode, 1, "a changed header must be looked at again")
        self.assertIn("identifier-naming", done.stdout)
        self.assertIn("1 looked at", self.lint().stdout)  # a fault is never remembered as clean


CTEST = """#!/bin/sh
mkdir -p build/release/Testing/Temporary
echo '1/1 Test: core.a' > build/release/Testing/Temporary/LastTest.log
printf '100%% tests passed, 0 tests failed out of 2\\n\\nTotal Test time (real) = 1 sec\\n'
"""


class Test(unittest.TestCase):
    def setUp(self):
        self.tree = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.tree)
        (self.tree / "scripts").mkdir()
        (self.tree / "bin").mkdir()
        (self.tree / "tests").mkdir()
        shutil.copy(ROOT / "tests/expected-skips", self.tree / "tests")
        for script in ("test", "skips", "failures"):
            shutil.copy(ROOT / "scripts" / script, self.tree / "scripts")
        self.program("bin/ctest", CTEST)
        self.program("scripts/format", "#!/bin/sh\necho badly formatted; exit 1\n")
        self.program("scripts/check-includes", "#!/bin/sh\necho fine\n")

    def program(self, name, text):
        (self.tree / name).write_text(text, encoding="utf-8")
        (self.tree / name).chmod(0o755)

    def lanes(self, *lanes):
        words = [word for lane in lanes for word in ("--lane", lane)]
        path = f"{self.tree}/bin:{os.environ['PATH']}"
        return run(self.tree / "scripts/test", *words, env={**os.environ, "PATH": path})

    def test_a_failed_lane_fails_the_whole_but_stops_nothing(self):
        done = self.lanes("format", "includes")
        self.assertEqual(done.returncode, 1)
        self.assertIn("badly formatted", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^format +FAILED")
        self.assertRegex(done.stdout, r"(?m)^includes +ok")
        self.assertEqual(self.lanes("includes").returncode, 0)

    def test_the_summary_closes_the_output(self):
        done = self.lanes("tests")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("== skipped tests\nnone\n", done.stdout)
        self.assertIn("0 tests failed out of 2", done.stdout[done.stdout.rindex("=="):])

    def test_lanes_that_ci_may_cut_take_turns(self):
        """In as many runs as there are such lanes each of them is first once, and last once."""
        def listed(**env):
            clean = {k: v for k, v in os.environ.items() if k not in ("BITNET_CI_TURN", "GITHUB_RUN_NUMBER")}
            done = run(self.tree / "scripts/test", "--ci", "--list", env={**clean, **env})
            self.assertEqual(done.returncode, 0, done.stderr)
            return [line.split("\t")[0] for line in done.stdout.splitlines()]

        cut = re.search(r"^may_be_cut='(.*)'$", (ROOT / "scripts/test").read_text(encoding="utf-8"), re.MULTILINE)
        cut = cut[1].split()
        runs = [listed(BITNET_CI_TURN=str(turn)) for turn in range(7, 7 + len(cut))]
        fixed = len(runs[0]) - len(cut)
        self.assertIn("tests", runs[0][:fixed])
        for lanes in runs:
            self.assertEqual(lanes[:fixed], runs[0][:fixed], "what CI never cuts comes first, in one order")
            self.assertCountEqual(lanes[fixed:], cut)
        self.assertCountEqual([lanes[fixed] for lanes in runs], cut)
        self.assertCountEqual([lanes[-1] for lanes in runs], cut)
        self.assertEqual(listed(GITHUB_RUN_NUMBER="8"), runs[1], "the number of GitHub's run")
        self.assertEqual(listed(GITHUB_RUN_NUMBER="8", BITNET_CI_TURN="9"), runs[2], "what is given wins")
        self.assertCountEqual(listed(), runs[0], "outside of a clone it is the day")

    def test_list_names_every_lane(self):
        named = {line.split("\t")[0] for line in run(self.tree / "scripts/test", "--list").stdout.splitlines()}
        functions = set(re.findall(r"^lane_([\w-]+)\(\)", (ROOT / "scripts/test").read_text(encoding="utf-8"),
                                   re.MULTILINE))
        self.assertEqual(named, functions)

    def test_workflows_name_lanes_that_exist(self):
        named = set(re.findall(r"^lane_([\w-]+)\(\)", (ROOT / "scripts/test").read_text(encoding="utf-8"), re.MULTILINE))
        asked = {lane: file.name for file in sorted((ROOT / ".github/workflows").glob("*.yml"))
                 for lane in re.findall(r"--lane ([\w-]+)", file.read_text(encoding="utf-8"))}
        self.assertIn("fuzz", asked)
        self.assertEqual({lane: file for lane, file in asked.items() if lane not in named}, {})

    def test_an_unknown_lane_is_rejected(self):
        self.assertEqual(self.lanes("nonsense").returncode, 2)


if __name__ == "__main__":
    unittest.main()
