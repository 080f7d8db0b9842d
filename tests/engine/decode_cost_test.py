"""A token costs no allocation, and no system call but futex: 2N tokens cost what N do.

Run alone, it prints the figures:

    DECODE_COST=build/release/tests/engine/decode_cost python3 tests/engine/decode_cost_test.py
"""

import collections
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.environ.get("DECODE_COST", "build/release/tests/engine/decode_cost")
SOURCE = os.environ.get("BITNET_SOURCE_DIR",
                        os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
N = 100


def model():
    found = sorted(glob.glob(os.path.join(SOURCE, "models", "TinyTales*.gguf")))
    return found[-1] if found else None


def run(n, temperature, before=()):
    done = subprocess.run([*before, PROGRAM, model(), str(n), str(temperature)],
                          capture_output=True, text=True, timeout=200, check=False)
    if done.returncode == 77:
        raise unittest.SkipTest(done.stderr.strip())
    if done.returncode != 0:
        raise AssertionError(f"exit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def calls(n, temperature):
    """How often each system call was made, by all threads."""
    with tempfile.NamedTemporaryFile("r", prefix="decode-cost-") as table:
        run(n, temperature, ("strace", "-f", "-c", "-U", "name,calls", "-o", table.name))
        counts = collections.Counter()
        for line in table.read().splitlines():
            words = line.split()
            if len(words) == 2 and words[1].isdigit() and words[0] != "total":
                counts[words[0]] += int(words[1])
        return counts


def strace_works():
    if not shutil.which("strace"):
        return False
    return subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True,
                          check=False).returncode == 0


@unittest.skipUnless(model(), "models/ holds no TinyTales*.gguf")
class DecodeCost(unittest.TestCase):
    def test_allocations(self):
        for temperature, why in ((0, "the most likely token"), (0.8, "sampled")):
            with self.subTest(why):
                one, two = run(N, temperature), run(2 * N, temperature)
                self.assertEqual((one["tokens"], two["tokens"]), (N, 2 * N))
                print(f"{why}: {one['allocations']} allocations for {N} tokens, "
                      f"{two['allocations']} for {2 * N}")
                self.assertEqual(two["allocations"] - one["allocations"], 0)

    @unittest.skipUnless(strace_works(), "strace is not installed, or may not trace here")
    def test_system_calls(self):
        # A start may cost more than another: the probe cache of this user may be filled for
        # another environment meanwhile. What tokens cost is in each run, so the least counts.
        one, two = calls(N, 0), calls(2 * N, 0)
        for _ in range(5):
            more = {name: two[name] - one[name] for name in one | two if two[name] != one[name]}
            print(f"{N} more tokens made these calls more: {more}")
            more.pop("futex", None)  # of workers that sleep: strace makes them late
            # The start of two runs may differ by a call or two, as their threads race.
            many = {name: n for name, n in more.items() if n >= N // 10}
            if not many:
                break
            one, two = one & calls(N, 0), two & calls(2 * N, 0)
        self.assertEqual(many, {})


if __name__ == "__main__":
    outcome = unittest.main(verbosity=2, exit=False).result
    for test, reason in outcome.skipped:
        print(f"skip: {test}: {reason}")
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.testsRun and len(outcome.skipped) == outcome.testsRun else 0)
