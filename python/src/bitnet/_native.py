"""libbitnet through cffi. The declarations are the text of bitnet.h, read when this module is imported,
so that there is no second list of functions, fields and numbers."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Callable

import cffi

from . import errors

_NATIVE = Path(__file__).parent / "native"
# The headers of a wheel, or in a checkout those of the tree.
_HEADERS = (_NATIVE / "include", Path(__file__).parents[3] / "abi" / "include")
_LIBRARY = "libbitnet.so.0"


def read_headers(folder: Path) -> tuple[str, dict[str, int]]:
    """The declarations of bitnet.h in the form that cffi reads, and its constants by name."""
    text = "".join((folder / "bitnet" / name).read_text(encoding="utf-8")
                   for name in ("abi/base.h", "bitnet.h"))
    # Of other headers only the levels of log messages are used.
    levels = re.findall(r"^#define BITNET_LOG_\w+ .*\n",
                        (folder / "bitnet/abi/host.h").read_text(encoding="utf-8"), re.MULTILINE)
    text = re.sub(r"/\*.*?\*/", " ", text + "".join(levels), flags=re.DOTALL).replace("\\\n", " ")
    text = re.sub(r"^#ifdef __cplusplus\n.*?^#endif\n", "", text, flags=re.DOTALL | re.MULTILINE)
    numbers = re.findall(r"^#define (BITNET_\w+) +(-?\w+?)u? *$", text, re.MULTILINE)
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("BITNET_API ", "")
    return text, {name: int(value, 0) for name, value in numbers}


def _open() -> tuple[Any, Any, dict[str, int]]:
    headers = next((place for place in _HEADERS if (place / "bitnet/bitnet.h").is_file()), None)
    if headers is None:
        raise ImportError(f"bitnet.h is missing from {_NATIVE}; install bitnet-runtime again")
    declarations, numbers = read_headers(headers)
    ffi = cffi.FFI()
    ffi.cdef(declarations)
    own = _NATIVE / "lib" / _LIBRARY
    try:
        # If the package has no library, the system's is loaded.
        return ffi, ffi.dlopen(str(own) if own.exists() else _LIBRARY, ffi.RTLD_NOW), numbers
    except OSError as why:
        raise ImportError(
            f"{_LIBRARY} cannot be loaded ({why}); install a wheel of bitnet-runtime, which brings "
            "it, or the system's package of the library, such as libbitnet0") from why


ffi, lib, numbers = _open()


def text_of(data: Any) -> str:
    text: bytes = ffi.string(data)
    return text.decode("utf-8", "replace")


def piece_of(text: Any) -> str:
    """The text of a bitnet_str."""
    return bytes(ffi.buffer(text.data, text.size)).decode("utf-8", "replace") if text.size else ""


def failure(status: int, err: Any) -> errors.Error:
    known = err.code != 0
    message = text_of(err.message) if known else ""
    made = errors.BY_STATUS.get(status, errors.Error)(message or f"bitnet failed with status {status}")
    made.status = status
    if known:
        made.where, made.domain = text_of(err.where), text_of(err.domain)
        made.native_code = err.native_code
        made.retryable = bool(err.flags & numbers["BITNET_ERROR_RETRYABLE"])
        made.user_fixable = bool(err.flags & numbers["BITNET_ERROR_USER_FIXABLE"])
    return made


def new_error() -> Any:
    return ffi.new("bitnet_error*", {"struct_size": ffi.sizeof("bitnet_error")})


def call(function: Callable[..., int], *arguments: Any) -> None:
    """Calls the function, without the GIL, and raises its error."""
    err = new_error()
    status = function(*arguments, err)
    if status:
        raise failure(status, err)


def text_from(function: Callable[..., int], *arguments: Any) -> str:
    """The text that a function with (out, capacity, needed) writes."""
    needed = ffi.new("uint64_t*")
    call(function, *arguments, ffi.NULL, 0, needed)
    while True:
        room = needed[0]
        out = ffi.new("char[]", max(room, 1))
        try:
            call(function, *arguments, out, room, needed)
        except errors.InvalidArgument:
            if needed[0] <= room:
                raise
            continue  # the text has grown
        return bytes(ffi.buffer(out, needed[0])).decode("utf-8", "replace")


def json_from(function: Callable[..., int], *arguments: Any) -> Any:
    return json.loads(text_from(function, *arguments))


def utf8(what: str, text: str) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"{what} is a str, not {type(text).__name__}")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as why:
        raise ValueError(f"{what} has a lone surrogate at {why.start}; it is no Unicode text") from None


def word(what: str, text: str) -> bytes:
    """The bytes of a text that is passed as a C string."""
    encoded = utf8(what, text)
    if b"\0" in encoded:
        raise ValueError(f"{what} has a NUL character in it")
    return encoded


def path(what: str, value: str | os.PathLike[str]) -> bytes:
    try:
        encoded = os.fsencode(value)
    except TypeError:
        raise TypeError(f"{what} is a str or a path, not {type(value).__name__}") from None
    if b"\0" in encoded:
        raise ValueError(f"{what} has a NUL character in it")
    return encoded


class Options:
    """A struct of options: the library's defaults and the given values. Owns the memory that it points to."""

    def __init__(self, name: str):
        size = ffi.sizeof(name)
        self.struct = ffi.new(name + "*")
        getattr(lib, name.removesuffix("_options") + "_defaults")(self.struct, size)
        self._kept: list[Any] = []

    def keep(self, data: Any) -> Any:
        self._kept.append(data)
        return data

    def give(self, **fields: Any) -> "Options":
        """Sets each field that is not None; texts are UTF-8, paths are in the system's encoding."""
        for name, value in fields.items():
            if value is None:
                continue
            kind = ffi.typeof(self.struct).item
            of_field = dict(kind.fields)[name].type
            if of_field.kind == "pointer" and of_field.item.cname == "char":
                encoded = path(name, value) if isinstance(value, os.PathLike) else word(name, value)
                value = self.keep(ffi.new("char[]", encoded))
            elif isinstance(value, ffi.CData):
                self.keep(value)  # cffi frees a callback with its last reference
            try:
                setattr(self.struct, name, int(value) if isinstance(value, bool) else value)
            except (TypeError, OverflowError) as why:
                raise type(why)(f"{name} is {_wanted(of_field)}, not {value!r}") from None
        return self

    def give_list(self, name: str, ctype: str, values: list[Any]) -> "Options":
        """Sets `name` and its count."""
        setattr(self.struct, name, self.keep(ffi.new(f"{ctype}[]", values)) if values else ffi.NULL)
        setattr(self.struct, "n_" + name, len(values))
        return self


def _wanted(kind: Any) -> str:
    if kind.cname in ("float", "double"):
        return "a number"
    if kind.cname.startswith(("uint", "int")):
        bits = 8 * ffi.sizeof(kind)
        low, high = (0, 2**bits - 1) if kind.cname.startswith("u") else (-2 ** (bits - 1), 2 ** (bits - 1) - 1)
        return f"an integer from {low} to {high}"
    return f"a {kind.cname}"


def choice(what: str, prefix: str, value: str) -> int:
    """The number of BITNET_<prefix>_<VALUE>."""
    known = {name.removeprefix(f"BITNET_{prefix}_").lower(): number for name, number in numbers.items()
             if name.startswith(f"BITNET_{prefix}_")}
    if value not in known:
        raise ValueError(f"{what} is one of {', '.join(known)}, not {value!r}")
    return known[value]
