"""scripts/compare-speed on known measurements: it fails only if a test is slower by more than the spread."""

import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/compare-speed"

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("compare_speed", str(SCRIPT))
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare_speed", loader))
loader.exec_module(module)

# Prints what `bitnet bench -o json` would; SPEEDS has one figure for each run, in turn.
FAKE = """#!/bin/sh
case "$2" in --help) echo no kernels; exit 0;; esac
n=$(cat "$0.runs" 2>/dev/null || echo 0)
echo $((n + 1)) > "$0.runs"
set -- {speeds}
shift $((n % $#))
echo "[{{\\"test\\": \\"tg64\\", \\"median_ts\\": $1}}]"
"""


class Judge(unittest.TestCase):
    def test_each_pair_of_figures_has_its_verdict(self):
        steady = [100, 101, 99, 100, 100]
        noisy = [100, 130, 80, 120, 70]
        for base, factor, margin, verdict, why in (
                (steady, 1.00, 0.05, "same", "the same figures"),
                (steady, 0.96, 0.05, "same", "slower, within the margin"),
                (steady, 0.90, 0.05, "SLOWER", "a tenth slower"),
                (steady, 0.90, 0.15, "same", "the margin was asked for"),
                (steady, 1.20, 0.05, "faster", "a fifth faster"),
                (noisy, 0.90, 0.05, "SLOWER", "noise that hits both sides cancels")):
            with self.subTest(why):
                found, ratio, _ = module.judge([(b, b * factor) for b in base], margin)
                self.assertEqual(found, verdict)
                self.assertAlmostEqual(ratio, factor)

    def test_a_change_within_the_spread_is_no_change(self):
        pairs = [(100, 100 * r) for r in (0.70, 0.80, 0.90, 1.00, 1.10)]
        verdict, ratio, spread = module.judge(pairs, 0.05)
        self.assertAlmostEqual(ratio, 0.9)
        self.assertAlmostEqual(spread, 0.1)  # quartiles 0.8 and 1.0
        self.assertEqual(verdict, "same")
        self.assertEqual(module.judge(pairs[:3], 0.05)[0], "SLOWER")  # 0.8 with a spread of 0.05

    def test_one_outlier_decides_nothing(self):
        ratios = [1.0] * 10 + [0.2]
        self.assertEqual(module.judge([(100, 100 * r) for r in ratios], 0.05)[0], "same")

    def test_one_round_is_judged_without_a_spread(self):
        self.assertEqual(module.judge([(100, 90)], 0.05)[0], "SLOWER")


class Programs(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def program(self, name, speeds):
        path = self.folder / name
        path.write_text(FAKE.format(speeds=" ".join(map(str, speeds))), encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    def compare(self, base, new, *words):
        return subprocess.run([SCRIPT, "--programs", self.program("base", base),
                               self.program("new", new), "--rounds", "4", *words],
                              capture_output=True, text=True, check=False)

    def test_a_slower_build_ends_with_1(self):
        same = self.compare([100, 101, 99, 100], [100, 99, 101, 100])
        self.assertEqual(same.returncode, 0, same)
        self.assertIn("same   tg64", same.stdout)
        slower = self.compare([100, 101, 99, 100], [80, 81, 79, 80])
        self.assertEqual(slower.returncode, 1, slower)
        self.assertIn("SLOWER tg64: -20.0 %", slower.stdout)
        self.assertEqual(self.compare([100], [80], "--margin", "25").returncode, 0)

    def test_runs_in_turn(self):
        self.compare([100], [100])
        for name in ("base", "new"):
            self.assertEqual((self.folder / f"{name}.runs").read_text(encoding="utf-8").strip(), "4")

    def test_a_program_that_cannot_bench_is_a_skip(self):
        done = subprocess.run([SCRIPT, "--programs", "/bin/false", "/bin/false", "--rounds", "1"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 77, done)
        self.assertIn("skip: ", done.stdout)


class Base(unittest.TestCase):
    """Which commit is compared with, in a repository of its own."""

    def setUp(self):
        self.tree = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.tree)
        module.ROOT, self.root = self.tree, module.ROOT
        self.addCleanup(setattr, module, "ROOT", self.root)

    def git(self, *words):
        done = subprocess.run(
            ["git", "-C", str(self.tree), "-c", "user.name=t", "-c", "user.email=t@t", *words],
            capture_output=True, text=True, check=True,
            env={k: v for k, v in os.environ.items() if not k.startswith("GIT_")})
        return done.stdout.strip()

    def commit(self):
        self.git("commit", "--allow-empty", "-q", "-m", "c")
        return self.git("rev-parse", "HEAD")

    def test_the_base_is_the_merge_base_or_on_main_the_parent(self):
        with self.assertRaisesRegex(module.Skip, "no git history"):
            module.find_base(None)
        self.git("init", "-q", "-b", "main")
        first = self.commit()
        with self.assertRaisesRegex(module.Skip, "no parent"):
            module.find_base(None)
        second = self.commit()
        self.assertEqual(module.find_base(None), first, "on main: the parent")
        self.git("checkout", "-q", "-b", "topic")
        self.commit()
        self.commit()
        self.assertEqual(module.find_base(None), second, "on a branch: where it left main")
        self.assertEqual(module.find_base("HEAD~3"), first, "as asked")
        with self.assertRaisesRegex(module.Skip, "no commit"):
            module.find_base("nonsense")


if __name__ == "__main__":
    unittest.main()
