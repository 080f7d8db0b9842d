#!/usr/bin/env python3
"""Each slot of a table of the contract says from which thread it may be called, how long it takes and how it fails.

So does the entry of a plugin. No comment has made the formatter break a declaration.

Usage: slots.py HEADER...
"""

import pathlib
import re
import sys

TABLE = re.compile(r"^typedef struct (bitnet_\w+_v\d+) \{\n(.*?)^\} \1;", re.DOTALL | re.MULTILINE)
# The comment that ends on the line before a slot, and the slot's name.
SLOT = re.compile(r"(/\*(?:(?!\*/).)*\*/)?\s+(?:const )?[a-z_0-9]+\*? ?\(\*([a-z_]+)\)\(", re.DOTALL)
ANY_SLOT = re.compile(r"\(\*([a-z_]+)\)\(")
ENTRY = re.compile(r"(/\*(?:(?!\*/).)*\*/)\s+typedef bitnet_status \(\*(bitnet_backend_entry)\)\(", re.DOTALL)
TIME = re.compile(r"\[(instant|short|long)\]|\[any\](?:, beside no other call)?, "
                  r"(?:up to timeout_ns|as long as its tasks)")
BROKEN = re.compile(r"^(#define BITNET_\w+) \\$|^  (?:const )?\w+\*?\n +(\w+); ", re.MULTILINE)
LEAST = {"backend.h": 37, "packed.h": 3, "tuning.h": 3, "host.h": 5}


def slots_of(text):
    """Names and comments of the slots in a header; the lines of a comment are joined."""
    for _, table in TABLE.findall(text):
        said = {slot: comment for comment, slot in SLOT.findall(table)}
        for slot in ANY_SLOT.findall(table):
            yield slot, re.sub(r"\n +\* ?", " ", said.get(slot, ""))
    for comment, entry in ENTRY.findall(text):
        yield entry, re.sub(r"\n +\* ?", " ", comment)


def main():
    problems, n = [], 0
    for name in map(pathlib.Path, sys.argv[1:]):
        text = name.read_text(encoding="utf-8")
        slots = list(slots_of(text))
        n += len(slots)
        if len(slots) < LEAST.get(name.name, 0):
            problems.append(f"{name}: {len(slots)} slots were found, at least {LEAST[name.name]} are expected")
        for slot, comment in slots:
            for what, there in [("a thread", re.search(r"\[(any|device|queue)\]", comment)),
                                ("a time", TIME.search(comment)), ("a line 'Fails:'", "Fails:" in comment)]:
                if not there:
                    problems.append(f"{name}: {slot} lacks {what}; add it to the comment directly above")
        problems += [f"{name}: {a or b} is broken by its comment; put the comment above it"
                     for a, b in BROKEN.findall(text)]
    print("\n".join(problems) or f"{n} slots")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
