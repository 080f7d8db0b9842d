"""scripts/check-commits rejects each planted subject and accepts good ones from the history."""

import importlib.machinery
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/check-commits"

# A subject, the fault that is found (None: none), why
ROWS = [
    ("core: Steps are counted", None, "the form"),
    ("tests/cli: Exit codes of doctor and preflight", None, "a folder as the area"),
    ("tests, packaging/deploy: Gauges are read while one runs", None, "two areas"),
    ("plugins/gpu-common: 8-bit rows are read once", None, "a digit begins the sentence"),
    (".ci: Lanes take turns", None, "a hidden folder"),
    ("core: `wants` names its rows", None, "code begins the sentence"),
    ("core: " + "A" * 66, None, "72 characters"),
    ("core: " + "A" * 67, "long", "73 characters"),
    ("core: " + "ä" * 66, None, "characters count, not bytes"),
    ("bitnet serve: /backends, and a reload", None, "a command as the area, a route begins the sentence"),
    ("docs: bitnet doctor names the package", None, "a command begins the sentence"),
    ("Steps are counted", "area", "no area"),
    ("In one of many rather long areas: Steps are counted", "area", "a sentence as the area"),
    ("core:Steps are counted", "area", "no space"),
    ("wip", "working", "alone"),
    ("core: WIP", "working", "with an area"),
    ("fixup! core: Steps are counted", "working", "git commit --fixup"),
    ("fixup: facts", "working", "the word as the area"),
    ("fixup 2", "working", "the word with a number"),
    ("core: squash", "working", "the word after an area"),
    ("amend! core: Steps are counted", "working", "git commit --fixup=amend"),
    ("core: Amended requests are logged", None, "a word that begins like a note of git's"),
    ("core: Wiped memory is returned", None, "a word that begins like a note"),
    ("Merge branch 'main' into speed", None, "git's own"),
    ("Revert \"core: Steps are counted\"", None, "git's own"),
]


class Subjects(unittest.TestCase):
    def test_faults_of_subjects_are_found(self):
        sys.dont_write_bytecode = True
        loader = importlib.machinery.SourceFileLoader("check_commits", str(SCRIPT))
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_commits", loader))
        loader.exec_module(module)
        for subject, expected, why in ROWS:
            with self.subTest(subject, why=why):
                fault = module.fault_of(subject)
                self.assertEqual(fault and fault.split(":")[0], expected)


class History(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def git(self, *words, date="2026-11-29T00:00:00Z"):
        who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
               "GIT_COMMITTER_EMAIL": "a@b", "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        subprocess.run(["git", "-C", self.root, *words], check=True, capture_output=True, env={**os.environ, **who})

    def check(self, *words):
        return subprocess.run([SCRIPT, "--root", self.root, *words], capture_output=True, text=True, check=False)

    def test_a_tree_without_history_passes(self):
        done = self.check()
        self.assertEqual((done.returncode, done.stdout),
                         (0, "check-commits: no git history here, nothing to check\n"))

    def test_commits_older_than_the_rule_are_accepted(self):
        self.git("init", "-q")
        self.git("commit", "-q", "--allow-empty", "-m", "wip", date="2026-11-01T00:00:00Z")
        self.assertEqual(self.check().returncode, 0, "older than the rule")
        self.assertEqual(self.check("HEAD").returncode, 1, "asked for")
        self.git("commit", "-q", "--allow-empty", "-m", "core: Steps are counted")
        self.assertEqual(self.check().returncode, 0)
        self.git("commit", "-q", "--allow-empty", "-m", "Core steps")
        done = self.check()
        self.assertEqual(done.returncode, 1)
        self.assertIn("Core steps\n    area: expected", done.stdout)
        self.assertIn("1 subjects to mend", done.stdout)

    def test_an_unknown_range_is_rejected(self):
        self.git("init", "-q")
        self.git("commit", "-q", "--allow-empty", "-m", "core: Steps are counted")
        done = self.check("no-such-commit")
        self.assertEqual(done.returncode, 2)
        self.assertIn("git knows no commits no-such-commit", done.stderr)


if __name__ == "__main__":
    unittest.main()
