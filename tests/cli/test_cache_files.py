"""Any object at the path of a cache file: the program continues without a delay."""

import glob
import os
import shutil
import socket
import subprocess
import unittest

import support
from support import needs_backend

RUN = ("run", "-p", "Once", "-n", "2", "--temp", "0")
SECONDS = 120  # limit of a run: one that opened a pipe would never end


def pipe(path):
    os.mkfifo(path, 0o600)


def folder(path):
    os.makedirs(path)


def a_socket(path):
    here = os.getcwd()
    os.chdir(os.path.dirname(path))  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(os.path.basename(path))
    finally:
        os.chdir(here)


def dangling(path):
    os.symlink("/proc/nowhere/at/all", path)  # even root cannot make a folder there


def device(path):
    os.symlink("/dev/zero", path)


def huge(path):
    with open(path, "wb") as f:
        f.truncate(1 << 40)
    os.chmod(path, 0o600)


def noise(path):
    with open(path, "wb") as f:
        f.write(os.urandom(5000))
    os.chmod(path, 0o600)


def unreadable(path):
    with open(path, "wb") as f:
        f.write(b"x")
    os.chmod(path, 0)


KINDS = [pipe, folder, a_socket, dangling, device, huge, noise, unreadable]


@needs_backend
class Files(support.Case):
    def answer(self, **more):
        result = self.ok(*RUN, timeout=SECONDS, **more)
        self.assertNotIn("reinstall", result.stderr)
        return result

    def put(self, kind, path):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)
        kind(path)

    def test_each_kind_of_file_in_the_place_of_each_that_is_kept(self):
        expected = self.answer().stdout
        places = [p for p in glob.glob(self.home + "/cache/**", recursive=True) if os.path.isfile(p)]
        self.assertTrue([p for p in places if p.endswith(".probe")], places)
        self.assertTrue([p for p in places if p.endswith(".lock")], places)
        for place in places:
            for kind in KINDS:
                with self.subTest(place=os.path.basename(place), kind=kind.__name__):
                    self.put(kind, place)
                    for _ in range(2):  # the second start finds the files of the first
                        self.assertEqual(self.answer().stdout, expected)
                    if place.endswith(".probe") and kind in (pipe, a_socket):
                        self.assertIn("is not a regular file", self.answer().stderr)
            if os.path.isdir(place) and not os.path.islink(place):
                shutil.rmtree(place)
            elif os.path.lexists(place):
                os.unlink(place)
            self.answer()

    def test_any_file_in_the_place_of_a_folder_changes_no_answer(self):
        expected = self.answer().stdout
        for place in ("cache/probe", "cache/bitnet", "cache"):
            for kind in [k for k in KINDS if k is not folder]:
                with self.subTest(place=place, kind=kind.__name__):
                    self.put(kind, self.path(place))
                    self.assertEqual(self.answer().stdout, expected)
            os.unlink(self.path(place))
            self.answer()

    def test_an_answer_that_cannot_be_cached_is_given_and_reported(self):
        self.answer()
        (kept,) = glob.glob(self.home + "/cache/probe/cpu-*.probe")
        self.put(pipe, kept)
        why = self.ok("backends", "info", "cpu", timeout=SECONDS)
        self.assertIn("the answer is not remembered", why.text)
        self.assertIn("it is no regular file; remove it", why.text)

    def test_special_files_as_config_do_not_block_a_start(self):
        os.makedirs(self.path("config/bitnet"))
        for kind in KINDS:
            if kind in (huge, noise) or (kind is unreadable and os.geteuid() == 0):
                continue  # these are read, and rejected for their content
            with self.subTest(kind=kind.__name__):
                self.put(kind, self.path("config/bitnet/bitnet.yaml"))
                result = self.answer()
                if kind in (pipe, device):
                    self.assertIn("is no regular file", result.stderr)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "only root can mount")
    def test_a_read_only_cache_does_not_change_the_text(self):
        expected = self.answer().stdout
        for warm in (True, False):
            if not warm:
                shutil.rmtree(self.path("cache"))
                os.makedirs(self.path("cache/probe"))
                os.makedirs(self.path("cache/bitnet"))
            line = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
            done = subprocess.run(["unshare", "-m", "sh", "-c", line, "sh", self.path("cache"),
                                   support.PROGRAM, *RUN], capture_output=True, cwd=self.home,
                                  env=self.environment(), timeout=SECONDS)
            if b"mount:" in done.stderr or b"unshare:" in done.stderr:
                self.skipTest("nothing can be mounted here")
            self.assertEqual((done.returncode, done.stdout), (0, expected), done.stderr)
            self.assertNotIn(b"reinstall", done.stderr)


if __name__ == "__main__":
    support.main()
