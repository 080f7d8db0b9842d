"""scripts/check-licences sees what no table has and what a table has alone; each package has its licence.

check_licences_test.py BUILD: a build of the release preset.
"""

import importlib.machinery
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/check-licences"
PAGE = ROOT / "packaging/licences/README.md"
build = ROOT / "build/release"

# a line of the page, what instead, the complaint
FAULTS = [
    ("| `libelf` | elfutils |", "| `libdwarf` | elfutils |", "libbitnet needs libelf, which is in no table"),
    ("| MIT | `libbitnet` `bitnet-backend-probe` `bitnet` |", "| MIT | `libbitnet` `bitnet` |",
     "bitnet-backend-probe needs libyaml-cpp, and its row does not say so"),
    ("| BSD-3-Clause | `bitnet` |", "| BSD-3-Clause | `bitnet` `libbitnet` |", "libbitnet needs no libedit"),
    ("| `xxhash.h` |", "| `zlib.h` |", "core is compiled with xxhash.h, which is in no table"),
    ("| `xxhash.h` |", "| `zlib.h` |", "core is compiled with no zlib.h"),
    ("`gtest/*` `libgtest.a`", "`gtest/*`", "tests/conformance is compiled with libgtest.a"),
    ("| `nlohmann/*` | `core` `host` ", "| `nlohmann/*` | `core` ", "host is compiled with nlohmann/"),
]


