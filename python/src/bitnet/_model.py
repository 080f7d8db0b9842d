from __future__ import annotations

import json
import operator
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from . import _handles, _native
from ._engine import Engine, Owner, interruptible
from ._native import ffi, lib, numbers

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Unpack

    from ._answers import Answer, AnswerStream
    from ._asked import Generating, Prompt
    from ._chat import Chat
    from ._generation import AsyncStream, Generation, Stream
    from ._session import Session, SessionOptions

Message = Mapping[str, str]


@dataclass(frozen=True)
class ModelInfo:
    """bitnet_model_info; a token that the model does not have is None."""

    name: str
    architecture: str
    n_vocab: int
    n_context: int  #: that the model was trained for
    n_layers: int
    n_embedding: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    n_feed_forward: int
    n_parameters: int
    weight_bytes: int
    add_bos: bool
    bos: int | None
    eos: int | None
    eot: int | None
    unknown: int | None
    padding: int | None
    fim_pre: int | None  #: of infilling, as the five below
    fim_suf: int | None
    fim_mid: int | None
    fim_pad: int | None
    fim_rep: int | None
    fim_sep: int | None


def _reading(activation: str, activations: str, i2s_layout: str, tl1_tiles: str) -> _native.Options:
    return _native.Options("bitnet_model_options").give(
        activation=_native.choice("activation", "ACTIVATION", activation),
        activations=_native.choice("activations", "ACTIVATIONS", activations),
        i2s_layout=_native.choice("i2s_layout", "I2S_LAYOUT", i2s_layout),
        tl1_tiles=_native.choice("tl1_tiles", "TL1_TILES", tl1_tiles))


def _layers(n: int | str) -> dict[str, int]:
    if not isinstance(n, int):
        if n not in ("auto", "all"):
            raise ValueError(f"n_gpu_layers is auto, all or a number of layers, not {n!r}")
        return {"gpu_layers": _native.choice("n_gpu_layers", "GPU_LAYERS", n)}
    return {"gpu_layers": numbers["BITNET_GPU_LAYERS_COUNT"], "n_gpu_layers": n}


class _Progress:
    """A callback, and what it raised."""

    def __init__(self, function: Callable[[int, int], object] | None):
        if function is not None and not callable(function):
            raise TypeError(f"progress is a function of bytes done and bytes in all, not {function!r}")
        self.function = function
        self.failed: BaseException | None = None
        self.stopped = False
        self.c = ffi.callback("bitnet_progress_callback", self._tell)

    def _tell(self, user: Any, done: int, total: int) -> int:
        if self.function is not None and not self.stopped:
            with _handles.callback():
                try:
                    self.function(done, total)
                except BaseException as why:
                    self.failed = why
                    self.stopped = True
        return 1 if self.stopped else 0

    def stop(self) -> None:
        self.stopped = True

    def run(self, work: Callable[[], Any], discard: Callable[[Any], None] = lambda made: None) -> Any:
        try:
            return interruptible(work, self.stop, discard)
        except Exception:
            if self.failed is not None:
                raise self.failed from None
            raise


