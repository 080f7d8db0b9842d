"""Chats in OpenAI's form, and answers in their parts: bitnet_chat_open and bitnet_answer_*."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterator, Mapping

from . import _native
from ._generation import Generation, Stream
from ._native import ffi, lib, numbers
from .errors import NotFound, Unbound

if TYPE_CHECKING:
    from ._asked import Generating
    from ._model import Model

_KINDS = {number: name.removeprefix("BITNET_ANSWER_").lower() for name, number in numbers.items()
          if name.startswith("BITNET_ANSWER_")}


@dataclass(frozen=True)
class ToolCall:
    """A tool that the model calls."""

    id: str
    name: str
    arguments: str  #: JSON of an object, as the model wrote it


@dataclass(frozen=True)
class AnswerPart:
    """A part of an answer: a bitnet_answer_event."""

    kind: str  #: reasoning_begin, reasoning, reasoning_end, content, call_begin, call_arguments, call_end, malformed
    text: str
    call: int  #: of call_*: the index of the call in the answer
    id: str
    name: str
    message: str  #: of malformed: why it is not a call


@dataclass(frozen=True)
class Answer:
    """A model's answer, in its parts."""

    message: dict[str, Any]  #: in OpenAI's form; it can be appended to the messages
    generation: Generation
    dialect: str  #: the form in which its calls were read

    @property
    def content(self) -> str:
        return self.message["content"] or ""

    @property
    def reasoning(self) -> str:
        text: str = self.message.get("reasoning_content", "")
        return text

    @property
    def tool_calls(self) -> list[ToolCall]:
        return [ToolCall(one["id"], one["function"]["name"], one["function"]["arguments"])
                for one in self.message.get("tool_calls", [])]


class _Chat:
    """The prompt of a chat: a bitnet_chat, and the answer to it."""

    def __init__(self, model: Model, texts: Mapping[str, Any], names: Mapping[str, str | None],
                 parse_special: bool):
        options = _native.Options("bitnet_chat_request").give(parse_special=parse_special, **names)
        for name, value in texts.items():
            if value is None:
                continue
            try:
                encoded = options.keep(ffi.from_buffer(json.dumps(value).encode()))
            except (TypeError, ValueError) as why:
                raise type(why)(f"{name} cannot be written as JSON: {why}") from None
            setattr(options.struct, name, {"data": encoded, "size": len(encoded)})
        made = ffi.new("bitnet_chat**")
        with model._used() as handle:
            _native.call(lib.bitnet_chat_open, handle, options.struct, made)
        try:
            info = ffi.new("bitnet_chat_info*", {"struct_size": ffi.sizeof("bitnet_chat_info")})
            _native.call(lib.bitnet_chat_describe, made[0], info)
            self.tokens = list(info.tokens[0:info.n_tokens])
            self.dialect = _native.piece_of(info.dialect)
            self.grammar = _native.piece_of(info.grammar)
            self.reasoning = {"in_reasoning": bool(info.in_reasoning),
                              "reasoning_begins": _native.piece_of(info.reasoning_begins),
                              "reasoning_ends": _native.piece_of(info.reasoning_ends)}
            self.unbound = _native.piece_of(info.unbound).splitlines()
            answer = ffi.new("bitnet_answer**")
            _native.call(lib.bitnet_chat_answer, made[0], ffi.NULL, answer)
            self.answer = ffi.gc(answer[0], lib.bitnet_answer_close)
        finally:
            lib.bitnet_chat_close(made[0])


class AnswerStream(Iterator[AnswerPart]):
    """Parts of an answer while it is generated. close(), or the end of a `with` block, ends the generation."""

    def __init__(self, model: Model, texts: Mapping[str, Any], names: Mapping[str, str | None],
                 how: Generating):
        asked: dict[str, Any] = dict(how)
        self._chat = _Chat(model, texts, names, bool(asked.pop("parse_special_in_messages", False)))
        if self._chat.grammar:
            for form in ("grammar", "json_schema"):
                if form in asked:
                    raise ValueError(f"tool_choice demands a call, whose form is a grammar; leave {form} out")
            for line in self._chat.unbound:
                warnings.warn(f"the arguments of a tool may be anything: {line}", Unbound, stacklevel=3)
            asked["grammar"] = self._chat.grammar
        asked = {**self._chat.reasoning, **asked}
        self._ended = False
        self._stream = Stream(model.session(), self._chat.tokens, asked, own=True)  # type: ignore[arg-type]

    def __next__(self) -> AnswerPart:
        while True:
            part = self._next_part()
            if part is not None:
                return part
            if self._ended:
                raise StopIteration
            piece = next(self._stream, None)
            if piece is None:
                self._ended = True
                _native.call(lib.bitnet_answer_finish, self._chat.answer)
            else:
                encoded = piece.encode()
                kept = ffi.from_buffer(encoded)
                view = ffi.new("bitnet_str*", {"data": kept, "size": len(encoded)})[0]
                _native.call(lib.bitnet_answer_push, self._chat.answer, view)

    def _next_part(self) -> AnswerPart | None:
        event = ffi.new("bitnet_answer_event*", {"struct_size": ffi.sizeof("bitnet_answer_event")})
        try:
            _native.call(lib.bitnet_answer_next, self._chat.answer, event)
        except NotFound:
            return None
        return AnswerPart(_KINDS.get(event.kind, "unknown"), _native.piece_of(event.text), event.call,
                          _native.piece_of(event.id), _native.piece_of(event.name), _native.piece_of(event.message))

    def finish(self) -> Answer:
        """Reads the rest and returns the whole answer."""
        for _ in self:
            pass
        message = _native.json_from(lib.bitnet_answer_message, self._chat.answer)
        return Answer(message, self._stream.finish(), self._chat.dialect)

    def close(self) -> None:
        self._stream.close()

    def __enter__(self) -> "AnswerStream":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
