"""scripts/check-versions knows every place that repeats the version, and sees one that differs."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/check-versions"

CHANGELOGS = {"packaging/debian/changelog", "packaging/cuda/debian/changelog"}
# file, what stands there, what instead, what is said of it
FAULTS = [
    ("CMakeLists.txt", "project(bitnet VERSION {}", "project(bitnet VERSION 9.9.9", "changelog:1: says {}, not 9.9.9"),
    ("packaging/debian/changelog", "bitnet ({}-1)", "bitnet (9.9.9-1)", "debian/changelog:1: says 9.9.9"),
    ("packaging/cuda/debian/changelog", "cuda ({}-1)", "cuda (9.9.9-1)", "cuda/debian/changelog:1: says 9.9.9"),
    ("packaging/rpm/bitnet.spec", "Version:        {}", "Version:        9.9.9", "bitnet.spec:"),
    ("packaging/rpm/bitnet.spec", "- {}-1\n", "- 9.9.9-1\n", "bitnet.spec:"),
    ("packaging/rpm/bitnet.spec", "%global abi ", "%global abi 7", "bitnet.spec:"),
    ("packaging/rpm/bitnet.spec", "%changelog", "%changes", None),
    ("packaging/rpm/bitnet.spec", "Version:", "Edition:", "has no line"),
    ("abi/include/bitnet/abi/base.h", "BITNET_ABI_MINOR ", "BITNET_ABI_MINOR 7", "bitnet.spec:"),
    ("plugins/cpu/cpu.cpp", '_VERSION "{}"', '_VERSION "9.9.9"', "cpu.cpp:"),
    ("plugins/null/null.c", '"{}"', '"9.9.9"', "null.c:"),
    ("plugins/vulkan/vulkan.yaml", "version: {}", "version: 9.9.9", "vulkan.yaml:"),
]


def run(*words):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)


class Versions(unittest.TestCase):
    def test_all_are_one(self):
        done = run(SCRIPT)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^\d+\.\d+\.\d+\n$")

    def test_no_place_is_unknown(self):
        """Outside of docs and tests, what looks like the version is in a file that the script knows."""
        version = run(SCRIPT).stdout.strip()
        listed = subprocess.run(["git", "-C", ROOT, "grep", "-lwF", version, "--", ":!docs", ":!tests", ":!CHANGELOG.md"],
                                capture_output=True, text=True, check=False)
        if listed.returncode > 1:
            self.skipTest("this is no checkout of git")
        known = {"CMakeLists.txt", *CHANGELOGS, "packaging/rpm/bitnet.spec"}
        # The version in which a symbol came, and examples.
        known |= {"packaging/debian/libbitnet0.symbols", "abi/include/bitnet/abi/note.h", "abi/include/bitnet/bitnet.h",
                  "core/src/plugin/manifest/manifest.hpp"}
        others = {name for name in listed.stdout.splitlines() if not re.match(r"plugins/\w+/\w+\.(c|cpp|yaml)$", name)}
        self.assertEqual(others - known, set())

    def test_planted_faults(self):
        version = run(SCRIPT).stdout.strip()
        for name, old, new, says in FAULTS:
            if not (ROOT / name).is_file():  # of a backend that somebody took out of the tree
                continue
            with self.subTest(f"{name}: {new}"), tempfile.TemporaryDirectory() as folder:
                tree = pathlib.Path(folder)
                for kept in {"CMakeLists.txt", *CHANGELOGS, "packaging/rpm/bitnet.spec",
                             "abi/include/bitnet/abi/base.h", name}:
                    (tree / kept).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(ROOT / kept, tree / kept)
                self.assertEqual(run(SCRIPT, tree).returncode, 0)
                text = (tree / name).read_text(encoding="utf-8")
                self.assertIn(old.format(version), text)
                (tree / name).write_text(text.replace(old.format(version), new), encoding="utf-8")
                done = run(SCRIPT, tree)
                if says is None:
                    self.assertEqual(done.returncode, 0, "what stands under another title is read all the same")
                    continue
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn(says.format(version), done.stderr)


if __name__ == "__main__":
    unittest.main()
