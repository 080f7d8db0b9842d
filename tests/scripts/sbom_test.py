"""scripts/sbom: both lists have each file and each part, refer to nothing else, and are the same each time."""

import hashlib
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/sbom"
sys.path.insert(0, str(ROOT / "packaging/licences"))
sys.dont_write_bytecode = True
import tables  # noqa: E402

FILES = {"bitnet-1.0.0.tar.gz": b"sources", "libbitnet0_1.0.0-1_amd64.deb": b"package", "CHANGES.md": b"no package"}


class Lists(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for name, text in FILES.items():
            (self.folder / name).write_bytes(text)
        self.spdx, self.cyclonedx = self.write()

    def write(self, *words):
        done = subprocess.run([SCRIPT, "--files", self.folder, *words], capture_output=True, text=True, check=False,
                              env={**os.environ, "SOURCE_DATE_EPOCH": "1790000000"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return [json.loads(next(self.folder.glob(f"*.{kind}.json")).read_text(encoding="utf-8")) for kind in ("spdx", "cdx")]

    def test_a_second_run_writes_the_same_bytes(self):
        first = {file.name: file.read_bytes() for file in self.folder.glob("*.json")}
        self.assertEqual(len(first), 2)
        self.write()
        self.assertEqual({file.name: file.read_bytes() for file in self.folder.glob("*.json")}, first)

    def test_both_lists_have_the_sum_of_each_file(self):
        digests = {name: hashlib.sha256(text).hexdigest() for name, text in FILES.items() if name != "CHANGES.md"}
        spdx, cyclonedx = self.spdx, self.cyclonedx
        self.assertEqual({p["packageFileName"]: p["checksums"][0]["checksumValue"] for p in spdx["packages"]
                          if "packageFileName" in p}, digests)
        self.assertEqual({c["name"]: c["hashes"][0]["content"] for c in cyclonedx["components"]
                          if c["type"] == "file"}, digests)

    def test_parts_and_licences(self):
        stated = {row["part"]: row["licence"] for heading, rows in tables.read().items() if heading != "Opened"
                  for row in rows if not row.get("compiled into", "").startswith("plugins/")}
        self.assertGreater(len(stated), 12)
        spdx, cyclonedx = self.spdx, self.cyclonedx
        of_spdx = {p["name"]: p["licenseDeclared"] for p in spdx["packages"] if p["SPDXID"].startswith("SPDXRef-part-")}
        of_cyclonedx = {c["name"]: c["licenses"][0]["expression"] if "licenses" in c else "NOASSERTION"
                        for c in cyclonedx["components"] if c["type"] == "library"}
        self.assertEqual(set(of_spdx), set(stated))
        for name, licence in stated.items():
            expected = "NOASSERTION" if "no SPDX name" in licence else licence
            self.assertEqual((of_spdx[name], of_cyclonedx[name]), (expected, expected))

    def test_a_backend_has_the_parts_of_its_own_files_alone(self):
        """Has the parts of its own files alone."""
        for name, has, has_not in (("vulkan", {"Vulkan headers", "Vulkan's loader", "GNU C library"}, {"fmt", "OpenSSL", "OpenCL headers"}),
                                   ("cuda", {"CUDA driver API", "NVTX", "NVIDIA's driver"}, {"Vulkan's loader", "yaml-cpp"}),
                                   ("cpu", {"GNU C library", "GCC's runtime"}, {"GoogleTest", "CUDA driver API"})):
            if not (ROOT / "plugins" / name).is_dir():  # it was taken out of the tree
                continue
            for file in self.folder.glob("*.json"):
                file.unlink()
            for document in self.write("--component", name):
                parts = {part["name"] for part in document.get("packages") or document["components"]}
                self.assertLessEqual(has, parts)
                self.assertFalse(has_not & parts)
                stated = document.get("metadata", {"component": document})["component"]["name"]
                self.assertTrue(stated.startswith(f"bitnet-backend-{name}"), stated)

    def test_references_lead_somewhere(self):
        spdx, cyclonedx = self.spdx, self.cyclonedx
        names = [p["SPDXID"] for p in spdx["packages"]]
        self.assertEqual(len(names), len(set(names)))
        cited = {r[key] for r in spdx["relationships"] for key in ("spdxElementId", "relatedSpdxElement")}
        self.assertEqual(cited, {*names, "SPDXRef-DOCUMENT"}, "each is related to something")
        names = [c["bom-ref"] for c in cyclonedx["components"]]
        self.assertEqual(len(names), len(set(names)))
        self.assertLessEqual(set(cyclonedx["dependencies"][0]["dependsOn"]), set(names))


class Validators(unittest.TestCase):
    """Validates the formats with the libraries that scripts/sbom --validate uses."""

    def test_validators_accept_both_lists_and_find_faults(self):
        loader = importlib.machinery.SourceFileLoader("sbom", str(SCRIPT))
        script = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
        loader.exec_module(script)
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "bitnet-1.0.0.tar.gz").touch()
            subprocess.run([SCRIPT, "--files", folder], check=True, stdout=subprocess.DEVNULL)
            files = next(folder.glob("*.spdx.json")), next(folder.glob("*.cdx.json"))
            bad = script.validate(*files)
            if bad is None:
                self.skipTest("there is no spdx-tools or cyclonedx-python-lib[json-validation]")
            self.assertEqual(bad, [])
            for file, old, new in ((files[0], '"Apache-2.0"', '"Apache-7.0"'), (files[0], "DYNAMIC_LINK", "LIKES"),
                                   (files[1], '"library"', '"libarry"'), (files[1], '"SHA-256"', '"SHA-7"')):
                with self.subTest(new):
                    text = file.read_text(encoding="utf-8")
                    file.write_text(text.replace(old, new), encoding="utf-8")
                    self.assertNotEqual(script.validate(*files), [])
                    file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    unittest.main(verbosity=2)