class Model(Owner):
    """A model file, read-only; from any thread.

    Without an engine it has one of its own, on `device`. `progress` is called with the bytes that
    are in place and their total, and ends the opening by raising. The other arguments are those of
    bitnet_model_options.
    """

    def __init__(self, path: str | os.PathLike[str], *, engine: Engine | None = None,
                 device: str | None = None, vocabulary_only: bool = False,
                 progress: Callable[[int, int], object] | None = None,
                 activation: str = "auto", activations: str = "auto", i2s_layout: str = "a",
                 tl1_tiles: str = "generated", pack_cache: str | os.PathLike[str] | None = None,
                 pack_cache_max_bytes: int | None = None, kv_budget_bytes: int | None = None,
                 kv_eviction: str = "lru", tune: bool = False, load_mode: str = "auto",
                 n_gpu_layers: int | str = "auto", split_mode: str = "layer",
                 tensor_split: Sequence[float] | None = None):
        if engine is not None and device is not None:
            raise ValueError("give an engine or a device: the engine has chosen one")
        if engine is not None and not isinstance(engine, Engine):
            raise TypeError(f"engine is a bitnet.Engine, not {type(engine).__name__}")
        file = _native.path("a model", path)
        reporter = _Progress(progress)
        options = _reading(activation, activations, i2s_layout, tl1_tiles).give(
            vocabulary_only=vocabulary_only, pack_cache=pack_cache,
            pack_cache_max_bytes=pack_cache_max_bytes, kv_budget_bytes=kv_budget_bytes,
            kv_eviction=_native.choice("kv_eviction", "EVICT", kv_eviction), tune=tune,
            load_mode=_native.choice("load_mode", "LOAD", load_mode),
            split_mode=_native.choice("split_mode", "SPLIT", split_mode), **_layers(n_gpu_layers),
            progress=reporter.c).give_list("tensor_split", "float", list(tensor_split or ()))
        self._own = Engine(device) if engine is None and not vocabulary_only else None
        of = engine or self._own
        parent = of._handle if of is not None else None

        def work() -> _handles.Handle:
            out = ffi.new("bitnet_model**")
            runtime = parent.hold() if parent is not None else ffi.NULL
            try:
                _native.call(lib.bitnet_model_open, runtime, file, options.struct, out)
            except BaseException:
                if parent is not None:
                    parent.let_go()
                raise
            return _handles.Handle("Model", out[0], lib.bitnet_model_close, parent)

        try:
            self._handle = reporter.run(work, _handles.Handle.close)
        except BaseException:
            if self._own is not None:
                self._own.close()
            raise
        self._path = os.fsdecode(file)
        self._info = self._describe()

    def __enter__(self) -> "Model":
        return self

    def __repr__(self) -> str:
        return f"<bitnet.Model {self._path!r}{' closed' if self.closed else ''}>"

    def close(self) -> None:
        super().close()
        own = getattr(self, "_own", None)
        if own is not None:
            own.close()

    def _used(self) -> Any:
        assert self._handle is not None
        return self._handle.used()

    def _describe(self) -> ModelInfo:
        out = ffi.new("bitnet_model_info*", {"struct_size": ffi.sizeof("bitnet_model_info")})
        with self._used() as model:
            _native.call(lib.bitnet_model_describe, model, out)
        values: dict[str, Any] = {}
        for name in ModelInfo.__dataclass_fields__:
            value = getattr(out, name)
            if name in ("name", "architecture"):
                value = _native.text_of(value)
            elif name == "add_bos":
                value = bool(value)
            elif name in ("bos", "eos", "eot", "unknown", "padding") or name.startswith("fim_"):
                value = None if value == numbers["BITNET_NONE"] else value
            values[name] = value
        return ModelInfo(**values)

    @property
    def info(self) -> ModelInfo:
        return self._info

    @property
    def path(self) -> str:
        return self._path

    # ---- text

    def tokenize(self, text: str, *, bos: bool | None = None, special: bool = False,
                 eos: bool = False) -> list[int]:
        """Ids of a text. `bos`: with the token that begins a text; None: if the model asks for it.
        `special`: the text of a control token becomes that token. `eos`: with the token that ends a
        text, if the model asks for it."""
        with self._used() as model:
            return tokenize(model, text, bos, special, eos)

    def detokenize(self, tokens: Sequence[int], *, special: bool = False) -> str:
        """Text of ids; what is no whole character in it is U+FFFD. `special`: also of control tokens."""
        ids = token_array(tokens)
        flags = numbers["BITNET_DETOKENIZE_SPECIAL"] if special else 0
        with self._used() as model:
            return _native.text_from(lib.bitnet_detokenize, model, ids, len(ids), flags)

    def ends_generation(self, token: int) -> bool:
        """Whether a text ends with it."""
        with self._used() as model:
            return bool(lib.bitnet_token_ends_generation(model, token))

    def format_chat(self, messages: Sequence[Message], *, template: str | None = None) -> str:
        """Messages, each with "role" and "content", in the form that the model knows, ending where the
        answer begins. `template`: a name of the C API; None: the model's own."""
        with self._used() as model:
            return format_chat(model, messages, template)

    def tokenize_chat(self, messages: Sequence[Message], *, template: str | None = None,
                      parse_special_in_messages: bool = False) -> list[int]:
        """Ids of that text, as generate() has them for messages. Control tokens are those of the template: what
        looks like one in a message is text, unless `parse_special_in_messages`; then messages can end turns."""
        with self._used() as model:
            return tokenize_chat(model, messages, template, parse_special_in_messages)[0]

    # ---- to embed

    def embed(self, texts: str | Sequence[str], *, pooling: str = "model",
              **options: "Unpack[SessionOptions]") -> "npt.NDArray[np.float32]":
        """The embedding of a text (n_embedding), or of each of several (n, n_embedding): of length
        1, so that the product of two is how near their texts are. Each is made in a session of
        these options, and depends on its own text alone."""
        import numpy as np
        several = [texts] if isinstance(texts, str) else list(texts)
        ids = [self.tokenize(text, eos=True) for text in several]
        out = np.empty((len(ids), self.info.n_embedding), np.float32)
        options["embeddings"], options["pooling"] = True, pooling
        with self.session(**options) as session:
            for row, tokens in zip(out, ids):
                row[:] = session.embed(tokens)
        return out[0] if isinstance(texts, str) else out

    # ---- to generate

    def session(self, **options: "Unpack[SessionOptions]") -> "Session":
        """Session(self, ...)"""
        from ._session import Session
        return Session(self, **options)

    def chat(self, system: str | None = None, *, template: str | None = None,
             **options: "Unpack[SessionOptions]") -> "Chat":
        """A conversation that remembers what was said."""
        from ._chat import Chat
        return Chat(self, system, template=template, **options)

    def answer(self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Mapping[str, Any]] | None = None,
               tool_choice: str | Mapping[str, Any] | None = None,
               template_arguments: Mapping[str, Any] | None = None, template: str | None = None,
               dialect: str | None = None, **how: "Unpack[Generating]") -> "Answer":
        """The answer to messages in OpenAI's form, in its parts: what the model says, what it thinks, which of the
        `tools` it calls. `tool_choice` is auto, none, required, or names one. InvalidArgument names what is
        wrong by its path. The rest is docs/reference/chat-json.md."""
        return self.stream_answer(messages, tools=tools, tool_choice=tool_choice, template=template, dialect=dialect,
                                  template_arguments=template_arguments, **how).finish()

    def stream_answer(self, messages: Sequence[Mapping[str, Any]], *,
                      tools: Sequence[Mapping[str, Any]] | None = None,
                      tool_choice: str | Mapping[str, Any] | None = None,
                      template_arguments: Mapping[str, Any] | None = None, template: str | None = None,
                      dialect: str | None = None, **how: "Unpack[Generating]") -> "AnswerStream":
        """The same while it comes: its parts, one after the other."""
        from ._answers import AnswerStream
        return AnswerStream(self, {"messages": messages, "tools": tools, "tool_choice": tool_choice,
                                   "template_arguments": template_arguments},
                            {"template_name": template, "dialect": dialect}, how)

    def generate(self, prompt: "Prompt", **how: "Unpack[Generating]") -> "Generation":
        """Session.generate() in a session of its own."""
        with self.session() as session:
            return session.generate(prompt, **how)

    def stream(self, prompt: "Prompt", **how: "Unpack[Generating]") -> "Stream":
        """Session.stream() in a session of its own."""
        from ._generation import Stream
        return Stream(self.session(), prompt, how, own=True)

    async def agenerate(self, prompt: "Prompt", **how: "Unpack[Generating]") -> "Generation":
        """Session.agenerate() in a session of its own."""
        from ._generation import AsyncStream
        from ._session import Session
        async with AsyncStream(lambda: Session(self), prompt, how, own=True, quiet=True) as stream:
            return await stream.finish()

    def astream(self, prompt: "Prompt", **how: "Unpack[Generating]") -> "AsyncStream":
        """Session.astream() in a session of its own."""
        from ._generation import AsyncStream
        from ._session import Session
        return AsyncStream(lambda: Session(self), prompt, how, own=True)


