#!/usr/bin/env python3
"""Lists every struct of the given headers with its members, and every public function, as rows of a
macro file.

Rejects member types that the contract forbids: enum, bool, long, size_t, bit-fields, and anything
whose size is the compiler's choice.
"""
import argparse
import re
import sys
from pathlib import Path

ALLOWED = re.compile(
    r"(const )?(u?int(8|16|32|64)_t|float|char|void|(struct )?bitnet_\w+)(\s*\*\s*(const\s*)?)*$")


def structs(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    for match in re.finditer(r"typedef struct (\w+) \{(.*?)\}\s*\1\s*;", text, flags=re.S):
        yield match.group(1), match.group(2)


def members(name, body):
    """The member names of a struct; exits with a message on a type that is not allowed."""
    depth, statement = 0, ""
    for char in body:
        depth += (char == "(") - (char == ")")
        if char != ";" or depth:
            statement += char
            continue
        statement, line = "", " ".join(statement.split())
        if pointer := re.search(r"\(\*(\w+)\)\s*\(", line):
            yield pointer.group(1)
            continue
        # "char name[64]", "uint32_t a, b", "const T* const* p"
        head, *rest = line.split(",")
        match = re.match(r"(.*?[\s*])(\w+)((\[\w+\])*)$", head)
        if not match or not ALLOWED.match(match.group(1).strip()):
            sys.exit(f"{name}: member '{line}' has a type that the contract does not allow")
        yield match.group(2)
        for more in rest:
            yield re.match(r"\s*\**(\w+)", more).group(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("headers", nargs="+", type=Path)
    parser.add_argument("--output", required=True, type=Path)
    args = parser.parse_args()
    lines = []
    for header in sorted(args.headers):
        include = header.as_posix().split("/include/")[-1]
        text = header.read_text(encoding="utf-8")
        for name, body in structs(text):
            lines.append(f"STRUCT({name}, \"{include}\")")
            lines += [f"MEMBER({name}, {member})" for member in members(name, body)]
        lines += [f"FUNCTION({name})" for name in
                  re.findall(r"^BITNET_API [^;(]*?\b(bitnet_\w+)\(", text, flags=re.MULTILINE)]
    args.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
