#!/usr/bin/env python3
"""gpu_share.py with little work: its figures agree with each other, whatever they are."""

import json
import pathlib
import re
import subprocess
import sys
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "gpu_share.py"
DEVICE, BUILD = sys.argv[1], pathlib.Path(sys.argv[2])
CEILINGS = BUILD / f"tests/bench/gpu/bench_{DEVICE}_ceilings"
NAMES = ["read", "read of 2 MB", "copy", "copy command", "dot int8", "dot f32", "empty dispatch"]


def call(*words):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=280)


class Share(unittest.TestCase):
    def test_tables_come_from_what_was_measured(self):
        words = (sys.executable, SCRIPT, "--build", BUILD, "--device", DEVICE, "--rounds", 1,
                 "--tokens", 3, "--megabytes", 8)
        done = call(*words)
        if done.returncode == 77:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in NAMES:
            self.assertRegex(done.stdout, rf"\| {name} \| [0-9.]+ \([0-9.]+ to [0-9.]+\) [a-zA-Z/]+ \|")
        row = re.search(rf"^\| TinyTales .* \| {DEVICE} \| ([0-9.]+) \(.*\) \| ([0-9.]+) \| ([0-9.]+) "
                        r"\| ([0-9.]+) \| ([0-9.]+) \| [0-9]+ % \|$", done.stdout, re.M)
        self.assertTrue(row, done.stdout)
        per_second, megabytes = float(row[2]), float(row[3])
        self.assertGreater(per_second, 0)
        self.assertAlmostEqual(megabytes, 1.5, delta=0.1)  # the weights of the demo model
        self.assertRegex(done.stdout, rf"linear(_ternary)?\.ternary2\.{DEVICE}` \| 15 \|")
        self.assertIn("| between kernels |", done.stdout)

    def test_each_ceiling_has_a_sample_for_each_round(self):
        done = call(CEILINGS, "--json", "--rounds", 3, "--megabytes", 8)
        if done.returncode == 77:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(found["api"], DEVICE)
        self.assertEqual([c["name"] for c in found["ceilings"]], NAMES)
        for c in found["ceilings"]:
            self.assertEqual(len(c["samples"]), 3)
            self.assertEqual([c["least"], c["median"], c["most"]], sorted(c["samples"]))
            self.assertGreater(c["least"], 0)

    def test_wrong_arguments_are_rejected(self):
        self.assertEqual(call(CEILINGS, "--device", 99).returncode, 77)
        for wrong in (["--rounds", 0], ["--rounds"], ["--rounds", "x"], ["--fast"]):
            done = call(CEILINGS, *wrong)
            self.assertEqual(done.returncode, 2, wrong)
            self.assertIn("expected", done.stderr)


if __name__ == "__main__":
    outcome = unittest.main(argv=sys.argv[:1], verbosity=2, exit=False).result
    for test, reason in outcome.skipped:
        print(f"skipped {test}: {reason}", file=sys.stderr)
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped else 0)
