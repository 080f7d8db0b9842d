"""Plants faults of size into a backend, one for each op, dimension and threshold, and looks whether the kit
finds each of them and blames the op that is wrong.

docs/reference/conformance.md has a table of the sizes that the suites reach. It is true when a fault that begins
at the last element of such a size is found, and one that begins behind it is not. Its second table has the faults
that only several sequences show, the test that finds each, and the op that it names. Its third one has faults of
slots: those that move blocks, cancelled steps, and what bindings share; the test that finds each names the slot.

  mutants_test.py             for each row: the fault at the last element, by the test that the row names
  mutants_test.py --all       by all tests of the suite ops, that none blames another op; also at thresholds below, by
                              all tests of the op, and behind the last
"""

import concurrent.futures
import os
import pathlib
import re
import sys
import time

import kit

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/reference/conformance.md"
# op, dimension, largest in ops, largest in sizes, the test of sizes that has it
ROW = re.compile(r"^\| ([a-z0-9_]+) \| ([a-z_]+) \| (\d+) \| (\d+) \| `((?:sizes|sequences)\.[a-z0-9_]+)` \|$", re.MULTILINE)
# fault, op, test
STRUCTURE = re.compile(r"^\| `([a-z0-9-]+)` \| .* \| ([A-Z_]+) \| `(sequences\.[a-z0-9_]+)` \|$", re.MULTILINE)
# fault, slot, test
SLOT = re.compile(r"^\| `([a-z0-9-]+)` \| .* \| `([a-z_]+)` \| `([a-z]+\.[a-z0-9_]+)` \|$", re.MULTILINE)
SLOTS = re.compile(r"\b(?:kv_(?:import|export|copy)|queue_(?:submit|wait|poll)|program_(?:bind|build))\b")
# Ops with equal faults as seen from outside of a backend: rows are read from, or written to, another place.
TWINS = {"embed_gather": "gather_rows", "gather_rows": "embed_gather"}
# A structure's fault appears in steps with more sequences than this.
BEYOND = [1, 2, 5, 6, 33, 60, 64, 100, 129, 250]
THRESHOLDS = [1, 2, 5, 16, 31, 33, 64, 100, 129, 256, 300, 500, 700, 1024, 2047, 2560, 4000, 6000, 10000, 65536,
              100000]
# Mutants that passed the kit in earlier versions.
PASSED_ONCE = [("linear_ternary", "rows", 700), ("linear_ternary", "tokens", 31), ("linear_dense", "rows", 300),
               ("attn_paged", "positions", 500)]


def rows():
    found = [(op, dimension, int(small), int(large), test)
             for op, dimension, small, large, test in ROW.findall(PAGE.read_text(encoding="utf-8"))]
    if len(found) < 30:
        raise AssertionError(f"the table of {PAGE.name} has {len(found)} rows that can be read")
    return found


def op_of(test, text):
    """The op that a test is about, without its format and shape; of the suite sequences, that its text names."""
    suite, name = test.split(".", 1)
    if suite == "sequences":
        found = re.search(r"\b([A-Z]{2,}(?:_[A-Z0-9]+)+)\b", text)
        return found[1].lower() if found else None  # a whole model: the test names no op
    fitting = [op for op in {r[0] for r in ROWS} if name == op or name.startswith(op + "_")]
    return max(fitting, key=len, default=name)


def failures(setting, *words):
    """The text of each test that failed."""
    _, report = kit.report("--set", setting, *words, kit.SABOTEUR)
    return {row["test"]: row.get("text", "") for row in report["tests"] if row["status"] == "failed"}


def judge_structure(job):
    name, op, words, beyond = job
    failed = failures(f"structure={name}:{beyond}", *words)
    what = f"{name} beyond {beyond} sequences, {' '.join(words)}"
    if not failed:
        return [f"{what}: not found"]
    named = [test for test, text in failed.items() if re.search(rf"\b{op}\b", text)]
    return [] if named else [f"{what}: {sorted(failed)} did not name {op}"]


def structures():
    found = STRUCTURE.findall(PAGE.read_text(encoding="utf-8"))
    if len(found) < 7:
        raise AssertionError(f"the table of structures of {PAGE.name} has {len(found)} rows that can be read")
    return found


def judge_slot(job):
    name, slot, words = job
    failed = failures(f"defect={name}", *words)
    what = f"{name}, {' '.join(words)}"
    if not failed:
        return [f"{what}: not found"]
    blamed = {one for text in failed.values() for one in SLOTS.findall(text)}
    return [] if blamed == {slot} else [f"{what}: {sorted(failed)} blamed {sorted(blamed)}, not {slot}"]


def slot_jobs(everything):
    found = SLOT.findall(PAGE.read_text(encoding="utf-8"))
    if len(found) < 11:
        raise AssertionError(f"the table of slots of {PAGE.name} has {len(found)} rows that can be read")
    for name, slot, test in found:
        yield name, slot, ("--test", test)
        if everything:
            yield name, slot, ("--suite", "sequences") if test.startswith("sequences.") else ("--test", "threads.two_*")


def structure_jobs(everything):
    for name, op, test in structures():
        yield name, op, ("--test", test), 64 if "sixty" in test else 1
        if everything:
            for beyond in BEYOND:
                yield name, op, ("--suite", "sequences"), beyond


def judge(job):
    """The differences from the expected result."""
    op, dimension, at, words, expected = job
    failed = failures(f"fault={op}:{dimension}:{at}", *words)
    what = f"{op} wrong from {dimension} {at} on, {' '.join(words)}"
    blamed = {op_of(test, text) for test, text in failed.items()} - {None}
    problems = []
    if expected and op not in blamed:
        problems.append(f"{what}: not found" + (f", but {sorted(failed)} failed" if failed else ""))
    if not expected and failed:
        problems.append(f"{what}: {sorted(failed)} failed, so that the table claims too little")
    if blamed - {op, TWINS.get(op)}:
        problems.append(f"{what}: {sorted(blamed - {op})} were blamed")
    return problems


def tests_of(op, suite):
    """Those of longer names that begin like this one too: they hold as well."""
    return "--test", f"{suite}.{op}*"


def jobs(everything):
    for op, dimension, small, large, test in ROWS:
        if small:
            yield op, dimension, small - 1, ("--suite", "ops") if everything else tests_of(op, "ops"), True
        yield op, dimension, large - 1, ("--test", test), True
        if not everything:
            continue
        if small:
            yield op, dimension, small, tests_of(op, "ops"), False
        together = test.startswith("sequences.")
        yield op, dimension, large, ("--suite", "sequences") if together else tests_of(op, "sizes"), False
        words = ("--suite", "sequences") if together else ("--test", f"ops.{op}*", "--test", f"sizes.{op}*")
        for at in THRESHOLDS:
            if at < large - 1:
                yield op, dimension, at, words, True
    for op, dimension, at in PASSED_ONCE:
        large, test = next(r[3:] for r in ROWS if r[:2] == (op, dimension))
        assert at < large
        yield op, dimension, at, ("--test", test), True


ROWS = rows()


def main():
    begin = time.monotonic()
    everything = "--all" in sys.argv[1:]
    work, structured, slots = list(jobs(everything)), list(structure_jobs(everything)), list(slot_jobs(everything))
    with concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        problems = [p for found in pool.map(judge, work) for p in found]
        problems += [p for found in pool.map(judge_structure, structured) for p in found]
        problems += [p for found in pool.map(judge_slot, slots) for p in found]
    print(f"{len(work) + len(structured) + len(slots)} faults in {time.monotonic() - begin:.1f} s")
    for p in problems:
        print(p)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
