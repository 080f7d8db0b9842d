#!/usr/bin/env python3
"""The comment of each slot has a line 'Fails:' and ends with a thread rule and a time that base.h defines.

So does the comment of a plugin's entry. No comment has made the formatter break a declaration.

Usage: slots.py HEADER...       (base.h is among them)
"""

import pathlib
import re
import sys

TABLE = re.compile(r"^typedef struct (bitnet_\w+_v\d+) \{\n(.*?)^\} \1;", re.DOTALL | re.MULTILINE)
# The comment that ends on the line before a slot, and the slot's name.
SLOT = re.compile(r"(/\*(?:(?!\*/).)*\*/)?\s+(?:const )?[a-z_0-9]+\*? ?\(\*([a-z_]+)\)\(", re.DOTALL)
ANY_SLOT = re.compile(r"\(\*([a-z_]+)\)\(")
ENTRY = re.compile(r"(/\*(?:(?!\*/).)*\*/)\s+typedef bitnet_status \(\*(bitnet_backend_entry)\)\(", re.DOTALL)
# The paragraph of base.h that defines the words: in brackets, or in quotes, where ... stands for more words.
TAGS = re.compile(r" Tags .*? Threads: (.*?) Times: (.*?) In place of a class (.*?) bitnet\.h has ")
BROKEN = re.compile(r"^(#define BITNET_\w+) \\$|^  (?:const )?\w+\*?\n +(\w+); ", re.MULTILINE)
LEAST = {"backend.h": 37, "packed.h": 3, "tuning.h": 3, "host.h": 5}


def joined(comment):
    return re.sub(r"\n +\* *", " ", comment)


def slots_of(text):
    """Names and comments of the slots in a header; the lines of a comment are joined."""
    for _, table in TABLE.findall(text):
        said = {slot: comment for comment, slot in SLOT.findall(table)}
        for slot in ANY_SLOT.findall(table):
            yield slot, joined(said.get(slot, ""))
    for comment, entry in ENTRY.findall(text):
        yield entry, joined(comment)


def any_of(words):
    return "(?:" + "|".join(re.escape(word).replace(re.escape("..."), r"[^,.\[]+") for word in words) + ")"


def end_of_comment(base):
    """What a comment of a slot must end with, from the definitions in base.h."""
    threads, times, instead = TAGS.search(joined(base)).groups()
    tags, quoted = r"\[\w+\]", r'"([^"]+)"'
    thread = any_of(re.findall(tags, threads)) + f"(?:, {any_of(re.findall(quoted, threads))})?"
    time = f",? {any_of(re.findall(tags, times))}(?:, {any_of(re.findall(quoted, times))})?"
    return re.compile(rf" {thread}(?:{time}|, {any_of(re.findall(quoted, instead))}) \*/$")


def main():
    headers = [pathlib.Path(name) for name in sys.argv[1:]]
    base = next((name for name in headers if name.name == "base.h"), None)
    if base is None:
        print("base.h, which defines the tags, is not among the headers; name it, too")
        return 2
    end = end_of_comment(base.read_text(encoding="utf-8"))
    problems, n = [], 0
    for name in headers:
        text = name.read_text(encoding="utf-8")
        slots = list(slots_of(text))
        n += len(slots)
        if len(slots) < LEAST.get(name.name, 0):
            problems.append(f"{name}: {len(slots)} slots were found, at least {LEAST[name.name]} are expected")
        for slot, comment in slots:
            if not end.search(comment):
                problems.append(f"{name}: the comment of {slot} ends with '{comment[-60:]}'; end it with a thread rule "
                                "and a time of base.h, like '[any] [short] */'")
            if "Fails:" not in comment:
                problems.append(f"{name}: {slot} lacks a line 'Fails:'; add it to the comment directly above")
        problems += [f"{name}: {a or b} is broken by its comment; put the comment above it"
                     for a, b in BROKEN.findall(text)]
    print("\n".join(problems) or f"{n} slots")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
