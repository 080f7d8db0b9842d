"""BITNET_BACKENDS chooses what is built, and a backend's VERSION is written once: cmake/BitnetBackends.cmake and
cmake/BitnetBackend.cmake, in a small tree of their own."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

TOP = """cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES {languages})
list(APPEND CMAKE_MODULE_PATH {modules})
set(BITNET_BACKEND_DIR lib/backends)
set(BITNET_MANIFEST_DIR share/backends.d)
include(BitnetBackend)
include(BitnetBackends)
bitnet_add_plugins()
"""
# folder, class and further lines of its manifest, what its CMakeLists.txt does
PLUGINS = [
    ("cpu", "cpu", "present"),
    ("gamma", "gpu", "present"),
    ("lacking", "gpu       # as a manifest may go on", "lacks"),
    ("other", "gpus", "present"),
    ("rare", "gpu\nby_name_only: true   # not among those of gpu", "present"),
    ("ready", "gpu\nby_name_only: false", "present"),
    ("shared", None, "present"),  # no backend: no manifest
]
WORDS = {
    "present": 'message(STATUS "added {name}")\nadd_custom_target(bitnet-backend-{name})\n',
    "lacks": 'bitnet_skip_backend({name} "a compiler is needed")\nreturn()\n',
}
# BITNET_BACKENDS, what is added, why
CHOICES = [
    (None, "cpu gamma other rare ready shared", "all is the default"),
    ("all", "cpu gamma other rare ready shared", "all has every backend, by_name_only too"),
    ("none", "shared", "a core by itself, as its package is"),
    ("cpu", "cpu shared", "one by its name"),
    ("cpu;gamma", "cpu gamma shared", "two"),
    ("gamma;cpu;gamma", "cpu gamma shared", "twice is once, in any order"),
    ("gpu", "gamma ready shared", "no cpu, none of another class, and none that is by_name_only"),
    ("gpu;rare", "gamma rare ready shared", "a backend that is by_name_only has its name"),
    ("cpu;gpu", "cpu gamma ready shared", "gpu beside a name"),
]
# BITNET_BACKENDS, what is said, why
REJECTED = [
    ("rocm", ("names 'rocm'", "cpu, gamma, lacking, other, rare, ready", "gpu or all, or none alone"), "no such folder"),
    ("cpu;Gamma", ("names 'Gamma'",), "names are those of folders, case too"),
    ("cpu,gamma", ("names 'cpu,gamma'", "with ; between them"), "the usual slip"),
    ("shared", ("names 'shared'",), "no manifest, so no backend"),
    ("cpu;none", ("names 'none'",), "none contradicts a name"),
    ("", ("is empty; none is the word",), "an unset variable of a script"),
    ("lacking", ("lacking was asked for by name and cannot be built: a compiler is needed", "leave lacking out"),
     "a name is a demand"),
    ("all;lacking", ("lacking was asked for by name",), "beside all, too"),
]
# VERSION in CMake, the manifest's line, what is said or None
VERSIONS = [
    ("VERSION 0.1.1", "version: @BITNET_BACKEND_VERSION@", None),
    ("VERSION 0.1.1~rc1", "version: @BITNET_BACKEND_VERSION@   # a comment", None),
    ("VERSION 0.1.1", "version: 0.1.0", "VERSION is 0.1.1, and"),
    ("VERSION 0.1.1", "version: 0.1.10", "VERSION is 0.1.1, and"),
    ("VERSION one", "version: one", "VERSION is numbers such as 0.1.1, not 'one'"),
    ("", "version: 7.8.9", None),  # an author's manifest with both
]


class Configured(unittest.TestCase):
    languages = "NONE"

    def setUp(self):
        self.tree = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.tree)
        self.write("CMakeLists.txt", TOP.format(languages=self.languages, modules=ROOT / "cmake"))

    def write(self, name, text):
        (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
        (self.tree / name).write_text(text, encoding="utf-8")

    def configure(self, *options):
        done = subprocess.run(["cmake", "-S", self.tree, "-B", self.tree / "build", *options], capture_output=True, text=True,
                              check=False)
        done.words = " ".join(done.stderr.split())  # CMake breaks lines
        return done


class Choice(Configured):
    def setUp(self):
        super().setUp()
        for name, of_class, what in PLUGINS:
            self.write(f"plugins/{name}/CMakeLists.txt", WORDS[what].format(name=name))
            if of_class:
                self.write(f"plugins/{name}/{name}.yaml", f"schema: 1\nname: {name}\nclass: {of_class}\n")

    def choose(self, backends):
        return self.configure(*([] if backends is None else [f"-DBITNET_BACKENDS={backends}"]))

    def test_the_backends_of_a_choice_are_added(self):
        for backends, added, why in CHOICES:
            with self.subTest(backends, why=why):
                done = self.choose(backends)
                self.assertEqual(done.returncode, 0, done.stderr)
                said = [line.removeprefix("-- added ") for line in done.stdout.splitlines() if line.startswith("-- added ")]
                self.assertEqual(" ".join(sorted(said)), added)
                wanted = backends in (None, "all") or backends is not None and "gpu" in backends
                self.assertEqual("Backend lacking is not built: a compiler is needed" in done.stdout, wanted)
                shutil.rmtree(self.tree / "build")

    def test_wrong_choices_are_rejected_by_name(self):
        for backends, said, why in REJECTED:
            with self.subTest(backends, why=why):
                done = self.choose(backends)
                self.assertNotEqual(done.returncode, 0)
                for words in said:
                    self.assertIn(words, done.words)
                shutil.rmtree(self.tree / "build")

    def test_files_of_an_earlier_choice_are_removed(self):
        self.assertEqual(self.choose("cpu;gamma").returncode, 0)
        files = {name: [f"build/lib/backends/libbitnet-backend-{name}.so", f"build/share/backends.d/50-{name}.yaml"]
                 for name in ("cpu", "gamma")}
        for file in sum(files.values(), []):
            self.write(file, "")
        self.assertEqual(self.choose("cpu").returncode, 0)
        self.assertTrue(all((self.tree / file).exists() for file in files["cpu"]))
        self.assertFalse(any((self.tree / file).exists() for file in files["gamma"]), "the program would still find it")


class Version(Configured):
    languages = "C CXX"

    def test_the_version_comes_from_the_manifest(self):
        self.write("plugins/one/one.c", "const char* version = BITNET_BACKEND_VERSION;\n")
        for word, line, said in VERSIONS:
            with self.subTest(word, line=line):
                self.write("plugins/one/CMakeLists.txt", f"set(BITNET_BACKEND_STANDALONE ON)\nbitnet_add_backend(one {word} SOURCES one.c)\n")
                self.write("plugins/one/one.yaml", f"name: one\n{line}\n")
                done = self.configure("-G", "Ninja")
                if said:
                    self.assertNotEqual(done.returncode, 0)
                    self.assertIn(said, done.words)
                    continue
                # The contract's target is not here: CMake complains when it generates, after what is looked at.
                made = (self.tree / "build/share/backends.d/50-one.yaml").read_text(encoding="utf-8")
                version = word.removeprefix("VERSION ") or "7.8.9"
                self.assertIn(f"version: {version}", made)


if __name__ == "__main__":
    unittest.main()
