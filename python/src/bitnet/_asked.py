"""Options of generation and prompts of a caller, converted to the library's structs."""

from __future__ import annotations

import json
import secrets
from typing import Any, List, Mapping, Sequence, TypedDict, Union

from . import _native
from ._model_file import ModelFile
from ._native import ffi, lib, numbers
from ._text import Message, format_chat, token_array

Prompt = Union[str, Sequence[int], Sequence[Message]]

_THINKING = "<think>"
_THOUGHT = "</think>"
_STOPS = {number: name.removeprefix("BITNET_STOP_").lower() for name, number in numbers.items()
          if name.startswith("BITNET_STOP_")}


class Generating(TypedDict, total=False):
    """How to generate: bitnet_generation and bitnet_sampling, with their defaults.

    Without `seed` a random one is drawn; the Generation has it. `stop` are texts that end the answer and are
    not in it; `stop_tokens` are ids that end it. `grammar` is GBNF (docs/reference/grammars.md): each answer is the
    begin of a text that the rule root allows. `json_schema` is a JSON Schema (docs/reference/json-schema.md), as a
    text or as the value that json.loads returns: each answer is the begin of a JSON text that is valid by it.
    `dry_breakers` are texts that end a repetition and replace the library's; [] means none
    (docs/reference/sampling.md). `speculation` is "none", "ngram", "draft" or "auto": the source of draft tokens, which
    do not change the text. `draft` is a model with the same vocabulary that drafts; it stays open until the session
    or engine is closed. `draft_max`, `draft_min` and `ngram_size` count tokens. `template` and
    `parse_special_in_messages` are for messages, as in Model.tokenize_chat(). `reasoning_budget` limits the tokens of
    thinking, whose end is then written. Thinking is between `reasoning_begins` and `reasoning_ends`, by default
    "<think>" and "</think>"; `in_reasoning`: the prompt ends within it, which messages determine themselves.
    """

    max_tokens: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repeat_penalty: float
    presence_penalty: float
    frequency_penalty: float
    repeat_last_n: int
    top_n_sigma: float
    typical_p: float
    xtc_probability: float
    xtc_threshold: float
    dynatemp_range: float
    dynatemp_exponent: float
    mirostat: int
    mirostat_tau: float
    mirostat_eta: float
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_penalty_last_n: int
    dry_breakers: Sequence[str]
    seed: int
    ignore_eos: bool
    logit_bias: Mapping[int, float]
    stop: Union[str, Sequence[str]]
    stop_tokens: Sequence[int]
    grammar: str
    speculation: str
    draft: ModelFile
    draft_max: int
    draft_min: int
    ngram_size: int
    json_schema: Union[str, bool, Mapping[str, Any]]
    reasoning_budget: int
    in_reasoning: bool
    reasoning_begins: str
    reasoning_ends: str
    template: str
    parse_special_in_messages: bool


def check_grammar(grammar: str) -> None:
    """Raises InvalidArgument, with line and column, if generate() would reject the grammar."""
    encoded = _native.utf8("grammar", grammar)
    _native.call(lib.bitnet_grammar_check, {"data": ffi.from_buffer(encoded), "size": len(encoded)})


def _schema_text(json_schema: str | bool | Mapping[str, Any]) -> str:
    return json_schema if isinstance(json_schema, str) else json.dumps(json_schema)


def check_json_schema(json_schema: str | bool | Mapping[str, Any]) -> None:
    """Raises InvalidArgument if the schema is malformed, and Unsupported if generate() cannot enforce it. The message
    has the place, as a JSON pointer."""
    encoded = _native.utf8("json_schema", _schema_text(json_schema))
    _native.call(lib.bitnet_json_schema_check, {"data": ffi.from_buffer(encoded), "size": len(encoded)})


def check_names(how: Mapping[str, Any], known: type) -> None:
    unknown = set(how) - set(known.__annotations__)
    if unknown:
        raise TypeError(f"there is no way to generate called {', '.join(sorted(unknown))}")


def _speculation(name: str | None, draft: ModelFile | None) -> int:
    if name is None:
        name = "none" if draft is None else "draft"
    return _native.choice("speculation", "SPECULATION", name)