def tokenize(model: Any, text: str, bos: bool | None, special: bool, eos: bool = False) -> list[int]:
    """Model.tokenize() of a handle, which a session has when its Model is closed."""
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
    """bitnet_message[] of messages, and what their texts lie in."""

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
    """Model.format_chat() of a handle."""
    said = _Messages(messages)
    name = ffi.NULL if template is None else _native.word("template", template)
    return _native.text_from(lib.bitnet_chat_format, model, name, *said.arguments)


def tokenize_chat(model: Any, messages: Sequence[Message], template: str | None, parse_special: bool,
                  n_context: int = 0) -> tuple[list[int], int]:
    """Model.tokenize_chat() of a handle, and how many of the oldest messages were left out so that it fits."""
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


def inspect(path: str | os.PathLike[str], *, activation: str = "auto", activations: str = "auto",
            i2s_layout: str = "a", tl1_tiles: str = "generated") -> dict[str, Any]:
    """Metadata and tensors of a model file, without a backend: the JSON of bitnet_inspect."""
    options = _reading(activation, activations, i2s_layout, tl1_tiles)
    report: dict[str, Any] = _native.json_from(lib.bitnet_inspect, _native.path("a model", path),
                                               options.struct)
    return report


def convert(source: str | os.PathLike[str], to: str | os.PathLike[str], *, type: str | None = None,
            embedding_type: str | None = None, output_type: str | None = None, overwrite: bool = False,
            verify: bool = False, n_threads: int | None = None,
            progress: Callable[[int, int], object] | None = None) -> dict[str, Any]:
    """Writes a model as a GGUF file, which appears whole or not at all; what it consists of."""
    reporter = _Progress(progress)
    reports: list[str] = []
    on_report = ffi.callback("void(void*, bitnet_str)",
                             lambda user, text: reports.append(_native.piece_of(text)))
    options = _native.Options("bitnet_convert_options").give(
        type=type, embedding_type=embedding_type, output_type=output_type, overwrite=overwrite,
        verify=verify, n_threads=n_threads, progress=reporter.c)
    words = _native.path("source", source), _native.path("to", to)
    reporter.run(lambda: _native.call(lib.bitnet_convert, *words, options.struct, on_report, ffi.NULL))
    return json.loads(reports[0]) if reports else {}
