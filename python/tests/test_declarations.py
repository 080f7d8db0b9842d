"""The declarations for cffi have the layout that the compiler gives bitnet.h, which tests/abi keeps in abi/layout."""

import re

import pytest

from bitnet import _native, errors
from conftest import TREE


def golden_layouts():
    """(struct, size, align, {field: (offset, size)}) of bitnet.h and base.h."""
    found = []
    for line in (TREE / "abi/layout/x86-64.golden").read_text().splitlines():
        head = re.match(r"(\S+) (bitnet_\w+) size +(\d+) align +(\d+)", line)
        field = re.match(r"  (\w+) +offset +(\d+) size +(\d+)", line)
        if head:
            found.append((head[1], head[2], int(head[3]), int(head[4]), {}))
        elif field:
            found[-1][4][field[1]] = int(field[2]), int(field[3])
    return [row[1:] for row in found if row[0] in ("bitnet/bitnet.h", "bitnet/abi/base.h")]


def declared_layout(name):
    kind = _native.ffi.typeof(name)
    fields = {field: (it.offset, _native.ffi.sizeof(it.type)) for field, it in kind.fields}
    return name, _native.ffi.sizeof(kind), _native.ffi.alignof(kind), fields


def test_struct_layouts_equal_those_of_the_headers():
    golden = golden_layouts()
    assert len(golden) > 14
    for row in golden:
        assert declared_layout(row[0]) == row


def test_every_struct_has_a_golden_layout():
    typedefs, structs, unions = _native.ffi.list_types()
    declared = {name for name in typedefs if _native.ffi.typeof(name).kind == "struct"
                and _native.ffi.typeof(name).fields is not None}
    assert declared == {row[0] for row in golden_layouts()}


def test_constants_equal_those_of_the_headers():
    golden = dict(re.findall(r"^(BITNET_\w+) = (\w+?)u?$", (TREE / "abi/layout/constants.golden").read_text(),
                             re.MULTILINE))
    own = {name: value for name, value in _native.numbers.items() if name in golden}
    assert len(own) > 50
    assert own == {name: int(golden[name], 0) for name in own}
    for needed in ("BITNET_OK", "BITNET_NONE", "BITNET_LOG_DEBUG", "BITNET_STOP_CANCELLED", "BITNET_KV_Q8_0",
                   "BITNET_KV_Q4_0"):
        assert needed in _native.numbers


def test_every_function_is_in_the_library():
    headers = _native.read_headers(TREE / "abi/include")[0]
    functions = set(re.findall(r"\b(bitnet_\w+)\(", headers)) - {"bitnet_log_callback"}
    assert len(functions) > 40
    for name in functions:
        assert _native.ffi.typeof(getattr(_native.lib, name)).kind == "function", name


def test_the_headers_of_a_wheel_are_those_of_the_tree():
    own = _native._NATIVE / "include"
    headers = list(own.rglob("*.h"))
    if not headers:
        pytest.skip("the package of the tree has no headers of its own")
    for header in headers:
        assert header.read_bytes() == (TREE / "abi/include" / header.relative_to(own)).read_bytes()


def test_each_status_has_an_exception_class():
    last = _native.numbers["BITNET_BUSY"]
    assert set(errors.BY_STATUS) == set(range(1, last + 1))
    by_name = {"BITNET_IO": "FileError"}
    for name, number in _native.numbers.items():
        if name in re.findall(r"#define (BITNET_[A-Z_]+) \d+ *(?:/\*.*)?$",
                              (TREE / "abi/include/bitnet/abi/base.h").read_text(), re.MULTILINE) and number:
            expected = by_name.get(name) or name.removeprefix("BITNET_").title().replace("_", "")
            assert errors.BY_STATUS[number].__name__ == expected
