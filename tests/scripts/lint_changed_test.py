"""scripts/lint --changed: which files it takes, in small trees with a history of their own."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# clang-tidy and cmake are not what is tested: this one says which file it was given.
TIDY = """#!/bin/sh
case "$1" in --version) echo 19; exit 0;; esac
for last; do :; done
echo "${last##*/}" >>"$SEEN"
"""
SOURCES = {  # file: what it includes
    "one.hpp": (), "deep.hpp": ("one.hpp",), "two.hpp": (), "named.inl": (),
    "one.cpp": ("one.hpp",), "deep.cpp": ("deep.hpp",), "two.cpp": ("two.hpp", "later.hpp"), "alone.cpp": (),
}


@unittest.skipUnless(shutil.which("git"), "there is no git; scripts/setup installs it")
class Changed(unittest.TestCase):
    def setUp(self):
        self.tree = pathlib.Path(tempfile.mkdtemp()).resolve()
        self.addCleanup(shutil.rmtree, self.tree)
        for folder in ("scripts", "core", "bin", "build/clang"):
            (self.tree / folder).mkdir(parents=True)
        shutil.copy(ROOT / "scripts/lint", self.tree / "scripts")
        (self.tree / ".gitignore").write_text("build/\nbin/\n", encoding="utf-8")
        (self.tree / ".clang-tidy").write_text("Checks: x\n", encoding="utf-8")
        for name, text in (("clang-tidy-19", TIDY), ("cmake", "#!/bin/sh\n")):
            (self.tree / "bin" / name).write_text(text, encoding="utf-8")
            (self.tree / "bin" / name).chmod(0o755)
        for name in SOURCES:
            self.edit(name, "")
        rows = ",".join(f'{{"file": "{self.tree}/core/{name}", "command": "c++ -c {name}"}}'
                        for name in SOURCES if name.endswith(".cpp"))
        (self.tree / "build/clang/compile_commands.json").write_text(f"[{rows}]", encoding="utf-8")
        self.git("init", "-q", "-b", "main")
        self.commit()

    def edit(self, name, text):
        includes = "".join(f'#include "{other}"\n' for other in SOURCES.get(name, ()))
        (self.tree / "core" / name).write_text(f"{includes}// {text}\n", encoding="utf-8")

    def git(self, *words):
        mine = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.tree,
                       check=True, capture_output=True, env={**os.environ, **mine})

    def commit(self, *more):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x", *more)

    def lint(self, *words, **env):
        """The files that were looked at, and what it printed last."""
        seen = self.tree / "build/seen"
        seen.write_text("", encoding="utf-8")
        shutil.rmtree(self.tree / "build/lint-cache", ignore_errors=True)
        done = subprocess.run(
            [self.tree / "scripts/lint", "--changed", *words], check=False, capture_output=True, text=True,
            cwd=self.tree, env={**os.environ, "PATH": f"{self.tree}/bin:{os.environ['PATH']}", "SEEN": str(seen), **env})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return set(seen.read_text(encoding="utf-8").split()), done.stdout

    def test_files_changed_on_a_branch_and_their_users_are_linted(self):
        self.git("checkout", "-q", "-b", "work")
        self.commit()
        self.assertEqual(self.lint()[0], set(), "nothing is changed")
        self.edit("alone.cpp", "committed")
        self.commit()
        self.assertEqual(self.lint()[0], {"alone.cpp"})
        self.edit("one.hpp", "not committed")
        self.assertEqual(self.lint()[0], {"alone.cpp", "one.cpp", "deep.cpp"}, "the files that include it, too")
        (self.tree / "plugins").mkdir(exist_ok=True)
        self.assertEqual(self.lint("plugins")[0], set(), "only below what is named")

    def test_a_file_that_a_macro_names_is_included(self):
        with open(self.tree / "core/alone.cpp", "a", encoding="utf-8") as file:
            file.write('#define PART "named.inl"\n#include PART\n#define TEXT "one.hpp is no file"\n')
        self.commit()
        self.git("checkout", "-q", "-b", "work")
        self.edit("named.inl", "changed")
        self.commit()
        self.assertEqual(self.lint()[0], {"alone.cpp"})

    def test_later_commits_of_main_are_excluded(self):
        self.git("checkout", "-q", "-b", "work")
        self.edit("alone.cpp", "ours")
        self.commit()
        self.git("checkout", "-q", "main")
        self.edit("two.cpp", "theirs")
        self.commit()
        self.git("checkout", "-q", "work")
        self.assertEqual(self.lint()[0], {"alone.cpp"})

    def test_a_new_file_counts_before_it_is_added(self):
        self.git("checkout", "-q", "-b", "work")
        self.commit()
        self.edit("later.hpp", "no commit had it")
        self.assertEqual(self.lint()[0], {"two.cpp"})

    def test_on_main_the_last_commits_count(self):
        self.edit("alone.cpp", "long ago")
        self.commit()
        for number in range(20):
            self.edit("two.cpp", str(number))
            self.commit()
        self.assertEqual(self.lint()[0], {"two.cpp"})

    def test_without_enough_history_everything_counts(self):
        whole = {name for name in SOURCES if name.endswith(".cpp")}
        self.assertEqual(self.lint()[0], whole, "main has one commit")
        shutil.rmtree(self.tree / ".git")
        self.assertEqual(self.lint()[0], whole, "an archive")

    def test_changed_rules_change_everything_below(self):
        self.git("checkout", "-q", "-b", "work")
        self.commit()
        (self.tree / ".clang-tidy").write_text("Checks: y\n", encoding="utf-8")
        self.assertEqual(len(self.lint()[0]), 4)

    def test_of_too_many_files_the_most_telling_are_looked_at(self):
        self.git("checkout", "-q", "-b", "work")
        self.commit()
        for name in ("alone.cpp", "one.hpp", "two.hpp"):
            self.edit(name, "changed")
        seen, said = self.lint(BITNET_LINT_FILES="3")
        self.assertIn("alone.cpp", seen, "what changed itself")
        self.assertIn("two.cpp", seen, "the only one that shows two.hpp")
        self.assertTrue(seen & {"one.cpp", "deep.cpp"}, "one of those that show one.hpp")
        self.assertRegex(said, r"3 looked at, 0 with complaints, 1 left to a whole lint")
        self.assertTrue(re.search(r"4 files changed since [0-9a-f]{12}", said), said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
