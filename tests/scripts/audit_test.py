"""scripts/audit on a small list of vulnerabilities: which count, which are accepted, and until when."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/audit"


def component(name, purl):
    return {"type": "library", "name": name, **({"purl": purl, "version": "1"} if purl else {})}


SBOM = {"bomFormat": "CycloneDX", "components": [
    component("elfutils", "pkg:deb/debian/libelf1@0.188-2.1?arch=amd64&upstream=elfutils%400.188-2.1"),
    component("GCC's runtime", "pkg:deb/debian/libstdc%2B%2B6@12.2.0-14?arch=amd64&upstream=gcc-12%4012.2.0-14"),
    component("fmt", "pkg:deb/debian/libfmt9@1%3A9.1.0%2Bds1-2?arch=amd64"),
    component("a driver", ""),
    {"type": "file", "name": "bitnet.deb"}]}


def tracker(package, **release):
    """Of one vulnerability, beside one of another suite that makes the list Debian's."""
    return {"other": {"CVE-2020-0001": {"releases": {"bookworm": {"status": "open", "urgency": "low"}}}},
            package: {"CVE-2026-1000": {"releases": {"bookworm": release}}}}


OPEN = tracker("elfutils", status="open", urgency="not yet assigned")
KNOWN = "CVE-2026-1000 elfutils until "


@unittest.skipUnless(shutil.which("dpkg"), "there is no dpkg, which compares versions")
class Audit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, what):
        file = self.folder / name
        file.write_text(what if isinstance(what, str) else json.dumps(what), encoding="utf-8")
        return file

    def audit(self, known=None, accepted="", sbom=None, today="2026-06-01", suite="bookworm"):
        words = [SCRIPT, self.write("sbom.json", SBOM if sbom is None else sbom), "--suite", suite, "--today", today,
                 "--tracker", self.write("tracker.json", OPEN if known is None else known),
                 "--accepted", self.write("accepted", accepted)]
        return subprocess.run(words, check=False, capture_output=True, text=True)

    def test_open_and_outdated_packages_count_and_unimportant_ones_do_not(self):
        for package, release, bad, why in (
                ("elfutils", {"status": "open", "urgency": "low"}, True, "nothing is mended yet"),
                ("elfutils", {"status": "undetermined", "urgency": "low"}, True, "the severity is unknown"),
                ("elfutils", {"status": "open", "urgency": "unimportant"}, False, "Debian calls it unimportant"),
                ("elfutils", {"status": "resolved", "fixed_version": "0.188-2.1", "urgency": "high"}, False,
                 "the package is the one that is mended"),
                ("elfutils", {"status": "resolved", "fixed_version": "0.188-2.1+deb12u1", "urgency": "high"}, True,
                 "the package is older than that"),
                ("elfutils", {"status": "resolved", "fixed_version": "0", "urgency": "high"}, False,
                 "the suite never had it"),
                ("libelf1", {"status": "open", "urgency": "low"}, False, "the list is by source, not by package"),
                ("gcc-12", {"status": "open", "urgency": "low"}, True, "a source of another name, and a + in it"),
                ("libfmt9", {"status": "resolved", "fixed_version": "1:9.1.0+ds1-3", "urgency": "low"}, True,
                 "no source is named: it is the package; its version has an epoch"),
                ("libfmt9", {"status": "resolved", "fixed_version": "9.2", "urgency": "low"}, False,
                 "an epoch is more than any version without"),
                ("zlib", {"status": "open", "urgency": "high"}, False, "bitnet has no zlib")):
            with self.subTest(why):
                done = self.audit(tracker(package, **release))
                self.assertEqual(done.returncode, 1 if bad else 0, done.stdout + done.stderr)
                self.assertEqual(f"VULNERABLE: CVE-2026-1000 {package} (" in done.stdout, bad, done.stdout)
                self.assertIn("not judged, as no package of Debian's with a version is known: a driver", done.stdout)

    def test_accepted_for_a_time(self):
        for accepted, end, says, why in (
                ("# nothing\n", 1, "VULNERABLE: CVE-2026-1000 elfutils (elfutils): nothing", "the risk is not accepted"),
                (KNOWN + "2026-06-02 -- reads our own files only\n", 0, "accepted until 2026-06-02: CVE-2026-1000",
                 "the last day but one"),
                (KNOWN + "2026-06-01 -- reads our own files only\n", 1, "the acceptance expired on 2026-06-01",
                 "it ends on the day that it names"),
                ("CVE-2026-1000 gcc-12 until 2026-07-01 -- other\n", 1, "VULNERABLE", "of another package"),
                ("CVE-2026-1001 elfutils until 2026-07-01 -- other\n", 1, "no longer needed: CVE-2026-1001 elfutils",
                 "another vulnerability, which is gone")):
            with self.subTest(why):
                done = self.audit(accepted=accepted)
                self.assertEqual(done.returncode, end, done.stdout + done.stderr)
                self.assertIn(says, done.stdout)

    def test_files_that_cannot_be_used(self):
        for how, says, why in (
                ({"accepted": KNOWN + "2026-07-01\n"}, "expected \"CVE SOURCE-PACKAGE until", "no reason"),
                ({"accepted": "CVE-2026-1000 elfutils -- because\n"}, "expected \"CVE", "no day"),
                ({"accepted": KNOWN + "2026-02-30 -- a\n"}, "\"2026-02-30\" is no day", "no such day"),
                ({"accepted": KNOWN + "2027-07-01 -- a\n"}, "more than a year ahead", "accepted for good"),
                ({"accepted": (KNOWN + "2026-07-01 -- a\n") * 2}, "stands there twice", "which of the two?"),
                ({"known": {}}, "says nothing of bookworm", "an empty list has no vulnerabilities"),
                ({"known": "<html>"}, "cannot be read", "an error page"),
                ({"suite": "buster"}, "says nothing of buster", "a suite that the list no longer has"),
                ({"sbom": {"components": []}}, "names no package of Debian's", "written without a build")):
            with self.subTest(why):
                done = self.audit(**how)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertIn(says, done.stderr)
                self.assertNotIn("Traceback", done.stderr)

    def test_the_accepted_risks_of_the_tree_can_be_read(self):
        words = [SCRIPT, self.write("sbom.json", SBOM), "--suite", "bookworm",
                 "--tracker", self.write("tracker.json", tracker("zlib", status="open", urgency="low"))]
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