class Asked:
    """bitnet_generation, and the structs that it points to, from Generating without the members for messages."""

    def __init__(self, how: dict[str, Any]):
        how = dict(how)
        stop, stop_tokens = how.pop("stop", None) or [], how.pop("stop_tokens", None)
        self._stops = [stop] if isinstance(stop, str) else list(stop)
        self._stop_tokens = token_array([] if stop_tokens is None else stop_tokens)
        biases = how.pop("logit_bias", None) or {}
        self.max_tokens = how.pop("max_tokens", None)
        breakers = how.pop("dry_breakers", None)
        grammar, json_schema = how.pop("grammar", None), how.pop("json_schema", None)
        budget, in_reasoning = how.pop("reasoning_budget", None), how.pop("in_reasoning", False)
        tags = {name: how.pop(name, usual) for name, usual in
                (("reasoning_begins", _THINKING), ("reasoning_ends", _THOUGHT))}
        self.draft: ModelFile | None = how.pop("draft", None)
        if self.draft is not None and not isinstance(self.draft, ModelFile):
            raise TypeError(f"draft is a bitnet.Model, not {type(self.draft).__name__}")
        ahead = _native.Options("bitnet_speculation").give(
            type=_speculation(how.pop("speculation", None), self.draft), n_max=how.pop("draft_max", None),
            n_min=how.pop("draft_min", None), ngram_size=how.pop("ngram_size", None))
        seed = how.pop("seed", None)
        self.seed: int = secrets.randbits(32) if seed is None else seed
        self._sampling = _native.Options("bitnet_sampling").give(
            seed=self.seed, logit_bias_size=ffi.sizeof("bitnet_logit_bias"), **how)
        try:
            self._sampling.give_list("logit_bias", "bitnet_logit_bias", [
                {"token": token, "bias": bias} for token, bias in biases.items()])
        except (TypeError, OverflowError, AttributeError) as why:
            raise TypeError(f"logit_bias maps ids to numbers: {why}") from None
        if breakers is not None:
            if isinstance(breakers, str):
                raise TypeError(f"dry_breakers is a list of texts, not {breakers!r}")
            self._sampling.give_list("dry_breakers", "bitnet_str", self._views(self._sampling, "dry_breakers", breakers))
        self.options = _native.Options("bitnet_generation").give(
            max_tokens=self.max_tokens, reasoning_budget=budget, in_reasoning=bool(in_reasoning))
        for name, text in tags.items() if budget is not None else ():
            setattr(self.options.struct, name, self._views(self.options, name, [text])[0])
        self.options.struct.speculation = self.options.keep(ahead).struct
        self._ahead = ahead
        self._give_texts(grammar, json_schema)
        self.options.struct.n_stop_tokens = len(self._stop_tokens)
        self.options.struct.stop_tokens = self._stop_tokens
        self.options.struct.sampling = self._sampling.struct

    def drafts_for(self, owner: Any) -> None:
        """From now on the handle `owner`, of a session or scheduler, keeps the draft model open."""
        if self.draft is None:
            return
        assert self.draft._handle is not None
        with self.draft._handle.used() as pointer:
            owner.need(self.draft._handle)
            self._ahead.struct.draft = pointer

    @staticmethod
    def _views(of: _native.Options, what: str, texts: Sequence[str]) -> List[Any]:
        views: List[Any] = []
        for one in texts:
            encoded = of.keep(ffi.from_buffer(_native.utf8(what, one)))
            views.append({"data": encoded, "size": len(encoded)})
        return views

    def _give_texts(self, grammar: str | None, json_schema: str | bool | Mapping[str, Any] | None) -> None:
        self.options.give_list("stop_strings", "bitnet_str", self._views(self.options, "stop", self._stops))
        if grammar is not None:
            check_grammar(grammar)  # an error is raised now, not when the text is read
            encoded = self.options.keep(ffi.from_buffer(_native.utf8("grammar", grammar)))
            self.options.struct.grammar = {"data": encoded, "size": len(encoded)}
        if json_schema is not None:
            check_json_schema(json_schema)
            encoded = self.options.keep(ffi.from_buffer(_native.utf8("json_schema", _schema_text(json_schema))))
            self.options.struct.json_schema = {"data": encoded, "size": len(encoded)}

    def ending(self, reason: int, index: int) -> tuple[str, str | int | None]:
        """The name of BITNET_STOP_*, and the text or token that ended the answer."""
        name = _STOPS.get(reason, "unknown")
        stops: Any = {"string": self._stops, "token": self._stop_tokens}.get(name, [])
        return name, stops[index] if index < len(stops) else None


def ids_or_messages(prompt: Prompt) -> tuple[Any, list[Any]]:
    """The ids or the messages of a prompt that is not a text; the other one is empty."""
    if isinstance(prompt, (bytes, Mapping)):
        raise TypeError(f"a prompt is a text, a list of ids or a list of messages, not {prompt!r}")
    parts: list[Any] = list(prompt)
    if parts and isinstance(parts[0], Mapping):
        return (), parts
    return token_array(parts), []


def begun_answer(model: Any, messages: Sequence[Message], template: str | None) -> str:
    """The text with which the chat's template begins the answer."""
    text = format_chat(model, messages, template)
    return _THINKING + "\n" if text.rstrip(" \t\r\n").endswith(_THINKING) else ""
