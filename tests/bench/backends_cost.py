#!/usr/bin/env python3
"""Measures `bitnet backends` where the answers of all probes are stored.

Usage: tests/bench/backends_cost.py [--build DIR] [--runs N] [--most MS]

The first call probes every backend of the build, with the drivers of this machine and caches in a new
folder. Then `bitnet version`, which asks no backend, and `bitnet backends` run in turn, N times each (40).
Prints what each backend answered, and of both commands the median and the middle half of the runs, by the
clock. Exits 1 if the median of `bitnet backends` is above MS milliseconds, if a backend of the build is
missing in the list, or if an answer was not stored; 77 where there is no program. Needs an otherwise idle
machine.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
ENDS = (0, 4)  # 4: no backend of the build can be used here


class Program:
    """`bitnet` of a build, with the caches and the settings of a user who has none yet."""

    def __init__(self, build, home):
        self.file = build / "bin" / "bitnet"
        self.environment = dict(os.environ, HOME=home, XDG_CONFIG_HOME=home + "/config", XDG_DATA_HOME=home + "/data",
                                XDG_STATE_HOME=home + "/state", XDG_CACHE_HOME=home + "/cache",
                                BITNET_PROBE_CACHE=home + "/cache/probe")

    def run(self, *words):
        """What it prints."""
        done = subprocess.run([self.file, *words], env=self.environment, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        if done.returncode not in ENDS:
            raise SystemExit(f"bitnet {' '.join(words)} ended with {done.returncode}: {done.stderr.decode()[-700:]}")
        return done.stdout

    def milliseconds(self, *words):
        begin = time.perf_counter()
        self.run(*words)
        return 1000 * (time.perf_counter() - begin)


def answers(program, built):
    """Lines about all backends of the list, and those that are wrong."""
    listed = {one["name"]: one for one in json.loads(program.run("backends", "why", "--json"))["backends"]}
    lines = [f"{name:>12} {one['code']} {one['reason']}" for name, one in sorted(listed.items())]
    wrong = [f"{name} is built and not listed" for name in built if name not in listed]
    wrong += [f"the answer of {name} is not stored" for name, one in sorted(listed.items())
              if "probe" in one and not one["probe"]["cached"]]
    return lines, wrong


def summary(milliseconds):
    low, median, high = statistics.quantiles(milliseconds, n=4, method="inclusive")
    return f"{median:.1f} ms ({low:.1f} to {high:.1f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build/release")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--most", type=float, metavar="MS")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    if not (build / "bin/bitnet").exists():
        print(f"skip: there is no program {build / 'bin/bitnet'}")
        return 77
    built = (build / "backends.txt").read_text(encoding="utf-8").split()
    with tempfile.TemporaryDirectory(prefix="bitnet-backends-") as home:
        program = Program(build, home)
        program.run("backends", "probe", "--all")  # returns when all probes have ended
        lines, wrong = answers(program, built)
        times = {"version": [], "backends": []}
        for _ in range(arguments.runs):
            for command, measured in times.items():
                measured.append(program.milliseconds(command))
        wrong += [one for one in answers(program, built)[1] if one not in wrong]
    print("\n".join(lines))
    for command, measured in times.items():
        print(f"bitnet {command}: {summary(measured)}, {arguments.runs} runs")
    median = statistics.median(times["backends"])
    if arguments.most is not None and median > arguments.most:
        wrong.append(f"the median of bitnet backends is {median:.1f} ms, at most {arguments.most:g} are expected")
    for one in wrong:
        print(f"wrong: {one}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
