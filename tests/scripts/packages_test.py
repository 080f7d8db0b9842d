"""Debian's packages and RPM's are the same ones: names, words, what is installed, how backends meet the core."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Where the names of the two worlds differ.
NAMES = {"libbitnet0": "bitnet-libs", "libbitnet-dev": "bitnet-devel", "bitnet-backend-dev": "bitnet-backend-devel"}


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def plain(words):
    """A description without what the two worlds break or call differently."""
    words = re.sub(r"%\{_datadir\}", "/usr/share", words).replace("%{_docdir}", "/usr/share/doc")
    return re.sub(r"\b(depends on|requires)\b", "needs", " ".join(words.replace("\n .\n", "\n").split()).lower())


def of_debian(control="packaging/debian/control"):
    """{name in RPM's words: {field: text}}."""
    found = {}
    for paragraph in text(control).split("\n\n")[1:]:
        fields = dict(re.findall(r"^([A-Z][\w-]*): *((?:.*\n?)(?: .*\n?)*)", paragraph + "\n", re.MULTILINE))
        name = fields["Package"].strip()
        found[NAMES.get(name, name)] = fields
    return found


def of_rpm():
    """{name: {section: text}}, of %package also the tags that stand before the first section."""
    spec = re.sub(r"^%define .*?^%\{nil\}$", "", text("packaging/rpm/bitnet.spec"), flags=re.MULTILINE | re.DOTALL)
    backends = re.findall(r"^%files_of_backend (\S+)", spec, re.MULTILINE)
    found = {"bitnet": {"package": spec.split("%description")[0]}}
    for section, name, body in re.findall(r"^%(package|description|files)\b ?(\S*)\n(.*?)(?=^%[a-z]|\Z)",
                                          spec, re.MULTILINE | re.DOTALL):
        found.setdefault(f"bitnet-{name}" if name else "bitnet", {})[section] = body
    for name in backends:
        found[f"bitnet-backend-{name}"]["files"] = ""
    return found


class Split(unittest.TestCase):
    def setUp(self):
        self.debian, self.rpm = of_debian(), of_rpm()

    def test_names(self):
        self.assertGreater(len(self.debian), 10)
        self.assertEqual(set(self.debian), set(self.rpm))
        for name, sections in self.rpm.items():
            self.assertLessEqual({"package", "description", "files"}, set(sections), name)

    def test_descriptions(self):
        for name, fields in self.debian.items():
            short, _, long = fields["Description"].partition("\n")
            summary = re.search(r"^Summary: *(.*)$", self.rpm[name]["package"], re.MULTILINE)[1]
            if not name.endswith("devel"):  # Debian's are named after the library
                self.assertEqual(plain(short), plain(summary), name)
            self.assertEqual(plain(long), plain(self.rpm[name]["description"]), name)

    def test_components(self):
        """A component of CMake is in both or in none."""
        rules = text("packaging/debian/rules")
        backends = re.search(r"\$\(foreach name,([a-z -]+),", rules)[1].split()
        debian = set(re.findall(r"\b([a-z]+)=(?:lib)?bitnet", rules)) | {f"backend-{name}" for name in backends}
        rpm = set(re.search(r"^%global components (.*)$", text("packaging/rpm/bitnet.spec"), re.MULTILINE)[1].split())
        self.assertEqual(debian, rpm)
        self.assertEqual({name.removeprefix("bitnet-") for name in self.rpm if "Enhances:" in self.rpm[name]["package"]
                          and "backend" in name}, {f"backend-{name}" for name in backends})

    def test_how_they_meet(self):
        """docs/adr/0031-packages-meet-by-abi.md, in both."""
        for name, sections in self.rpm.items():
            tags, fields = sections["package"], self.debian[name]
            for relation, debian, rpm in (
                    ("Provides", "bitnet-host-abi-${abi:Version}", "Provides: %{name}-host-abi-%{abi}%{?_isa}"),
                    ("Depends", "bitnet-host-abi-${abi:Version}", "Requires: %{name}-host-abi-%{abi}%{?_isa}"),
                    ("Provides", "bitnet-backend-abi-${abi:Version}", "Provides: %{name}-backend-abi-%{abi}%{?_isa}"),
                    ("Depends", "bitnet-backend-cpu | bitnet-backend-abi-",
                     "Requires: (%{name}-backend-cpu%{?_isa} or %{name}-backend-abi-%{abi}%{?_isa})"),
                    ("Recommends", "bitnet-model-tiny", "Recommends: %{name}-model-tiny")):
                self.assertEqual(debian in fields.get(relation, ""), rpm in re.sub(" +", " ", tags), f"{name}: {rpm}")


class Cuda(unittest.TestCase):
    """The package whose source is built against the SDK alone."""

    def test_meets_the_core_as_the_others_do(self):
        cuda, vulkan = of_debian("packaging/cuda/debian/control")["bitnet-backend-cuda"], of_debian()["bitnet-backend-vulkan"]
        for field in ("Architecture", "Multi-Arch", "Provides", "Enhances"):
            self.assertEqual(cuda[field], vulkan[field], field)
        self.assertEqual(cuda["Depends"], vulkan["Depends"].replace(" libvulkan1,", ""))

    def test_asks_for_nothing_of_the_vendor(self):
        control = text("packaging/cuda/debian/control")
        self.assertIn("\nSection: contrib/", control)
        fields = of_debian("packaging/cuda/debian/control")["bitnet-backend-cuda"]
        self.assertNotIn("Recommends", fields)
        self.assertNotRegex(fields["Depends"], "cuda|nvidia")
        for name, others in of_debian().items():
            for field in ("Depends", "Recommends"):
                self.assertNotIn("cuda", others.get(field, ""), f"{name}: {field}")

    def test_the_same_from_each_folder(self):
        """nvcc names shared memory of an unnamed namespace after the folder that it compiles in."""
        looked = 0
        for file in ROOT.glob("plugins/cuda/kernels/*.cu*"):
            for unnamed in re.findall(r"^namespace \{$.*?^\}  // namespace$", file.read_text(encoding="utf-8"),
                                      re.MULTILINE | re.DOTALL):
                self.assertNotRegex(unnamed, r"(?<!extern )__shared__", f"{file}: give its function a namespace")
                looked += 1
        if (ROOT / "plugins/cuda").is_dir():
            self.assertGreater(looked, 5)

    def test_the_source_is_whole(self):
        """What is included there is in it or in the SDK."""
        folders = [ROOT / "plugins" / name for name in ("cuda", "gpu-common")]
        if not folders[0].is_dir():
            self.skipTest("somebody took the cuda backend out of the tree")
        own = [*folders, folders[0] / "kernels", ROOT / "plugins", ROOT / "abi/include", ROOT / "plugins/sdk/include"]
        looked = 0
        for file in [file for folder in folders for file in folder.rglob("*") if file.suffix in (".cpp", ".hpp", ".cu", ".cuh")]:
            for name in re.findall(r'^#include "(.*)"', file.read_text(encoding="utf-8"), re.MULTILINE):
                found = next((folder / name for folder in own if (folder / name).is_file()), None)
                self.assertIsNotNone(found, f"{file}: {name}")
                self.assertIn(found.relative_to(ROOT).parts[:2], {
                    ("plugins", "cuda"), ("plugins", "gpu-common"), ("abi", "include"), ("plugins", "sdk")}, f"{file}: {name}")
                looked += 1
        self.assertGreater(looked, 100)


if __name__ == "__main__":
    unittest.main()
