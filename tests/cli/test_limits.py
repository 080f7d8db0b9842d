"""Each command under limits of the system: it ends by itself, and its message names the limit."""

import os
import resource
import subprocess
import unittest

import support
from support import needs_backend

NOBODY = 65534
KIB = 1024
RUN = ("run", "-p", "Once", "-n", "2", "--temp", "0")
COMMANDS = {
    "version": ("version",),
    "run": RUN,
    "run with threads": (*RUN, "-t", "4"),
    "list": ("backends", "list"),
    "tokenize": ("tokenize", "a b"),
    "inspect": ("inspect",),
    "convert": ("convert", "MODEL", "out.gguf", "--type", "i2_s"),
}
# Messages for an exceeded limit; `ulimit -s` is the size of stacks, which exist already.
NAMED = {
    resource.RLIMIT_NOFILE: "ulimit -n",
    resource.RLIMIT_FSIZE: "ulimit -f",
    resource.RLIMIT_NPROC: "ulimit -u",
    resource.RLIMIT_AS: "ulimit -v",
    resource.RLIMIT_STACK: "ulimit -s",
}
# (limit, value, why)
ROWS = [
    (resource.RLIMIT_NOFILE, 4, "nearly no file"),
    (resource.RLIMIT_NOFILE, 8, "a few files"),
    (resource.RLIMIT_NOFILE, 14, "some files, and no pipe to a child"),
    (resource.RLIMIT_NOFILE, 24, "as many as most commands need"),
    (resource.RLIMIT_FSIZE, 0, "no file can be written"),
    (resource.RLIMIT_FSIZE, 40 * KIB, "a small file can"),
    (resource.RLIMIT_AS, 60 * KIB * KIB, "room for libraries and little more"),
    (resource.RLIMIT_AS, 100 * KIB * KIB, "no room for stacks of 8 MB"),
    (resource.RLIMIT_AS, 400 * KIB * KIB, "room for most"),
    (resource.RLIMIT_STACK, 128 * KIB, "a small stack, of threads too"),
    (resource.RLIMIT_NPROC, 1, "no thread and no child"),
    (resource.RLIMIT_NPROC, 3, "two of them"),
    (resource.RLIMIT_NPROC, 20, "some"),
]


@needs_backend
class Limits(support.Case):
    def limited(self, limit, value, words):
        """As a user without privileges where the limit does not count for root."""
        def enter():
            resource.setrlimit(limit, (value, value))
            if limit == resource.RLIMIT_NPROC and os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
        if os.geteuid() == 0:
            owner = NOBODY if limit == resource.RLIMIT_NPROC else 0
            os.chown(self.home, owner, owner)
        words = [support.demo_model() if w == "MODEL" else w for w in words]
        if words[0] == "inspect":
            words.append(support.demo_model())
        try:
            done = subprocess.run([support.PROGRAM, *words], capture_output=True, cwd=self.home,
                                  stdin=subprocess.DEVNULL, env=self.environment(), preexec_fn=enter,
                                  timeout=support.TIMEOUT_S)
        except PermissionError:
            self.skipTest("others may not reach the program of this build")
        return support.Result(done.returncode, done.stdout, done.stderr)

    def test_each_command_reports_each_limit_and_never_crashes(self):
        os.chmod(self.home, 0o755)
        for limit, value, why in ROWS:
            for name, words in COMMANDS.items():
                with self.subTest(limit=NAMED[limit], value=value, why=why, command=name):
                    result = self.limited(limit, value, words)
                    if "error while loading shared libraries" in result.stderr:
                        continue  # the dynamic linker has its own words
                    self.assertGreaterEqual(result.code, 0, f"killed by a signal: {result}")
                    self.assertIsNone(support.SANITIZER.search(result.stderr), result)
                    if result.code != 0:
                        self.assertTrue(result.errors, result)
                        self.assertIn(NAMED[limit], result.stderr, result)
                    elif os.path.exists(self.path("out.gguf")):
                        os.unlink(self.path("out.gguf"))

    def test_threads_that_were_not_asked_for_by_number_may_be_fewer(self):
        os.chmod(self.home, 0o755)
        result = self.limited(resource.RLIMIT_NPROC, 20, RUN)
        self.assertEqual(result.code, 0, result)
        self.assertTrue(result.stdout, result)


if __name__ == "__main__":
    support.main()
