"""An installation for another architecture finds, probes and selects its backend, and generates the README's story."""

import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["BITNET_SOURCE_DIR"])


def without_another_root(words):
    """qemu's -L takes the root folder for one of its own, which a walk of trust from "/" down would see. The
    loader of that folder finds its libraries as well without."""
    at = words.index("-L")
    root = pathlib.Path(words[at + 1])
    words = words[:at] + words[at + 2:]
    path = words.index("-E") + 1
    words[path] += f":{root}/lib"
    return [*words, str(next((root / "lib").glob("ld-linux-*.so.*")))]


EMULATOR = without_another_root(shlex.split(os.environ["BITNET_EMULATOR"]))


def story_of_readme():
    """What the page says that the demo ends in."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"The first ends in\n\n```\n(.*?)```", text, re.DOTALL)[1]
    story, selection = block.rstrip("\n").rsplit("\n", 1)
    return " ".join(story.split()), selection


class Demo(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.prefix = pathlib.Path(self.folder.name) / "installed"
        subprocess.run(["cmake", "--install", os.environ["BITNET_BUILD"], "--prefix", self.prefix],
                       check=True, stdout=subprocess.DEVNULL)
        # The kernel cannot start the emulated probe; a script in its place starts the emulator.
        helper = self.prefix / os.environ["BITNET_HELPER"]
        emulated = helper.with_name(helper.name + ".emulated")
        helper.rename(emulated)
        helper.write_text(f"#!/bin/sh\nexec {shlex.join(EMULATOR)} {shlex.quote(str(emulated))} \"$@\"\n")
        helper.chmod(0o755)

    def bitnet(self, *words):
        home = pathlib.Path(self.folder.name) / "home"
        home.mkdir(exist_ok=True)
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}
        return subprocess.run([*EMULATOR, self.prefix / "bin/bitnet", *words], env=environment, cwd=home,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)

    def test_the_demo_tells_the_story_of_the_readme(self):
        story, selection = story_of_readme()
        # The running program is the loader, and there is no model beside it.
        model = next(self.prefix.glob("share/bitnet/models/*.gguf"))
        done = self.bitnet("run", "-m", model, "-p", "Once upon a time", "-n", "200", "--temp", "0", "--probe-wait", "300000")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(" ".join(done.stdout.split()), story)
        self.assertIn(selection, done.stderr)

    def test_it_says_what_it_is(self):
        done = self.bitnet("backends", "info")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("aarch64", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
