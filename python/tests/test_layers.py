"""The modules of the package are layers: none imports, not even indirectly, one that imports it.

Imports for annotations alone (TYPE_CHECKING) are not executed and do not count.
"""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src/bitnet"


def imported(tree, names):
    """Modules of `names` that the code imports wherever it does, functions too."""
    out = set()
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            stack += node.orelse
            continue
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            out |= {node.module} if node.module else {one.name for one in node.names}
        stack += ast.iter_child_nodes(node)
    return out & names


def circle(arrows):
    """The modules that are left when all that import nothing of the others are taken away."""
    left = {name: set(to) for name, to in arrows.items()}
    while True:
        free = {name for name, to in left.items() if not to & left.keys()}
        if not free:
            return set(left)
        left = {name: to for name, to in left.items() if name not in free}


def arrows():
    files = {file.stem: file for file in PACKAGE.glob("*.py")}
    return {name: imported(ast.parse(file.read_text(encoding="utf-8")), files.keys()) for name, file in files.items()}


def test_modules_are_layers():
    found = arrows()
    assert len(found) > 10 and found["_model"], "the modules were not found"
    assert circle(found) == set()


@pytest.mark.parametrize("code, expected", [
    ("from . import _a, other", {"_a"}),
    ("from ._a import b", {"_a"}),
    ("def f():\n    from ._a import b", {"_a"}),
    ("if TYPE_CHECKING:\n    from ._a import b", set()),
    ("import json\nfrom typing import Any", set()),
])
def test_imports_are_found(code, expected):
    assert imported(ast.parse(code), {"_a", "_b"}) == expected


def test_a_circle_is_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == {"a", "b", "c"}
    assert circle({"a": {"b"}, "b": set()}) == set()
