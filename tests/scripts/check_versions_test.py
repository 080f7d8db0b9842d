"""scripts/check-versions knows each file that repeats a version, reports one that differs, and checks backends alone."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/check-versions"
CORE = ["CMakeLists.txt", "packaging/debian/changelog", "packaging/rpm/bitnet.spec", "abi/include/bitnet/abi/base.h"]

# What a small tree has of a backend `one`, version 0.3.0, beside the core's files.
ONE = {
    "plugins/one/CMakeLists.txt": "# A comment.\nbitnet_add_backend(one VERSION 0.3.0\n  SOURCES one.cpp LEVEL silver)\n",
    "plugins/one/CHANGELOG.md": "# Changes\n\n## Unreleased\n\n- New.\n\n## 0.2.9 - 2026-01-02\n\n- Old.\n",
    "plugins/one/one.yaml": "version: @BITNET_BACKEND_VERSION@\n",
    "plugins/one/one.cpp": 'note("one", BITNET_BACKEND_VERSION)\n',
    "plugins/null/CMakeLists.txt": "bitnet_add_backend(null SOURCES null.c LEVEL none)\n",
    "plugins/null/null.c": '#define VERSION "0.1.0"\n',
    "plugins/shared/CMakeLists.txt": "add_library(shared)\n",
}
# file, what stands there, what instead, the complaint; {} is the core's version
FAULTS = [
    ("CMakeLists.txt", "project(bitnet VERSION {}", "project(bitnet VERSION 9.9.9", "changelog:1: says {}, not 9.9.9"),
    ("packaging/debian/changelog", "bitnet ({}-1)", "bitnet (9.9.9-1)", "debian/changelog:1: says 9.9.9"),
    ("packaging/rpm/bitnet.spec", "Version:        {}", "Version:        9.9.9", "bitnet.spec:"),
    ("packaging/rpm/bitnet.spec", "- {}-1\n", "- 9.9.9-1\n", "bitnet.spec:"),
    ("packaging/rpm/bitnet.spec", "%global abi ", "%global abi 7", "bitnet.spec:"),
    ("packaging/rpm/bitnet.spec", "%global oldest_abi ", "%global oldest_abi 7", "bitnet.spec:"),
    ("packaging/rpm/bitnet.spec", "%changelog", "%changes", None),
    ("packaging/rpm/bitnet.spec", "Version:", "Edition:", "has no line"),
    ("abi/include/bitnet/abi/base.h", "BITNET_ABI_MINOR ", "BITNET_ABI_MINOR 7", "bitnet.spec:"),
    ("abi/include/bitnet/abi/base.h", "BITNET_ABI_OLDEST_MINOR ", "BITNET_ABI_OLDEST_MINOR 7", "bitnet.spec:"),
    ("plugins/one/CMakeLists.txt", "0.3.0", "0.3.1", None),  # a backend has a version of its own
    ("plugins/one/CMakeLists.txt", "VERSION 0.3.0", "", "bitnet_add_backend(one ...) states no VERSION"),
    ("plugins/one/CMakeLists.txt", "0.3.0", "0.2.8", "is about 0.2.9, plugins/one/CMakeLists.txt still about 0.2.8"),
    ("plugins/one/one.yaml", "@BITNET_BACKEND_VERSION@", "0.3.0", "one.yaml: repeats a version, 0.3.0"),
    ("plugins/one/one.cpp", "note(", '#define BITNET_ONE_VERSION "0.3.0"\nnote(', "one.cpp: repeats a version, 0.3.0"),
    ("plugins/one/CHANGELOG.md", "## Unreleased", "## 0.3.0 - 2026-02-03", None),  # as it is when it is released
    ("plugins/one/CHANGELOG.md", "## Unreleased", "## 0.3.0", "has a section '0.3.0'; expected"),
    ("plugins/one/CHANGELOG.md", "## Unreleased\n", "", "says 0.2.9, not 0.3.0; begin '## Unreleased'"),
    ("plugins/one/CHANGELOG.md", "Unreleased", "0.3.10 - 2026-02-03", "is about 0.3.10"),  # as numbers, not as text
    ("plugins/one/CHANGELOG.md", "- Old.\n", "- Old.\n\n## Unreleased\n", "'Unreleased' is not its first section"),
    ("plugins/one/CHANGELOG.md", "# Changes", "", None),
]


def run(*words):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)


class Versions(unittest.TestCase):
    def small_tree(self):
        tree = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, tree)
        for name in CORE:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
        for name, text in ONE.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text, encoding="utf-8")
        return tree

    def test_versions_of_this_tree_agree(self):
        done = run(SCRIPT)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^\d+\.\d+\.\d+\n$")
        listed = dict(line.split() for line in run(SCRIPT, "--list").stdout.splitlines())
        folders = {file.parent.name for file in ROOT.glob("plugins/*/*.yaml")} - {"null"}
        self.assertEqual(set(listed), {"bitnet", *folders})

    def test_the_version_of_a_component_is_printed(self):
        tree = self.small_tree()
        version = run(SCRIPT).stdout.strip()
        for words, said in ((["--list"], f"bitnet {version}\none 0.3.0\n"), (["--component", "one"], "0.3.0\n"),
                            (["--component", "bitnet"], f"{version}\n"), ([], f"{version}\n")):
            done = run(SCRIPT, *words, tree)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, said, ""), words)
        done = run(SCRIPT, "--component", "null", tree)
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no component null; expected one of bitnet, one", done.stderr)
        (tree / "plugins/one/CHANGELOG.md").unlink()
        self.assertIn("plugins/one/CHANGELOG.md: is not there", run(SCRIPT, tree).stderr)

    def test_each_backend_of_this_tree_moves_alone(self):
        """Its version is one line of its own CMakeLists.txt; nothing else has to change with it."""
        for name, version in [line.split() for line in run(SCRIPT, "--list").stdout.splitlines()[1:]]:
            tree = self.small_tree()
            shutil.copytree(ROOT / "plugins" / name, tree / "plugins" / name)
            file = tree / f"plugins/{name}/CMakeLists.txt"
            text = file.read_text(encoding="utf-8")
            self.assertEqual(text.count(f"VERSION {version}"), 1, name)
            file.write_text(text.replace(f"VERSION {version}", f"VERSION {version}.1"), encoding="utf-8")
            done = run(SCRIPT, "--component", name, tree)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, f"{version}.1\n", ""))

    def test_no_place_is_unknown(self):
        """Outside of docs and tests, what looks like the version is in a file that the script knows."""
        version = run(SCRIPT).stdout.strip()
        listed = subprocess.run(["git", "-C", ROOT, "grep", "-lwF", version, "--", ":!docs", ":!tests", ":!CHANGELOG.md"],
                                capture_output=True, text=True, check=False)
        if listed.returncode > 1:
            self.skipTest("this is no checkout of git")
        known = {"CMakeLists.txt", "packaging/debian/changelog", "packaging/rpm/bitnet.spec"}
        # The version in which a symbol came, and examples.
        known |= {"packaging/debian/libbitnet0.symbols", "abi/include/bitnet/abi/note.h", "abi/include/bitnet/bitnet.h",
                  "core/src/plugin/manifest/manifest.hpp", "scripts/check-versions", "plugins/null/null.c", "plugins/null/null.yaml"}
        others = {name for name in listed.stdout.splitlines() if not re.match(r"plugins/[\w-]+/(CMakeLists.txt|CHANGELOG.md)$", name)}
        self.assertEqual(others - known, set())

    def test_planted_faults_are_reported(self):
        version = run(SCRIPT).stdout.strip()
        for name, old, new, says in FAULTS:
            with self.subTest(f"{name}: {new}"):
                tree = self.small_tree()
                self.assertEqual(run(SCRIPT, tree).returncode, 0)
                text = (tree / name).read_text(encoding="utf-8")
                self.assertIn(old.format(version), text)
                (tree / name).write_text(text.replace(old.format(version), new), encoding="utf-8")
                done = run(SCRIPT, tree)
                if says is None:
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    continue
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn(says.format(version), done.stderr)


if __name__ == "__main__":
    unittest.main()
