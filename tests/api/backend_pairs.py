"""Every ordered pair of the backends that were built, in one process, on the drivers of their tests.

backend_pairs.py PROGRAM BACKENDS_FILE MANIFESTS

First each backend computes alone. One that cannot is skipped with its reason. Then each of the others computes beside
each, in either order: both give the tokens that they give alone, and the first gives them again afterwards. Or the
manifest of one of the two lists the other in `conflicts`; then the second is rejected with that reason, and the first
still computes the same. Anything else is a fault, a process that ends early too. Prints a line for each process.
"""

import json
import pathlib
import re
import subprocess
import sys
import time

LONGEST_S = 240
LONGEST_ALONE_S = 600  # the first process with a backend probes it, and drivers in software compile all its kernels
N_TOKENS = 4  # as in pair_program.cpp


def run(program, *backends):
    """What it printed, or None and the fault; and the seconds that it took."""
    longest = LONGEST_S if len(backends) == 2 else LONGEST_ALONE_S
    began = time.monotonic()
    try:
        done = subprocess.run([program, *backends], capture_output=True, text=True, timeout=longest, check=False)
    except subprocess.TimeoutExpired:
        return None, f"it did not end within {longest} s", time.monotonic() - began
    took = time.monotonic() - began
    if done.returncode != 0:
        return None, f"it ended with {done.returncode}: {done.stdout[-300:]} {done.stderr[-700:]}", took
    try:
        return json.loads(done.stdout), None, took
    except ValueError:
        return None, f"it printed no JSON: {done.stdout[-300:]} {done.stderr[-700:]}", took


def conflicts_of(folder, name):
    """The backends that the manifest of `name` lists in `conflicts`, which is one line: [first, second]."""
    text = (pathlib.Path(folder) / f"50-{name}.yaml").read_text(encoding="utf-8")
    found = re.search(r"^conflicts:\s*\[([^]]*)\]", text, re.MULTILINE)
    if not found and re.search(r"^conflicts:", text, re.MULTILINE):
        raise ValueError(f"50-{name}.yaml: `conflicts` is not a list in one line")
    return {one.strip().strip("'\"") for one in found[1].split(",") if one.strip()} if found else set()


def verdict(said, tokens, first, second, apart):
    """What the two did, and the fault or None. `tokens`: of each backend alone; `apart`: manifests exclude the pair."""
    before, beside, after = said
    for one, what in ((before, "the first"), (after, "the first, afterwards,")):
        if "status" in one:
            return f"{what} is rejected: {one['reason']}", "it computes alone"
        if one["tokens"] != tokens[first]:
            return f"{what} gives {one['tokens']}", f"alone it gives {tokens[first]}"
    if "status" in beside:
        words = f"the second is rejected: {beside['reason']}"
        if not apart:
            return words, "it computes alone, and no manifest lists the other in `conflicts`"
        said_so = f"beside {first}" in beside["reason"] and "manifests" in beside["reason"]
        return words, None if said_so else "the reason is not the manifests"
    if apart:
        return "both compute", "the manifest of one lists the other in `conflicts`"
    if beside["tokens"] != tokens[second]:
        return f"the second gives {beside['tokens']}", f"alone it gives {tokens[second]}"
    return "both compute", None


def all_alone(program, built):
    """The tokens of each backend that computes alone, and how many faults there were."""
    tokens, faults = {}, 0
    for name in built:
        said, fault, took = run(program, name)
        if said and "status" in said[0]:
            if said[0]["reason"]:
                print(f"skip: {name} computes nothing alone: {said[0]['reason']}")
                continue
            fault = "it is rejected without a reason"
        elif said and len(said[0]["tokens"]) != N_TOKENS:
            fault = f"it gives {said[0]['tokens']}, {N_TOKENS} tokens are expected"
        if fault:
            print(f"FAULT: {name} alone: {fault}")
            faults += 1
            continue
        tokens[name] = said[0]["tokens"]
        print(f"{name:>12} alone {'':<12} computes {tokens[name]} ({took:.1f} s)", flush=True)
    return tokens, faults


def main():
    program, built = sys.argv[1], pathlib.Path(sys.argv[2]).read_text(encoding="utf-8").split()
    conflicts = {name: conflicts_of(sys.argv[3], name) for name in built}
    tokens, faults = all_alone(program, built)
    n_both = n_apart = 0
    for first in tokens:
        for second in tokens:
            if first == second:
                continue
            apart = second in conflicts[first] or first in conflicts[second]
            said, fault, took = run(program, first, second)
            what = "no answer"
            if said:
                what, fault = verdict(said, tokens, first, second, apart)
            print(f"{first:>12} then {second:<12} {what} ({took:.1f} s)", flush=True)
            n_both += what == "both compute"
            n_apart += apart
            if fault:
                print(f"FAULT: {fault}")
                faults += 1
    print(f"pairs that compute: {n_both}, that manifests keep apart: {n_apart}; faults: {faults}")
    if faults == 0 and len(tokens) < 2:
        print("skip: fewer than two backends compute here")
        return 77
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