class Tables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        loader = importlib.machinery.SourceFileLoader("check_licences", str(SCRIPT))
        cls.script = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
        loader.exec_module(cls.script)
        cls.measured = cls.script.measure(build.resolve())
        cls.text = PAGE.read_text(encoding="utf-8")

    def complaints(self, text):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "README.md")
            page.write_text(text, encoding="utf-8")
            return "\n".join(self.script.complaints(self.measured, self.script.tables.read(page)))

    def test_they_are_what_was_built(self):
        self.assertLessEqual({"libbitnet", "bitnet", "bitnet-backend-lint", "bitnet-backend-probe"}, set(self.measured[0]))
        self.assertLessEqual({"core", "host", "common"}, set(self.measured[1]))
        self.assertEqual(self.complaints(self.text), "")

    def test_planted_faults_are_reported(self):
        for old, new, says in FAULTS:
            with self.subTest(new):
                self.assertIn(old, self.text)
                self.assertIn(says, self.complaints(self.text.replace(old, new, 1)))

    def test_names_of_libraries_are_not_those_within_texts(self):
        name, piece = b"libone.so.1\0", b"let it name the library of one, n"[-32:]
        for content, found in ((b"\0" + name, True), (b"\0the file " + name, False), (b"\0see '" + name, False),
                               (piece + name, True),  # behind the last piece of a text
                               (b"\0" + 23 * b"x" + b" in the " + name, False),  # of a text that is as long by chance
                               (b"\0x" + name, False), (b"\0libone.so.1 is not there\0", False)):
            with self.subTest(content):
                self.assertEqual(self.script.names_in(content), {name[:-1]} if found else set())

    def test_a_library_that_a_backend_opens_has_a_row(self):
        """Of whatever backend opens something and was built."""
        rows = re.findall(r"^\| `(lib\w+\S*)` \| .* \| `(\w+)` \|$", self.text.split("## Opened")[1], re.MULTILINE)
        self.assertGreaterEqual(len(rows), 3)
        for library, backend in rows:
            if backend in self.measured[2]:
                with self.subTest(library):
                    said = self.complaints(self.text.replace(f"| `{library}` |", "| `libother.so.1` |"))
                    self.assertIn(f"{backend} opens {library}, which is in no table", said)
                    self.assertIn(f"{backend} opens no libother.so.1", said)

    def test_optional_parts_may_be_missing(self):
        for user, header, right in (("x?", "a.h", True), ("x?", None, True), ("x", "a.h", True), ("x", None, False),
                                    ("y?", "a.h", False)):
            with self.subTest(user, header=header):
                found = {"x": {header} if header else set()}
                self.assertEqual(not list(self.script.compare("has", [("a.h", user)], found)), right)

    def test_a_folder_that_is_no_build_is_rejected(self):
        done = subprocess.run([SCRIPT, "/nonexistent"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no build by ninja", done.stderr)


class Notices(unittest.TestCase):
    def test_each_embedded_part_has_its_own(self):
        notices = (ROOT / "packaging/licences/NOTICES").read_text(encoding="utf-8")
        noticed = dict(re.findall(r"^=+\n(.*?) \((.*)\)$", notices, re.MULTILINE))
        rows = PAGE.read_text(encoding="utf-8").split("## Embedded")[1].split("## ")[0]
        embedded = dict(re.findall(r"^\| ([^|`]+) \| ([^|]+) \| `", rows, re.MULTILINE))
        for part in ("GCC's runtime", "NVTX"):  # whose exceptions ask for none
            self.assertIn("exception", embedded.pop(part))
        self.assertEqual(set(embedded), set(noticed))
        for part, licence in embedded.items():
            self.assertTrue(noticed[part].startswith(licence), part)

    def test_packages_have_them(self):
        for name in ("bitnet", "libbitnet0", "bitnet-backend-lint", "bitnet-backend-conformance"):
            docs = (ROOT / f"packaging/debian/{name}.docs").read_text(encoding="utf-8")
            self.assertIn("packaging/licences/NOTICES", docs, name)
        files = re.split(r"^%files", (ROOT / "packaging/rpm/bitnet.spec").read_text(encoding="utf-8"), flags=re.MULTILINE)
        for name in ("", " libs", " backend-lint", " backend-conformance"):
            section = next(text for text in files if text.startswith(f"{name}\n"))
            self.assertIn("%license LICENSE packaging/licences/NOTICES", section, name)

    def test_packages_of_backends_have_them(self):
        """A backend with a part whose licence asks for a notice: Debian's copyright file has the licence's text."""
        rows = PAGE.read_text(encoding="utf-8").split("## Embedded")[1].split("## ")[0]
        noticed = re.findall(r"^\| [^|`]+ \| ([^|]+) \| `[^|]*\| .*`plugins/([a-z-]+)\??`", rows, re.MULTILINE)
        spec = (ROOT / "packaging/rpm/bitnet.spec").read_text(encoding="utf-8")
        named = [(licence, name) for licence, name in noticed if "exception" not in licence]
        self.assertIn(("NCSA", "rocm"), named)
        for licence, name in named:
            made = (ROOT / f"packaging/backend/{name}.copyright").read_text(encoding="utf-8")
            self.assertRegex(made, rf"(?m)^License: .*\band {re.escape(licence)}$", "a stanza of files names it")
            self.assertRegex(made, rf"(?m)^License: {re.escape(licence)}$")
            self.assertIn(f"\n%files_of_backend {name} packaging/licences/NOTICES\n", spec)
            package = spec.split(f"\n%package backend-{name}\n")[1].split("\n%description")[0]
            self.assertRegex(package, rf"(?m)^License: .* AND {re.escape(licence)}$")


class Files(unittest.TestCase):
    """REUSE.toml and Debian's copyright state the same licence for each file of ours."""

    def test_reuse_and_debian_agree(self):
        toml = (ROOT / "REUSE.toml").read_text(encoding="utf-8")
        reuse = {}
        for block in toml.split("[[annotations]]")[1:]:
            paths = re.search(r"^path = (.*)$", block, re.MULTILINE)[1]
            licence = re.search(r'^SPDX-License-Identifier = "(.*)"$', block, re.MULTILINE)[1]
            reuse[licence] = {path.replace("**", "*") for path in re.findall(r'"([^"]+)"', paths)}
        debian = {}
        text = (ROOT / "packaging/debian/copyright").read_text(encoding="utf-8")
        for files, licence in re.findall(r"^Files: (.*)\n.*\nLicense: (.*)$", text, re.MULTILINE):
            debian[licence.replace("or Expat", "OR MIT")] = set(files.split())
        self.assertEqual(reuse, debian)

    def test_texts_are_there(self):
        for name in ("Apache-2.0", "CC0-1.0", "MIT"):
            self.assertGreater(len((ROOT / f"LICENSES/{name}.txt").read_text(encoding="utf-8")), 1000, name)


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        build = pathlib.Path(sys.argv.pop(1))
    unittest.main()
