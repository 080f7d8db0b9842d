#!/usr/bin/env python3
"""Each slot of a table of the contract says from which thread it may be called, how long it takes and how it fails.

Usage: slots.py HEADER...
"""

import pathlib
import re
import sys

# A comment and the function pointer behind it, of which void ones may follow another's comment.
SLOT = re.compile(r"(/\*(?:(?!\*/).)*\*/)\s+(?:const )?[a-z_0-9]+\*? ?\(\*([a-z_]+)\)\(", re.DOTALL)
ANY_SLOT = re.compile(r"\(\*([a-z_]+)\)\(")
TIME = re.compile(r"\[(instant|short|long)\]|up to\s+\*?\s*timeout_ns")


def main():
    problems, n = [], 0
    for name in sys.argv[1:]:
        text = pathlib.Path(name).read_text(encoding="utf-8")
        table = text[text.index("typedef struct bitnet_backend_v0 {"):text.index("} bitnet_backend_v0;")]
        said = {slot: comment for comment, slot in SLOT.findall(table)}
        for slot in ANY_SLOT.findall(table):
            n += 1
            comment = said.get(slot, "")
            for what, there in [("a thread", re.search(r"\[(any|device|queue)\]", comment)),
                                ("a time", TIME.search(comment)), ("a line 'Fails:'", "Fails:" in comment)]:
                if not there:
                    problems.append(f"{name}: {slot} has no {what}")
    if n < 36:
        problems.append(f"{n} slots were found, at least 36 are expected")
    print("\n".join(problems) or f"{n} slots")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
