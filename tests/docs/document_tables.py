"""The tables of docs/reference that describe JSON documents, and what a document has that its table lacks.

A path names a member: `a.b` of an object, `a[].b` of each object of a list."""

import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs/reference"
HEAD = ["member", "type", "left out", "content"]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
SIMPLE = {"text": str, "boolean": bool, "integer": int, "number": (int, float), "object": dict, "map": dict}


def slug(heading):
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@functools.cache
def sections(page):
    """{slug of a heading: the lines below it, up to the next heading}"""
    found, lines = {}, []
    for line in (REFERENCE / page).read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"#+ +(.+?) *$", line):
            lines = found.setdefault(slug(heading[1]), [])
        else:
            lines.append(line)
    return found


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def index():
    """{function: (page, slug)} of the first table of docs/reference/documents.md, less those that a schema describes."""
    found = {}
    for line in sections("documents.md")["json-documents"]:
        row = cells(line) if line.startswith("|") else []
        if not row and found:
            break
        if row and (link := LINK.fullmatch(row[1])):
            page, _, anchor = link[1].partition("#")
            found.update({function: (page or "documents.md", anchor) for function in re.findall(r"`(\w+)`", row[0])})
    return found


def rows(page, anchor):
    """{path: (type, when it is left out)} of the table below a heading; tables that a type links to are put in."""
    found, is_table = {}, False
    for line in sections(page)[anchor]:
        row = cells(line)
        if row == HEAD:
            is_table = True
            continue
        if not line.startswith("|"):
            is_table = False
        if not is_table or set("".join(row)) <= set("-"):
            continue
        names = re.findall(r"`([^`]+)`", row[0])
        kinds = row[1].split(", ") if not LINK.search(row[1]) else [row[1]]
        if len(kinds) == 1:
            kinds *= len(names)
        for name, kind in zip(names, kinds, strict=True):
            link = LINK.fullmatch(kind)
            if link is None:
                found[name] = (kind, row[2])
                continue
            other, _, at = link[1].partition("#")
            found.setdefault(name, ("object", row[2]))
            found.update({f"{name}.{below}": what for below, what in rows(other or page, at).items()})
    return found


def is_of(value, kind):
    """Whether a value is of a type of the tables."""
    if " or " in kind:
        return any(is_of(value, one) for one in kind.split(" or "))
    if kind == "null":
        return value is None
    if kind.startswith("list of "):
        return isinstance(value, list) and all(is_of(one, kind.removeprefix("list of ").removesuffix("s")) for one in value)
    if kind == "map of texts":
        return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
    if isinstance(value, bool) and kind != "boolean":
        return False
    return isinstance(value, SIMPLE[kind])


def containers(table):
    """The paths that rows of a table are below of."""
    return {path[:at] for path in table for at in range(len(path)) if path[at:at + 1] == "." or path[at:at + 3] == "[]."}


def differences(value, table, seen, path=""):
    """What is wrong with a document, by its table; `seen` receives the rows that it has."""
    if isinstance(value, list):
        for one in value:
            if isinstance(one, dict):
                yield from differences(one, table, seen, path + "[]")
        return
    if not isinstance(value, dict):
        return
    inner = f"{path}." if path else ""
    for name, (_, left_out) in table.items():
        if not left_out and name.startswith(inner) and name[len(inner):].isidentifier() and name[len(inner):] not in value:
            yield f"{name} is missing, and its row does not say when"
    for key, below in value.items():
        name = inner + key
        kind = table.get(name, (None,))[0]
        if kind is not None:
            seen.add(name)
            if not is_of(below, kind):
                yield f"{name} is {below!r:.60}, and its row says {kind}"
        elif name not in containers(table):
            yield f"{name} has no row"
            continue
        if kind is None or {"object", "list of objects"} & set(kind.split(" or ")):
            yield from differences(below, table, seen, name)
