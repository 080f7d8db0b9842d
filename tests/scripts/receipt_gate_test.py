"""scripts/receipt-gate on the built program, and with a program that is not honest.

Usage: receipt_gate_test.py PROGRAM
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ""

# What `bitnet` is here: the real one, but for the words of $1.
LIAR = """#!/bin/sh
case "$*" in {when}) {does} ;; esac
exec {program} "$@"
"""


class ReceiptGate(unittest.TestCase):
    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="bitnet-gate-"))
        self.addCleanup(shutil.rmtree, self.home)

    def gate(self, *words, program=None):
        return subprocess.run([ROOT / "scripts/receipt-gate", "--program", program or PROGRAM, "--to", self.home / "to", *words],
                              check=False, capture_output=True, text=True, cwd="/",
                              env={**os.environ, "XDG_DATA_HOME": str(self.home / "data"), "XDG_CACHE_HOME": str(self.home / "cache")})

    def liar(self, when, does):
        file = self.home / "liar"
        file.write_text(LIAR.format(when=when, does=does, program=PROGRAM), encoding="utf-8")
        file.chmod(0o755)
        return file

    def failed(self, says, *words, **more):
        done = self.gate(*words, **more)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn(says, done.stderr)
        self.assertIn(str(self.home / "to"), done.stderr)

    def test_the_receipt_of_the_cpu_is_replayed_byte_equal(self):
        done = self.gate()
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(done.stdout, r"^32 tokens by cpu, \d+ of \d+ calls of reference kernels, replayed byte-equal; ")
        self.assertEqual(sorted(os.listdir(self.home / "to")), ["receipt-key.pub.pem", "receipt.json", "run.json", "verified.json"])

    def test_other_files_of_the_folder_stay(self):
        folder = self.home / "to"
        folder.mkdir()
        for name in ("mine", "receipt.json"):
            (folder / name).write_text("x", encoding="utf-8")
        self.assertEqual(self.gate("--device", "no-such-gpu").returncode, 0)
        self.assertEqual((folder / "mine").read_text(encoding="utf-8"), "x")
        self.assertNotEqual((folder / "receipt.json").read_text(encoding="utf-8"), "x")  # of the run that failed

    def test_a_device_that_is_missing(self):
        for words, code in ((("--device", "no-such-gpu"), 0), (("--device", "no-such-gpu", "--skip-exit"), 77)):
            done = self.gate(*words)
            self.assertEqual(done.returncode, code, done)
            self.assertRegex(done.stdout, r"^skipped \(no no-such-gpu: .+\)\n$")

    def test_a_processor_is_no_gpu(self):
        self.failed("verify-receipt ended with 3", "--gpu")

    def test_a_judge_that_accepts_everything(self):
        self.failed("verify-receipt of a forged receipt ended with 0", program=self.liar("*forged*", "exit 0"))

    def test_a_replay_that_is_another_text(self):
        self.failed("verify-receipt ended with", program=self.liar("*--replay*", f"exec {PROGRAM} \"$@\" --head fast -p other"))

    def test_a_program_that_is_missing(self):
        done = self.gate(program=self.home / "none")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("build it (scripts/demo), or name another with --program", done.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
