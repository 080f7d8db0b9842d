#!/usr/bin/env python3
"""Each function of bitnet.h has a comment of its own, which states one of the header's thread rules.

No comment has made the formatter break a declaration, each default of bitnet_sampling that the header states is
the one that the library gives, and the list of contents has the headings in their order.

Usage: functions.py bitnet.h common/tables/sampling.hpp
"""

import pathlib
import re
import sys

# The comment that ends on the line before a function, and the function's name.
FUNCTION = re.compile(r"(/\*(?:(?!\*/).)*\*/\n)?^BITNET_API [^;(]*?\b(bitnet_\w+)\(", re.DOTALL | re.MULTILINE)
OBJECTS = "session|trial|request|answer|runtime|model|chat|scheduler|shadow"
TAG = re.compile(rf"\[(any thread|any thread, signal handlers too|one thread at a time for its ({OBJECTS}))\]")
LIKE_A_TAG = re.compile(r"\[[^\]]*thread[^\]]*\]|\b(?:any|one) thread\b", re.IGNORECASE)
HEADING = re.compile(r"^/\* ---- ([\w ]+?) -+", re.MULTILINE)
MOST_CONTENTS = 20
BROKEN = re.compile(r"^(#define BITNET_\w+) \\$|^  (?:const )?\w+\*?\n +(\w+); ", re.MULTILINE)
PARAMETER = re.compile(r"^  X\(\w+, (\w+), ([^,]+),", re.MULTILINE)


def wrong_tag(comment):
    """What is wrong with the thread rule of a comment, whose lines are joined."""
    if not comment:
        return "no comment directly above"
    tags = TAG.findall(comment)
    if len(tags) != 1:
        return f"{len(tags)} thread tags, expected one that the header's beginning defines"
    if LIKE_A_TAG.search(TAG.sub("", comment)):
        return "a thread rule beside its tag, or a tag that the header's beginning does not define"
    return ""


def problems_of_functions(text):
    functions = FUNCTION.findall(text)
    if len(functions) != len(re.findall(r"^BITNET_API ", text, re.MULTILINE)) or len(functions) < 94:
        yield f"{len(functions)} functions were found, expected one for each BITNET_API, and at least 94"
    for comment, name in functions:
        why = wrong_tag(re.sub(r"\n \* ?", " ", comment))
        if why:
            yield f"{name} has {why}"


def problems_of_defaults(text, parameters):
    struct = text[text.index("typedef struct bitnet_sampling {"):text.index("} bitnet_sampling;")]
    rows = PARAMETER.findall(parameters)
    if len(rows) < 20:
        yield f"{len(rows)} parameters were found, expected at least 20"
    for name, value in rows:
        member = re.search(rf"(/\*[^/]*\*/\n)?^  \w+ {name};( +/\*[^/]*\*/)?", struct, re.MULTILINE)
        said = re.search(r"default (-?[\d.]*\d)", (member[2] or member[1] or "") if member else "")
        if said is None or float(said[1]) != float(value):
            yield f"bitnet_sampling.{name}: the comment says {said and said[0]}, the library has {value}"


def problems_of_contents(text):
    contents = text[text.index(" * Contents "):].split("\n *\n")[0].splitlines()[1:]
    listed = [re.match(r" \*            (.+?)  ", line)[1] for line in contents]
    headings = HEADING.findall(text)
    if listed != headings or len(listed) > MOST_CONTENTS or len(listed) < 10:
        yield f"the contents are {listed}, expected the headings, at most {MOST_CONTENTS}: {headings}"


def main():
    header, parameters = (pathlib.Path(name).read_text(encoding="utf-8") for name in sys.argv[1:])
    problems = [*problems_of_functions(header), *problems_of_defaults(header, parameters), *problems_of_contents(header)]
    problems += [f"{a or b} is broken by its comment; put the comment above it" for a, b in BROKEN.findall(header)]
    print("\n".join(problems) or f"{len(FUNCTION.findall(header))} functions")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
