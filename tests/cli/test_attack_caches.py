"""Caches are written only into folders that no other user can redirect; otherwise they are not written."""

import os
import shutil
import subprocess
import unittest

import support
from support import needs_backend
from test_pack_cache import larger_model

NOBODY = 65534


def everything(folder):
    """{path: (mode, uid)} of all below and of the folder itself."""
    found = {folder: os.lstat(folder)}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(place, name)
            found[path] = os.lstat(path)
    return {path: (s.st_mode, s.st_uid) for path, s in found.items()}


@unittest.skipUnless(os.geteuid() == 0, "only root has folders of others")
@needs_backend
class Root(support.Case):
    def setUp(self):
        super().setUp()
        os.chmod(self.home, 0o755)
        self.model = larger_model(self.path("larger.gguf"))
        self.precious = self.path("precious")  # what a link leads to
        os.makedirs(self.precious)
        os.chmod(self.precious, 0o750)
        self.theirs = self.path("theirs")  # the home of another user
        os.makedirs(self.theirs)
        os.chown(self.theirs, NOBODY, NOBODY)

    def run_with(self, **variables):
        before = everything(self.precious)
        result = self.ok("run", "-m", self.model, "-p", "Once", "-n", "2", "--temp", "0", env=variables)
        self.assertEqual(everything(self.precious), before, "written to or changed through a link")
        return result

    def test_the_cache_of_another_user_is_not_used(self):
        os.symlink(self.precious, self.theirs + "/bitnet")
        os.lchown(self.theirs + "/bitnet", NOBODY, NOBODY)
        before = everything(self.theirs)
        self.run_with(XDG_CACHE_HOME=self.theirs)
        self.run_with(XDG_CACHE_HOME="relative", HOME=self.theirs)
        self.assertEqual(everything(self.theirs), before)

    def test_links_of_another_user_are_not_followed(self):
        cache = self.path("cache")
        os.makedirs(cache + "/bitnet")
        os.symlink(self.precious, cache + "/bitnet/packed")
        os.lchown(cache + "/bitnet/packed", NOBODY, NOBODY)
        result = self.run_with()
        self.assertIn("packed weights are not", result.stderr)
        self.assertIn("uid 65534", result.stderr)

    def test_a_folder_of_another_user_is_not_used(self):
        packed = self.path("cache/bitnet/packed")
        os.makedirs(packed)
        os.chown(packed, NOBODY, NOBODY)
        self.assertIn("packed weights are not", self.run_with().stderr)
        self.assertEqual(os.listdir(packed), [])

    def test_a_folder_that_others_may_write_is_not_used(self):
        packed = self.path("cache/bitnet/packed")
        os.makedirs(packed)
        os.chmod(packed, 0o777)
        self.assertIn("packed weights are not", self.run_with().stderr)
        self.assertEqual(os.listdir(packed), [])
        self.assertEqual(os.stat(packed).st_mode & 0o7777, 0o777, "left as it was")

    def test_the_folder_of_probes_is_judged_before_it_is_made(self):
        before = everything(self.theirs)
        self.ok("backends", "probe", env={"BITNET_PROBE_CACHE": self.theirs + "/a/b"})
        self.assertEqual(everything(self.theirs), before)

    def test_raised_privileges_keep_nothing(self):
        program = self.path("raised")
        shutil.copy(support.PROGRAM, program)
        os.chmod(program, 0o4755)
        done = subprocess.run(
            [program, "run", "-m", self.model, "-p", "Once", "-n", "2", "--temp", "0"],
            capture_output=True, cwd="/", user=NOBODY, group=NOBODY, extra_groups=[],
            env=self.environment({"XDG_CACHE_HOME": self.theirs,
                                  "BITNET_PROBE_CACHE": self.theirs + "/probe"}),
            timeout=support.TIMEOUT_S)
        if b"error while loading shared libraries" in done.stderr:
            self.skipTest("the library cannot be found with raised privileges")
        self.assertEqual(os.listdir(self.theirs), [], done.stderr)


if __name__ == "__main__":
    support.main()
