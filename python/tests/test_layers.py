"""The modules of the package are layers: none imports, not even indirectly, one that imports it, and none sets a name
of another, which would be a way round this rule.

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


def names_set(tree, modules):
    """"module.name" wherever the code assigns to a name of one of `modules`."""
    out = set()
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        out |= {f"{one.value.id}.{one.attr}" for one in targets if isinstance(one, ast.Attribute)
                and isinstance(one.value, ast.Name) and one.value.id in modules}
    return out


def circle(arrows):
    """The modules that are left when all that import nothing of the others are taken away."""
    left = {name: set(to) for name, to in arrows.items()}
    while True:
        free = {name for name, to in left.items() if not to & left.keys()}
        if not free:
            return set(left)
        left = {name: to for name, to in left.items() if name not in free}


def trees():
    return {file.stem: ast.parse(file.read_text(encoding="utf-8")) for file in PACKAGE.glob("*.py")}


def arrows():
    found = trees()
    return {name: imported(tree, found.keys()) for name, tree in found.items()}


def test_modules_are_layers():
    found = arrows()
    assert len(found) > 10 and found["_model"], "the modules were not found"
    assert circle(found) == set()


def test_no_module_sets_a_name_of_another():
    found = trees()
    assert {name: names_set(tree, found.keys()) for name, tree in found.items()} == {name: set() for name in found}


@pytest.mark.parametrize("code, expected", [
    ("_a.b = 1", {"_a.b"}),
    ("def f():\n    _a.b: int = 1", {"_a.b"}),
    ("_a.b += 1", {"_a.b"}),
    ("self.b = other.c = _a.b", set()),
])
def test_names_that_are_set_are_found(code, expected):
    assert names_set(ast.parse(code), {"_a"}) == expected


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
