"""Plugins and a core of earlier minors work with the current build, and the current plugins with that core;
minors that are no longer supported are rejected with a message, on both sides. Programs of earlier
versions print the same with the current library as if they were compiled now.

fossils_test.py SOURCE BINARY COMPILER CORE_SIDE [sanitized]

Each folder abi-* and program-* beside this file is a fossil of scripts/make-fossil. With `sanitized`
the old core does not load today's plugins, and no old program today's library, which need the
sanitizer's run time.
"""

import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
FOSSILS = sorted(HERE.glob("abi-*"))
OLDEST = (0, 1)  # oldest minor that today's core supports: docs/adr/0001
SPOKEN = [f for f in FOSSILS if tuple(int(n) for n in f.name[4:].split(".")) >= OLDEST]
PROGRAMS = sorted(HERE.glob("program-*"))
PLUGINS = {"null": "0 devices", "plain-c": "relu2 right"}  # of a fossil, and what a core sees of them
MOST_BYTES = 60 * 1024

source = binary = compiler = core_side = None
sanitized = False


def run(*words, **more):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=120, **more)


def library(name):
    return f"libbitnet-backend-{name}.so"


class Fossils(unittest.TestCase):
    def setUp(self):
        self.assertTrue(SPOKEN, "there is no fossil of a minor that is spoken")
        self.assertTrue(set(FOSSILS) - set(SPOKEN), "there is none that is not")
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("BITNET_", "XDG_"))}
        self.env = clean | {"HOME": str(self.folder), "LC_ALL": "C.UTF-8"}

    def bitnet(self, *words):
        # A cache of its own: root's is the machine's, and cached probes of others would be used.
        return run(binary / "bin/bitnet", *words, "--probe-cache", self.folder / "answers",
                   env=self.env, cwd=self.folder)

    def installed(self, fossil):
        """A copy that belongs to the user of the test, as a plugin must, and its folder of manifests."""
        place = self.folder / fossil.name
        place.mkdir(mode=0o755)
        for name in PLUGINS:
            file = place / library(name)
            shutil.copyfile(fossil / library(name), file)
            file.chmod(0o644)
            text = (fossil / f"{name}.yaml").read_text(encoding="utf-8")
            (place / f"50-{name}.yaml").write_text(text.replace(f"library: {library(name)}", f"library: {file}"),
                                                   encoding="utf-8")
        return place

    def test_fossils_have_their_checksums(self):
        for fossil in [*FOSSILS, *PROGRAMS]:
            with self.subTest(fossil.name):
                pins = dict(reversed(line.split()) for line in
                            (fossil / "SHA256SUMS").read_text(encoding="utf-8").splitlines())
                files = {file.name: file for file in fossil.iterdir() if file.name != "SHA256SUMS"}
                self.assertEqual(set(pins), set(files))
                for name, file in files.items():
                    self.assertEqual(hashlib.sha256(file.read_bytes()).hexdigest(), pins[name], name)
                self.assertLess(sum(file.stat().st_size for file in files.values()), MOST_BYTES)

    def test_today_s_core_takes_old_plugins(self):
        for fossil in SPOKEN:
            with self.subTest(fossil.name):
                place = self.installed(fossil)
                for name in PLUGINS:
                    lint = run(binary / "bin/bitnet-backend-lint", "--json", place / library(name), env=self.env)
                    self.assertEqual(lint.returncode, 0, lint.stdout)
                    self.assertEqual(json.loads(lint.stdout)["files"][0]["errors"], 0)
                listed = self.bitnet("backends", "info", "--probe-wait", "60000", "--backend-dir", place)
                self.assertEqual(listed.returncode, 0, listed.stderr)
                self.assertIn("BN-P-NO-DEVICE", listed.stdout)
                self.assertIn('"self_test":"relu2: right"', listed.stdout)
                # In this process, not in the probe's.
                loaded = self.bitnet("bench", "--list", "--device", "plain-c", "--backend-dir", place)
                self.assertEqual(loaded.returncode, 0, loaded.stderr)
                self.assertIn("| relu2.c | plain-c | reference | yes |", loaded.stdout)

    def test_the_old_core_takes_today_s_plugins(self):
        if sanitized:
            self.skipTest("an old core cannot load plugins with sanitizers")
        seen = PLUGINS | {"cpu": "relu2 right"}
        files = self.todays()
        if not files:
            self.skipTest("none of the plugins is in this tree")
        for fossil in SPOKEN:
            for name, file in files.items():
                with self.subTest(f"{fossil.name} {name}"):
                    done = run(self.runnable(fossil), file)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn(seen[name], done.stdout)
                    self.assertIn(f", ABI {fossil.name[4:]}\n", done.stdout)

    def test_today_s_core_and_plugins_agree_on_the_newest_minor(self):
        files = self.todays()
        if not files:
            self.skipTest("none of the plugins is in this tree")
        text = (source / "abi/include/bitnet/abi/base.h").read_text(encoding="utf-8")
        newest = ".".join(re.search(rf"^#define BITNET_ABI_{part} (\d+)u", text, re.M)[1] for part in ("MAJOR", "MINOR"))
        for name, file in files.items():
            with self.subTest(name):
                done = run(core_side, file)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f", ABI {newest}\n", done.stdout)

    def test_old_and_new_cores_see_the_same_of_old_plugins(self):
        for fossil in SPOKEN:
            for name, seen in PLUGINS.items():
                with self.subTest(f"{fossil.name} {name}"):
                    old = run(self.runnable(fossil), fossil / library(name))
                    new = run(core_side, fossil / library(name))
                    self.assertEqual((old.returncode, new.returncode), (0, 0), old.stderr + new.stderr)
                    self.assertEqual(old.stdout, new.stdout)
                    self.assertIn(seen, old.stdout)
                    self.assertIn(f", ABI {fossil.name[4:]}\n", new.stdout)

    def test_plugins_of_too_old_minors_are_rejected_with_a_reason(self):
        for fossil in set(FOSSILS) - set(SPOKEN):
            minor = fossil.name[4:]
            with self.subTest(fossil.name):
                place = self.installed(fossil)
                for name in PLUGINS:
                    lint = run(binary / "bin/bitnet-backend-lint", place / library(name), env=self.env)
                    self.assertNotEqual(lint.returncode, 0, lint.stdout)
                    self.assertIn("BN-A-MINOR", lint.stdout)
                listed = self.bitnet("backends", "--backend-dir", place, "--json")
                self.assertIn(f"speaks ABI {minor}, this core speaks 0.1", listed.stdout + listed.stderr)
                self.assertIn("build it again with the SDK of this bitnet", listed.stdout + listed.stderr)
            # An old core cannot even load plugins with sanitizers.
            for name, file in ({} if sanitized else self.todays()).items():
                with self.subTest(f"{fossil.name} {name}"):
                    done = run(self.runnable(fossil), file)
                    self.assertEqual(done.returncode, 1, done.stdout)
                    self.assertIn("entry: ", done.stderr)

    def test_another_layout_is_noticed(self):
        """Today's headers with a slot in the middle: what these tests are for."""
        if not (source / "plugins/null").is_dir():
            self.skipTest("plugins/null is not in this tree")
        include = self.folder / "include"
        shutil.copytree(source / "abi/include", include)
        header = include / "bitnet/abi/backend.h"
        text = header.read_text(encoding="utf-8")
        slot = "  bitnet_status (*device_count)("
        self.assertEqual(text.count(slot), 1)
        header.write_text(text.replace(slot, "  bitnet_status (*sooner)(bitnet_backend* self);\n" + slot),
                          encoding="utf-8")
        plugin = self.folder / library("null")
        built = run(compiler, "-std=c11", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{include}",
                    source / "plugins/null/null.c", "-o", plugin)
        self.assertEqual(built.returncode, 0, built.stderr)
        for fossil in SPOKEN:
            done = run(self.runnable(fossil), plugin)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("a required slot is empty", done.stderr)

    def test_old_programs_see_what_new_ones_see(self):
        self.needs_a_program()
        new = self.compiled(source / "abi/include")
        wanted = self.output_of(new)
        self.assertEqual(wanted.returncode, 0, wanted.stderr)
        self.assertIn("selected=cpu", wanted.stdout)
        self.assertIn("fox", wanted.stdout)
        for fossil in PROGRAMS:
            with self.subTest(fossil.name):
                old = self.output_of(self.copied(fossil / "program"))
                self.assertEqual(old.returncode, 0, old.stderr)
                self.assertEqual(old.stdout, wanted.stdout)

    def test_another_layout_of_options_is_noticed(self):
        """A member in the middle, as no later header may have it."""
        self.needs_a_program()
        include = self.folder / "include"
        shutil.copytree(source / "abi/include", include)
        header = include / "bitnet/bitnet.h"
        text = header.read_text(encoding="utf-8")
        member = "  uint32_t n_layers;"
        self.assertEqual(text.count(member), 1)
        header.write_text(text.replace(member, "  uint32_t sooner;\n" + member), encoding="utf-8")
        wrong = self.output_of(self.compiled(include))
        self.assertNotEqual(wrong.stdout, self.output_of(self.compiled(source / "abi/include")).stdout)

    def needs_a_program(self):
        self.assertTrue(PROGRAMS, "there is no program")
        if sanitized:
            self.skipTest("an old program cannot load a library with sanitizers")
        if not (source / "plugins/cpu").is_dir():
            self.skipTest("plugins/cpu is not in this tree")

    def compiled(self, include):
        program = self.folder / f"program-of-{include.parent.name}"
        built = run(compiler, "-std=c11", f"-I{include}", source / "tests/fossils/program.c",
                    self.library_folder() / "libbitnet.so", "-o", program)
        self.assertEqual(built.returncode, 0, built.stderr)
        return program

    def library_folder(self):
        return next(binary.glob("lib*/**/libbitnet.so")).parent

    def output_of(self, program):
        model = next((source / "models").glob("*.gguf"))
        return run(program, model, "Tell a story about a fox.", cwd=self.folder,
                   env=self.env | {"LD_LIBRARY_PATH": str(self.library_folder())})

    def copied(self, file):
        place = self.folder / f"{file.name}-{file.parent.name}"
        shutil.copyfile(file, place)
        place.chmod(0o755)
        return place

    def todays(self):
        names = [*PLUGINS, "cpu"]
        return {name: file for name in names for file in binary.glob(f"lib*/**/backends-*/{library(name)}")}

    def runnable(self, fossil):
        """The old core, whose mode a checkout or an archive may have lost."""
        return self.copied(fossil / "core_side")


if __name__ == "__main__":
    if platform.machine() != "x86_64":
        print("skip: fossils are of x86-64")
        sys.exit(77)
    source, binary, compiler, core_side = (pathlib.Path(word) for word in sys.argv[1:5])
    sanitized = "sanitized" in sys.argv[5:]
    unittest.main(argv=sys.argv[:1], verbosity=2)
