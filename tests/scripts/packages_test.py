"""Debian's and RPM's packages agree: names, descriptions, installed files, and how backends depend on the core."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Names that differ between Debian and RPM.
NAMES = {"libbitnet0": "bitnet-libs", "libbitnet-dev": "bitnet-devel", "bitnet-backend-dev": "bitnet-backend-devel"}


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def plain(words):
    """A description without line breaks and names that differ between Debian and RPM."""
    words = re.sub(r"%\{_datadir\}", "/usr/share", words).replace("%{_docdir}", "/usr/share/doc")
    return re.sub(r"\b(depends on|requires)\b", "needs", " ".join(words.replace("\n .\n", "\n").split()).lower())


BACKENDS = sorted(file.stem for file in (ROOT / "packaging/backend").glob("*.control"))
# Backends whose toolkit is in Debian's main archive.
FREE = [name for name in BACKENDS if "\nSection: contrib/" not in text(f"packaging/backend/{name}.control")]
MADE_BY_CMAKE = ("kernel_sources.hpp", "images.inc")


def spec_of_x86_64():
    """The spec with the macro that marks parts of this architecture only."""
    return re.sub(r"%\{\?with_level_zero:([^}]*)\}", r"\1", text("packaging/rpm/bitnet.spec"))


def control_of(backend):
    return f"packaging/backend/{backend}.control"


def of_debian(*controls):
    """{name in RPM's words: {field: text}}, of the core's source and those of backends unless some are named."""
    found = {}
    controls = controls or ("packaging/debian/control", *(control_of(name) for name in BACKENDS))
    for paragraph in [part for control in controls for part in text(control).split("\n\n")[1:]]:
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
        # A backend whose compiler is not free has no RPM package.
        for name in set(BACKENDS) - set(FREE):
            del self.debian[f"bitnet-backend-{name}"]

    def test_names_of_debian_and_rpm_are_equal(self):
        self.assertGreater(len(self.debian), 10)
        self.assertEqual(set(self.debian), set(self.rpm))
        for name, sections in self.rpm.items():
            self.assertLessEqual({"package", "description", "files"}, set(sections), name)

    def test_descriptions_of_debian_and_rpm_are_equal(self):
        for name, fields in self.debian.items():
            short, _, long = fields["Description"].partition("\n")
            summary = re.search(r"^Summary: *(.*)$", self.rpm[name]["package"], re.MULTILINE)[1]
            if not name.endswith("devel"):  # Debian's are named after the library
                self.assertEqual(plain(short), plain(summary), name)
            self.assertEqual(plain(long), plain(self.rpm[name]["description"]), name)

    def test_debian_and_rpm_have_the_same_components(self):
        """A component of CMake is in both or in none."""
        backends = {f"backend-{name}" for name in FREE}
        debian = set(re.findall(r"\b([a-z]+)=(?:lib)?bitnet", text("packaging/debian/rules"))) | backends
        spec = spec_of_x86_64()
        rpm = set(re.search(r"^%global components (.*)$", spec, re.MULTILINE)[1].split())
        self.assertEqual(debian, rpm)
        self.assertEqual({name.removeprefix("bitnet-") for name in self.rpm if "Enhances:" in self.rpm[name]["package"]
                          and "backend" in name}, backends)
        built = re.search(r"-DBITNET_BACKENDS=([a-z;-]+)'", spec)[1].split(";")
        self.assertEqual({f"backend-{name}" for name in built}, backends)

    def test_all_of_graphics_processors(self):
        """Every free backend but cpu is in bitnet-backend-gpu, recommended if some architecture lacks it, and the
        program suggests every backend but cpu."""
        free = {f"bitnet-backend-{name}" for name in FREE if name != "cpu"}
        self.assertGreater(len(free), 1)
        gpu, program = self.debian["bitnet-backend-gpu"], self.debian["bitnet"]
        everywhere = self.debian["bitnet-backend-cpu"]["Architecture"]
        needed = {name for name in free if self.debian[name]["Architecture"] == everywhere}
        self.assertGreater(len(needed), 1)
        for debian, rpm, names in ("Depends", "Requires", needed), ("Recommends", "Recommends", free - needed):
            self.assertEqual(set(re.findall(r"bitnet-backend-[\w-]+", gpu.get(debian, ""))), names)
            self.assertEqual({one.replace("%{name}", "bitnet") for one in re.findall(
                rf"^{rpm}: +(%\{{name\}}-backend-[\w-]+)$", self.rpm["bitnet-backend-gpu"]["package"], re.MULTILINE)}, names)
        self.assertEqual(set(re.findall(r"bitnet-backend-[\w-]+", program["Suggests"])) - {"bitnet-backend-gpu"},
                         {f"bitnet-backend-{name}" for name in BACKENDS if name != "cpu"})

    def test_a_backends_package_has_the_backends_version(self):
        """A backend's package has the backend's version, in both; what depends on the core's has that."""
        spec = text("packaging/rpm/bitnet.spec")
        for name in FREE:
            macro = name.replace("-", "_")  # names of macros have no hyphen
            self.assertIn(f"Version: %{{version_{macro}}}", re.sub(" +", " ", self.rpm[f"bitnet-backend-{name}"]["package"]))
            self.assertIn(f"\n%global version_{macro} @version_{name}@\n", spec)
        below = spec.split("%global core_version", 1)[1]
        self.assertEqual([line for line in below.splitlines()[1:] if "%{version}" in line and "Source0" not in line], [],
                         "what it is there, the package above decides")

    def test_the_spec_is_built_with_the_versions_of_the_tree(self):
        """Up to rpmbuild itself, which here shows the versions that it would build."""
        with tempfile.TemporaryDirectory() as place:
            fake = pathlib.Path(place, "rpmbuild")
            fake.write_text("#!/bin/sh\nfor spec; do :; done\nsed -n 's/^%global version_//p' \"$spec\"\nexit 3\n", encoding="utf-8")
            fake.chmod(0o755)
            done = subprocess.run(["scripts/package", "rpm", "--in", f"{place}/in", "--to", f"{place}/to"], check=False, cwd=ROOT,
                                  capture_output=True, text=True, env={**os.environ, "PATH": f"{place}:{os.environ['PATH']}"})
        if "the build needs" in done.stderr:
            self.skipTest("packages that the build needs are missing")
        versions = subprocess.run(["scripts/check-versions", "--list"], check=True, cwd=ROOT, capture_output=True, text=True).stdout
        for line in versions.splitlines():
            if line.split()[0] in FREE:
                self.assertIn(line.replace("-", "_"), done.stdout, done.stderr)

    def test_needs_of_the_build(self):
        """scripts/package looks on any system for what the spec needs: what is no program has a rule there."""
        rules = re.search(r"^lacking\(\) \{(.*?)^\}", text("scripts/package"), re.MULTILINE | re.DOTALL)[1]
        needed = re.findall(r"^BuildRequires: *(\S+)", text("packaging/rpm/bitnet.spec"), re.MULTILINE)
        self.assertGreater(len(needed), 20)
        for name in needed:
            if not name.startswith(("pkgconfig(", "/usr/bin/")) and name not in ("cmake", "glslc"):
                self.assertIn(f"\n      {name}) ", rules)
        # The spec names each backend that is built, so the build fails without the needs of any of them.
        self.assertIn("rocm-device-libs", needed)

    def test_debian_and_rpm_have_the_same_relations_by_abi(self):
        """docs/adr/0031-packages-meet-by-abi.md, in both."""
        for name, sections in self.rpm.items():
            tags, fields = sections["package"], self.debian[name]
            for relation, debian, rpm in (
                    ("Provides", "bitnet-host-abi-${abi:Oldest}, bitnet-host-abi-${abi:Version}",
                     "Provides: %{name}-host-abi-%{oldest_abi}%{?_isa} Provides: %{name}-host-abi-%{abi}%{?_isa}"),
                    ("Depends", "bitnet-host-abi-${abi:Version} | bitnet-host-abi-${abi:Oldest}",
                     "Requires: (%{name}-host-abi-%{abi}%{?_isa} or %{name}-host-abi-%{oldest_abi}%{?_isa})"),
                    ("Provides", "bitnet-backend-abi-${abi:Oldest}, bitnet-backend-abi-${abi:Version}",
                     "Provides: %{name}-backend-abi-%{oldest_abi}%{?_isa} Provides: %{name}-backend-abi-%{abi}%{?_isa}"),
                    ("Depends", "bitnet-backend-cpu | bitnet-backend-abi-${abi:Version} | bitnet-backend-abi-${abi:Oldest}",
                     "Requires: (%{name}-backend-cpu%{?_isa} or %{name}-backend-abi-%{abi}%{?_isa} or "
                     "%{name}-backend-abi-%{oldest_abi}%{?_isa})"),
                    ("Recommends", "bitnet-model-tiny", "Recommends: %{name}-model-tiny")):
                self.assertEqual(debian in fields.get(relation, ""), rpm in " ".join(tags.split()), f"{name}: {rpm}")


class Backends(unittest.TestCase):
    """Packages whose sources are built against the SDK alone, by one recipe."""

    def test_meet_the_core_alike(self):
        cpu = of_debian()["bitnet-backend-cpu"]
        for name in BACKENDS:
            fields = of_debian(control_of(name))[f"bitnet-backend-{name}"]
            for field in ("Multi-Arch", "Provides", "Enhances"):
                self.assertEqual(fields[field].strip(), cpu[field].strip(), f"{name}: {field}")
            self.assertEqual(fields["Architecture"].split(), ["amd64"] if name == "level-zero" else ["amd64", "arm64"], name)
            own = {part.strip() for part in fields["Depends"].split(",")}
            self.assertLessEqual({part.strip() for part in cpu["Depends"].split(",")}, own, name)
            self.assertTrue(text(control_of(name)).startswith(f"Source: bitnet-backend-{name}\n"))
            self.assertIn("bitnet-backend-dev,", text(control_of(name)).split("\n\n", maxsplit=1)[0])

    def test_each_backend_has_one(self):
        listed = subprocess.run([ROOT / "scripts/check-versions", "--list"], capture_output=True, text=True, check=True).stdout
        self.assertLessEqual({line.split()[0] for line in listed.splitlines()} - {"bitnet"}, set(BACKENDS))

    def test_combinations_have_every_backend_with_a_device(self):
        """The lane builds all of them, and all of those for GPUs, in the words of BITNET_BACKENDS."""
        functions = re.search(r"^backends_with_device\(\) \{.*?^\}\n.*?^combinations\(\) \{.*?^\}\n", text("scripts/test"),
                              re.MULTILINE | re.DOTALL)[0]
        made = subprocess.run(["bash", "-euc", functions + "combinations"], cwd=ROOT, capture_output=True, text=True, check=True)
        rows = dict(line.split("|") for line in made.stdout.splitlines())
        with_device = [name for name in BACKENDS if (ROOT / "plugins" / name).is_dir()]
        self.assertEqual(rows["all"].split(), with_device)
        self.assertEqual(rows["gpu"].split(),
                         [name for name in with_device if "\nclass: gpu" in text(f"plugins/{name}/{name}.yaml")])
        self.assertEqual(rows["cpu;vulkan"], "cpu vulkan")

    def test_debians_changelog_is_made_of_the_backends_own(self):
        """Debian's is made of the backend's own: maintainer, version, time, entries."""
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            (tree / "packaging/backend").mkdir(parents=True)
            shutil.copy(ROOT / "packaging/backend/changelog", tree / "packaging/backend")
            (tree / "plugins/one").mkdir(parents=True)
            (tree / "plugins/one/CHANGELOG.md").write_text(
                "# Changes\n\n## Unreleased\n\n- It does\n  [more](a.md) of `b`.\n- And " + "much " * 20 + "else.\n\n"
                "## 0.3.0 - 2026-02-03\n\n- First.\n", encoding="utf-8")
            made = subprocess.run([tree / "packaging/backend/changelog", "one", "0.3.1", "1790000000"], capture_output=True,
                                  text=True, check=True).stdout
        self.assertEqual(made, """\
bitnet-backend-one (0.3.1-1) unstable; urgency=medium

  * It does more of b.
  * And much much much much much much much much much much much much much much
    much much much much much much else.

 -- The bitnet authors <maintainers@users.noreply.github.com>  Mon, 21 Sep 2026 14:13:20 +0000

bitnet-backend-one (0.3.0-1) unstable; urgency=medium

  * First.

 -- The bitnet authors <maintainers@users.noreply.github.com>  Tue, 03 Feb 2026 12:00:00 +0000
""")

    def test_asks_for_nothing_of_the_vendor(self):
        control = text(control_of("cuda"))
        self.assertIn("\nSection: contrib/", control)
        fields = of_debian(control_of("cuda"))["bitnet-backend-cuda"]
        self.assertNotIn("Recommends", fields)
        self.assertNotRegex(fields["Depends"], "cuda|nvidia")
        for name, others in of_debian().items():
            if name == "bitnet-backend-cuda":
                continue
            for field in ("Depends", "Recommends"):
                self.assertNotIn("cuda", others.get(field, ""), f"{name}: {field}")

    def test_shared_memory_is_in_no_unnamed_namespace(self):
        """nvcc names shared memory of an unnamed namespace after the folder that it compiles in."""
        looked = 0
        for file in (*ROOT.glob("plugins/cuda/kernels/*.cu*"), *ROOT.glob("plugins/gpu-common/simt/*.cu*")):
            for unnamed in re.findall(r"^namespace \{$.*?^\}  // namespace$", file.read_text(encoding="utf-8"),
                                      re.MULTILINE | re.DOTALL):
                self.assertNotRegex(unnamed, r"(?<!extern )__shared__", f"{file}: give its function a namespace")
                looked += 1
        if (ROOT / "plugins/cuda").is_dir():
            self.assertGreater(looked, 5)

    def test_kernels_depend_on_all_that_they_include(self):
        """CMake finds no headers of kernels by itself, so a changed one that is not listed would leave old kernels."""
        if not (ROOT / "plugins/gpu-common").is_dir():
            self.skipTest("plugins/gpu-common is not in this tree")
        listed = re.search(r"foreach\(name IN ITEMS ([a-z ]+)\)", text("plugins/gpu-common/simt/headers.cmake"))[1]
        common = ROOT / "plugins/gpu-common"
        included, left = set(), [*common.glob("simt/*"), common / "kernels.hpp", common / "kernel_list.hpp", *ROOT.glob("plugins/*/kernels/*.cu*")]
        while left:
            for header in re.findall(r'^#include "bitnet/abi/(\w+)\.h"', left.pop().read_text(encoding="utf-8"), re.MULTILINE):
                if header not in included:
                    included.add(header)
                    left.append(ROOT / f"abi/include/bitnet/abi/{header}.h")
        self.assertEqual(included, set(listed.split()))

    def test_the_source_is_whole(self):
        """What is included there is in it or in the SDK."""
        for name in BACKENDS:
            folders = [ROOT / "plugins" / name, ROOT / "plugins/gpu-common"]
            if not folders[0].is_dir():  # it was taken out of the tree
                continue
            if name == "cpu":
                folders.pop()
            own = [*folders, folders[0] / "kernels", folders[0] / "ops", ROOT / "plugins", ROOT / "abi/include",
                   ROOT / "plugins/sdk/include"]
            allowed = {("abi", "include"), ("plugins", "sdk"), *(folder.relative_to(ROOT).parts for folder in folders)}
            looked = 0
            for file in [file for folder in folders for file in folder.rglob("*")
                         if file.suffix in (".cpp", ".hpp", ".cu", ".cuh")]:
                for header in re.findall(r'^#include "(.*)"', file.read_text(encoding="utf-8"), re.MULTILINE):
                    if (file.parent / header).is_file() or header in MADE_BY_CMAKE:
                        looked += 1
                        continue
                    found = next((folder / header for folder in own if (folder / header).is_file()), None)
                    self.assertIsNotNone(found, f"{file}: {header}")
                    self.assertIn(found.relative_to(ROOT).parts[:2], allowed, f"{file}: {header}")
                    looked += 1
            self.assertGreater(looked, 50, name)


# Words of scripts/package, its exit status, what it prints, why
OTHER_COMPILERS = [
    (("wheel", "--nvcc", "/bin/true"), 2, "Usage:", "a wheel has no kernels of cuda"),
    (("deb-backend", "vulkan", "--nvcc", "/bin/true"), 2, "Usage:", "of cuda alone"),
    (("gpu-bundle", "--build", "/tmp", "--nvcc", "/bin/true"), 2, "Usage:", "that build has its compiler"),
    (("gpu-bundle", "--nvcc", "/nonexistent/bin/nvcc"), 1, "/nonexistent/bin/nvcc is none", "a slip in the path"),
    (("gpu-bundle", "--nvcc", "/tmp"), 1, "/tmp is none", "a folder, though it can be searched"),
]


class OtherCompiler(unittest.TestCase):
    def test_another_compiler_is_rejected(self):
        for words, status, said, why in OTHER_COMPILERS:
            with self.subTest(why):
                done = subprocess.run([ROOT / "scripts/package", *words], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, status)
                self.assertIn(said, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
