"""Converts texts and messages to tokens and back, by a model's handle, which a session keeps if its Model is closed."""

from __future__ import annotations

import operator
from typing import Any, Callable, Mapping, Sequence

from . import _native
from ._native import ffi, lib, numbers

Message = Mapping[str, str]


def tokenize(model: Any, text: str, bos: bool | None, special: bool, eos: bool = False) -> list[int]:
    """Model.tokenize() by a handle, which a session keeps if its Model is closed."""
    encoded = _native.utf8("a text", text)
    flags = {None: numbers["BITNET_TOKENIZE_MODEL_BOS"], True: numbers["BITNET_TOKENIZE_ADD_BOS"],
             False: 0}[bos if bos is None else bool(bos)]
    if special:
        flags |= numbers["BITNET_TOKENIZE_PARSE_SPECIAL"]
    if eos:
        flags |= numbers["BITNET_TOKENIZE_MODEL_EOS"]
    kept = ffi.from_buffer(encoded)
    view = ffi.new("bitnet_str*", {"data": kept, "size": len(encoded)})[0]
    return _ids(len(encoded) + 2, lambda out, room, count: _native.call(
        lib.bitnet_tokenize, model, view, flags, out, room, count))


def _ids(room: int, write: Callable[[Any, int, Any], Any]) -> list[int]:
    count = ffi.new("uint64_t*")
    while True:
        out = ffi.new("bitnet_token[]", room)
        write(out, room, count)
        if count[0] <= room:
            return list(out[0:count[0]])
        room = count[0]


class _Messages:
    """bitnet_message[] of messages, and the memory of their texts."""

    def __init__(self, messages: Sequence[Message]):
        self._kept, self.views = _views(messages)
        self.arguments = ffi.new("bitnet_message[]", self.views), ffi.sizeof("bitnet_message"), len(self.views)


def _views(messages: Sequence[Message]) -> tuple[list[Any], list[Any]]:
    if isinstance(messages, (str, bytes, Mapping)):
        raise TypeError("messages are a list of mappings with role and content")
    kept: list[Any] = []

    def view(text: Any) -> Any:
        encoded = _native.utf8("role or content of a message", text)
        kept.append(ffi.from_buffer(encoded))
        return {"data": kept[-1], "size": len(encoded)}

    views = []
    for one in messages:
        if not isinstance(one, Mapping) or not {"role", "content"} <= set(one):
            raise TypeError(f"a message is a mapping with role and content, not {one!r}")
        views.append({"role": view(one["role"]), "content": view(one["content"])})
    return kept, views


def format_chat(model: Any, messages: Sequence[Message], template: str | None) -> str:
    """Model.format_chat() by a handle."""
    said = _Messages(messages)
    name = ffi.NULL if template is None else _native.word("template", template)
    return _native.text_from(lib.bitnet_chat_format, model, name, *said.arguments)


def tokenize_chat(model: Any, messages: Sequence[Message], template: str | None, parse_special: bool,
                  n_context: int = 0) -> tuple[list[int], int]:
    """Model.tokenize_chat() by a handle, and the number of oldest messages that were left out to fit."""
    said = _Messages(messages)
    options = _native.Options("bitnet_chat_options").give(
        parse_special=bool(parse_special), template_name=template, n_context=n_context)
    left_out = ffi.new("uint64_t*")
    ids = _ids(8192, lambda out, room, count: _native.call(
        lib.bitnet_chat_tokenize, model, options.struct, *said.arguments, out, room, count, left_out))
    return ids, left_out[0]


def token_array(tokens: Sequence[int]) -> Any:
    if isinstance(tokens, (str, bytes)):
        raise TypeError("tokens are a list of ids, not a text")
    try:
        return ffi.new("bitnet_token[]", [operator.index(one) for one in tokens])
    except (TypeError, OverflowError) as why:
        raise type(why)(f"tokens are a list of ids: {why}") from None
