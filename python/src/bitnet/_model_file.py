"""A model file: opened, described, inspected, converted."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Callable, Sequence

from . import _handles, _native
from ._native import ffi, lib, numbers
from ._owner import Owner, interruptible
from ._runtime import Runtime
from ._text import Message, format_chat, token_array, tokenize, tokenize_chat


@dataclass(frozen=True)
class ModelInfo:
    """bitnet_model_info; None for a token that the model does not have."""

    name: str
    architecture: str
    n_vocab: int
    n_context: int  #: tokens; the context that the model was trained for
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
    fim_pre: int | None  #: for infilling, like the five below
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
    """A callback, and the exception that it raised."""

    def __init__(self, function: Callable[[int, int], object] | None):
        if function is not None and not callable(function):
            raise TypeError(f"progress is a function of bytes done and bytes in all, not {function!r}")
        self.function = function
        self.failed: BaseException | None = None
        self.stopped = False
        self.c = ffi.callback("bitnet_progress_callback", self._report)

    def _report(self, user: Any, done: int, total: int) -> int:
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


class ModelFile(Owner):
    """A model file, read-only; from any thread. bitnet.Model without sessions.

    Without an engine it has one of its own, on `device`. `progress` is called with the loaded bytes
    and their total; an exception that it raises ends the opening. The other arguments are those of
    bitnet_model_options.
    """

    def __init__(self, path: str | os.PathLike[str], *, engine: Runtime | None = None,
                 device: str | None = None, vocabulary_only: bool = False,
                 progress: Callable[[int, int], object] | None = None,
                 activation: str = "auto", activations: str = "auto", i2s_layout: str = "a",
                 tl1_tiles: str = "generated", pack_cache: str | os.PathLike[str] | None = None,
                 pack_cache_max_bytes: int | None = None, kv_budget_bytes: int | None = None,
                 kv_eviction: str = "lru", tune: bool = False, load_mode: str = "auto",
                 n_gpu_layers: int | str = "auto", split_mode: str = "layer",
                 tensor_split: Sequence[float] | None = None,
                 signature_key: str | os.PathLike[str] | None = None,
                 signature_ca: str | os.PathLike[str] | None = None,
                 signature: str | os.PathLike[str] | None = None):
        if engine is not None and device is not None:
            raise ValueError("give an engine or a device: the engine has chosen one")
        if engine is not None and not isinstance(engine, Runtime):
            raise TypeError(f"engine is a bitnet.Engine, not {type(engine).__name__}")
        file = _native.path("a model", path)
        reporter = _Progress(progress)
        options = _reading(activation, activations, i2s_layout, tl1_tiles).give(
            vocabulary_only=vocabulary_only, pack_cache=pack_cache,
            pack_cache_max_bytes=pack_cache_max_bytes, kv_budget_bytes=kv_budget_bytes,
            kv_eviction=_native.choice("kv_eviction", "EVICT", kv_eviction), tune=tune,
            load_mode=_native.choice("load_mode", "LOAD", load_mode),
            split_mode=_native.choice("split_mode", "SPLIT", split_mode), **_layers(n_gpu_layers),
            signature_key=signature_key, signature_ca=signature_ca, signature=signature,
            progress=reporter.c).give_list("tensor_split", "float", list(tensor_split or ()))
        self._own = Runtime(device) if engine is None and not vocabulary_only else None
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
        """The text of ids; an incomplete character becomes U+FFFD. `special`: with the text of control tokens."""
        ids = token_array(tokens)
        flags = numbers["BITNET_DETOKENIZE_SPECIAL"] if special else 0
        with self._used() as model:
            return _native.text_from(lib.bitnet_detokenize, model, ids, len(ids), flags)

    def ends_generation(self, token: int) -> bool:
        """True if the token ends a text."""
        with self._used() as model:
            return bool(lib.bitnet_token_ends_generation(model, token))

    def format_chat(self, messages: Sequence[Message], *, template: str | None = None) -> str:
        """The text of messages, each with "role" and "content", in the model's chat format; it ends where the
        answer begins. `template`: a name of the C API; None: the model's own."""
        with self._used() as model:
            return format_chat(model, messages, template)

    def tokenize_chat(self, messages: Sequence[Message], *, template: str | None = None,
                      parse_special_in_messages: bool = False) -> list[int]:
        """Ids of the text of format_chat(), as generate() evaluates them for messages. Only the template's control
        tokens are control tokens: in a message their names are text, unless `parse_special_in_messages`; messages
        could then end turns."""
        with self._used() as model:
            return tokenize_chat(model, messages, template, parse_special_in_messages)[0]


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
    """Writes a model as a GGUF file, which appears whole or not at all. Returns its metadata and tensors."""
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
