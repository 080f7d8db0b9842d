"""A token needs no allocation, and no system call except futex: 2N tokens need as many as N.

Run alone, it prints the figures:

    DECODE_COST=build/release/tests/engine/decode_cost python3 tests/engine/decode_cost_test.py
"""

import collections
import glob
import json
import os
import re
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
    """How often each system call was made while tokens were generated: by the threads that
    generate, and by those that watch children, which sleep in poll().
    """
    with tempfile.NamedTemporaryFile("r", prefix="decode-cost-") as trace:
        run(n, temperature, ("strace", "-f", "-o", trace.name))
        lines = trace.read().splitlines()
    begin, end = (next(i for i, line in enumerate(lines) if f"decode_cost: {mark}" in line)
                  for mark in ("begin", "end"))
    # A call that another thread interrupts is on two lines; the second has no "name(".
    named = [(at, *match.groups()) for at, line in enumerate(lines)
             if (match := re.match(r"(\d+) +(\w+)\(", line))]
    watchers = {thread for _, thread, name in named if name == "poll"} - {lines[begin].split()[0]}
    here = [(thread in watchers, name) for at, thread, name in named if begin < at < end]
    return (collections.Counter(name for watches, name in here if not watches),
            collections.Counter(name for watches, name in here if watches))


def difference(one, two):
    return {name: two[name] - one[name] for name in one | two if two[name] != one[name]}


def strace_works():
    if not shutil.which("strace"):
        return False
    return subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True,
                          check=False).returncode == 0


@unittest.skipUnless(model(), "models/ holds no TinyTales*.gguf")
class DecodeCost(unittest.TestCase):
    def test_further_tokens_need_no_allocation(self):
        for temperature, why in ((0, "the most likely token"), (0.8, "sampled")):
            with self.subTest(why):
                one, two = run(N, temperature), run(2 * N, temperature)
                self.assertEqual((one["tokens"], two["tokens"]), (N, 2 * N))
                print(f"{why}: {one['allocations']} allocations for {N} tokens, "
                      f"{two['allocations']} for {2 * N}")
                self.assertEqual(two["allocations"] - one["allocations"], 0)

    @unittest.skipUnless(strace_works(), "strace is not installed, or may not trace here")
    def test_further_tokens_need_no_system_call(self):
        (one, one_watching), (two, two_watching) = calls(N, 0), calls(2 * N, 0)
        more, watching = difference(one, two), difference(one_watching, two_watching)
        print(f"{N} more tokens made these calls more: {more}, where children are watched: {watching}")
        more.pop("futex", None)  # workers that sleep: strace delays them
        # The signals that a step leaves blocked are read before it and after it (kept_state.hpp).
        self.assertLessEqual(more.pop("rt_sigprocmask", 0), 2 * N)
        self.assertEqual(more, {})
        # These threads wake twice a second, or when a child answers: independent of tokens.
        self.assertLess(sum(abs(n) for n in watching.values()), N / 2)


if __name__ == "__main__":
    outcome = unittest.main(verbosity=2, exit=False).result
    for test, reason in outcome.skipped:
        print(f"skip: {test}: {reason}")
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.testsRun and len(outcome.skipped) == outcome.testsRun else 0)
