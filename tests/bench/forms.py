#!/usr/bin/env python3
"""Times every instruction set of the cpu backend by CPU time, for a machine that others use too.

Usage: forms.py BITNET MODEL [ROUNDS]

Prints tokens per second of CPU time with one thread: prompts of 64, and generation. What three
repetitions of `bitnet bench` take more than one does is counted, so that loading is not. Waiting for
a core is no CPU time; waiting for memory that others read is.
"""

import os
import re
import statistics
import subprocess
import sys

PROMPT, GENERATED = 64, 8


def forms(program):
    """Those that this machine can run, best first."""
    def info(name):
        return subprocess.run([program, "backends", "info", "cpu"], check=True, capture_output=True,
                              text=True, env={**os.environ, "BITNET_CPU_ISA": name}).stdout
    named = re.search(r"set BITNET_CPU_ISA to one of: ([a-z0-9, -]*[a-z0-9])", info("none")).group(1)
    return [name for name in named.split(", ") if name != "scalar" and "BN-OK" in info(name)]


def cpu_seconds(program, model, form, repetitions, prompt, generated):
    words = ["bench", "-m", model, "-t", "1", "-p", prompt, "-n", generated, "-r", repetitions,
             "--no-warmup", "--ceiling-mb", "0"]
    child = subprocess.Popen([program, *map(str, words)], stdout=subprocess.DEVNULL,
                             env={**os.environ, "BITNET_CPU_ISA": form})
    _, status, used = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{form}: bench failed")
    return used.ru_utime + used.ru_stime


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__.strip())
    program, model = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) == 4 else 3
    speeds = {}
    for _ in range(rounds):  # in turn, so that a busy minute meets them all
        for form in forms(program):
            for test in ((PROMPT, 0), (0, GENERATED)):
                seconds = [cpu_seconds(program, model, form, r, *test) for r in (3, 1)]
                speed = 2 * sum(test) / (seconds[0] - seconds[1])
                speeds.setdefault(form, {}).setdefault(test, []).append(speed)
    print("| form | prompt of 64, t/s | generation, t/s |\n|---|---:|---:|")
    for form, tests in speeds.items():
        print(f"| `{form}` | " + " | ".join(f"{statistics.median(s):.1f}" for s in tests.values()) + " |")


if __name__ == "__main__":
    main()
