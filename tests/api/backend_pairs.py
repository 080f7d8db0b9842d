"""Every ordered pair of the backends that were built, in one process: the second computes beside the first, or is
rejected with a reason; none of them ends the process, and the first computes the same afterwards.

backend_pairs.py PROGRAM BACKENDS_FILE; prints a table. A pair of which one cannot be used on this machine counts as
rejected, with that reason.
"""

import json
import pathlib
import subprocess
import sys

LONGEST_S = 240


def outcome(program, first, second):
    """(event, fault)"""
    done = subprocess.run([program, first, second], capture_output=True, text=True, timeout=LONGEST_S, check=False)
    if done.returncode != 0:
        return f"ended with {done.returncode}", f"{done.stdout[-300:]} {done.stderr[-700:]}"
    alone, beside, again = json.loads(done.stdout)
    if alone != again:
        return "the first computes otherwise afterwards", done.stdout
    rejected = [one for one in (alone, beside) if "status" in one]
    for one in rejected:
        if not one["reason"]:
            return "rejected without a reason", done.stdout
    if rejected:
        return f"{rejected[0]['device']} is rejected: {rejected[0]['reason'][:90]}", None
    if len(alone["tokens"]) != 8 or len(beside["tokens"]) != 8:
        return "too few tokens", done.stdout
    return "both compute", None


def main():
    program, built = sys.argv[1], pathlib.Path(sys.argv[2]).read_text(encoding="utf-8").split()
    faults, n_both = 0, 0
    for first in built:
        for second in built:
            if first == second:
                continue
            what, fault = outcome(program, first, second)
            print(f"{first:>12} then {second:<12} {what}")
            n_both += what == "both compute"
            if fault:
                print(f"FAULT: {fault}")
                faults += 1
    print(f"{n_both} pairs compute, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
