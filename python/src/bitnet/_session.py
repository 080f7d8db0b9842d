from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence, TypedDict

import numpy as np

from . import _handles, _native, errors
from ._asked import Generating, Prompt, begun_answer, ids_or_messages
from ._generation import AsyncStream, Conversation, Generation, Stream
from ._model_file import ModelFile
from ._native import ffi, lib
from ._owner import Owner, interruptible
from ._receipts import receipt_options
from ._text import token_array, tokenize, tokenize_chat

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Unpack

    from ._model import Model


class SessionOptions(TypedDict, total=False):
    """bitnet_session_options. `kv_k` and `kv_v` are "f16", "f32", "q8_0" or "q4_0"; `precision` is "f32", "f16" or
    "bf16"; `pooling`, for embeddings, is "model" (the file's value, or "last" without one), "mean", "last" or "cls"."""

    n_context: int
    n_batch: int
    kv_k: str
    kv_v: str
    deterministic: bool
    precision: str
    profile: bool
    low_memory: bool
    window: int
    window_keep: int
    embeddings: bool
    pooling: str


def session_options(given: Mapping[str, Any], known: type, of: str) -> _native.Options:
    """Builds bitnet_session_options from `given`, whose keys must be fields of `known`."""
    unknown = set(given) - set(known.__annotations__)
    if unknown:
        raise TypeError(f"there is no option of {of} called {', '.join(sorted(unknown))}")
    numbers = dict(given)
    for name, kind in (("kv_k", "KV"), ("kv_v", "KV"), ("pooling", "POOLING"), ("precision", "PRODUCTS")):
        if numbers.get(name) is not None:
            numbers[name] = _native.choice(name, kind, numbers[name])
    return _native.Options("bitnet_session_options").give(**numbers)


class Session(Owner):
    """Tokens, their keys and values, and their continuation. One thread at a time may use it; others get Busy.
    cancel() may be called from any thread."""

    def __init__(self, model: "Model", **options: "Unpack[SessionOptions]"):
        if not isinstance(model, ModelFile):
            raise TypeError(f"model is a bitnet.Model, not {type(model).__name__}")
        chosen = session_options(options, SessionOptions, "a session")
        parent = model._handle
        assert parent is not None
        out = ffi.new("bitnet_session**")
        pointer = parent.hold()
        try:
            _native.call(lib.bitnet_session_open, pointer, chosen.struct, out)
        except BaseException:
            parent.let_go()
            raise
        self._handle = _handles.Handle("Session", out[0], lib.bitnet_session_close, parent)
        self._model, self._model_pointer = model, pointer
        self._tokens: list[int] = []
        self._capacity = int(lib.bitnet_session_capacity(out[0]))
        self._turn = threading.Lock()
        turns = self._turns = _Turns(out[0])
        self._handle.stop = turns.cancel

    def __enter__(self) -> "Session":
        return self

    def __repr__(self) -> str:
        return f"<bitnet.Session {'closed' if self.closed else f'{len(self)} of {self.capacity} tokens'}>"

    @property
    def model(self) -> "Model":
        return self._model

    @property
    def capacity(self) -> int:
        """The size of the context, in tokens."""
        return self._capacity

    @property
    def tokens(self) -> list[int]:
        """The ids of its tokens; generated ones are added when the generation has ended."""
        return list(self._tokens)

    def __len__(self) -> int:
        return len(self._tokens)

    def __bool__(self) -> bool:
        return True

    # ---- turns: the call that uses the session

    def _begin(self, who: object) -> Any:
        assert self._handle is not None
        pointer = self._handle.hold()
        try:
            ends = time.monotonic() + 60
            while not self._turn.acquire(timeout=0 if self._turns.at_work else 0.05):
                # Waits for a call that was cancelled, such as an abandoned stream.
                if self._turns.at_work or time.monotonic() > ends:
                    raise errors.Busy("the session is at work; wait for it, cancel it, or open another one")
        except BaseException:
            self._handle.let_go()
            raise
        self._turns.who = who
        return pointer

    def _end(self, who: object) -> None:
        assert self._handle is not None
        self._turns.end()
        self._turn.release()
        self._handle.let_go()

    def _cancel(self, who: object) -> None:
        self._turns.cancel(who)

    def _in_turn(self, work: Callable[[Any], Any]) -> Any:
        """Runs work(pointer) in a turn of its own."""
        turn = _Turn(self)

        def run() -> Any:
            pointer = self._begin(turn)
            try:
                if turn.stopped:
                    raise errors.Cancelled("it was interrupted before it began")
                return work(pointer)
            finally:
                self._end(turn)

        return interruptible(run, turn.stop)

    def _appended(self, pointer: Any, tokens: list[int]) -> None:
        """Called after a call that appends, which may have appended some tokens or none if it failed."""
        self._tokens = [*self._tokens, *tokens][:lib.bitnet_session_length(pointer)]

    def _prompt(self, pointer: Any, prompt: Prompt, template: str | None,
                parse_special: bool) -> tuple[list[int], str]:
        """The ids to append, and the text with which the answer begins."""
        if isinstance(prompt, str):
            return tokenize(self._model_pointer, prompt, False if self._tokens else None, True), ""
        plain, parts = ids_or_messages(prompt)
        if not parts:
            return list(plain), ""
        conversation = prompt if isinstance(prompt, Conversation) else None
        ids, left_out = tokenize_chat(self._model_pointer, parts, template, parse_special,
                                      self.capacity if conversation is not None else 0)
        if conversation is not None:
            parts = conversation.leave_out(left_out)
        begun = begun_answer(self._model_pointer, parts, template)
        # Tokens that the session has already stay; at least one token must be evaluated.
        same = next((i for i, (old, new) in enumerate(zip(self._tokens, ids)) if old != new),
                    min(len(self._tokens), len(ids)))
        same = max(min(same, len(ids) - 1), 0)
        if same < len(self._tokens):
            self._truncate(pointer, same)
        return ids[same:], begun

    def _truncate(self, pointer: Any, n: int) -> None:
        _native.call(lib.bitnet_session_truncate, pointer, n)
        del self._tokens[n:]

    # ---- work

    def eval(self, tokens: Sequence[int], *, all_rows: bool = False,
             out: "npt.NDArray[np.float32] | None" = None) -> "npt.NDArray[np.float32]":
        """Appends tokens and returns the logits after the last one (n_vocab), or after each (n, n_vocab).

        The library writes into a new array, or into `out`, which must have that shape."""
        ids = token_array(tokens)
        n_vocab = self._model.info.n_vocab
        shape = (len(ids), n_vocab) if all_rows else (n_vocab,)
        if out is None:
            out = np.empty(shape, np.float32)
        elif not isinstance(out, np.ndarray) or out.dtype != np.float32 or out.shape != shape or (
                not out.flags.c_contiguous or not out.flags.writeable):
            raise ValueError(f"out is a writeable contiguous array of float32 of the shape {shape}")
        self._eval(ids, all_rows, ffi.cast("float*", out.ctypes.data), out.size)
        return out

    def append(self, tokens: Sequence[int]) -> None:
        """Appends tokens, without logits."""
        self._eval(token_array(tokens), False, ffi.NULL, 0)

    def _eval(self, ids: Any, all_rows: bool, logits: Any, room: int) -> None:
        def work(pointer: Any) -> None:
            try:
                _native.call(lib.bitnet_session_eval, pointer, ids, len(ids), int(all_rows), logits, room)
            finally:
                self._appended(pointer, list(ids))

        self._in_turn(work)

    def embed(self, tokens: Sequence[int]) -> "npt.NDArray[np.float32]":
        """The embedding of tokens (n_embedding), of length 1, in a session opened with embeddings=True.
        It depends only on these tokens: the session has none before and none after the call."""
        ids = token_array(tokens)
        out = np.empty(self._model.info.n_embedding, np.float32)
        room = ffi.cast("float*", out.ctypes.data)
        self._in_turn(lambda pointer: _native.call(
            lib.bitnet_embed, pointer, ids, len(ids), room, out.size, ffi.NULL))
        return out

    def truncate(self, n: int) -> None:
        """Forgets all but the first n tokens."""
        if not isinstance(n, int) or n < 0:
            raise ValueError(f"n is how many tokens stay, not {n!r}")
        self._in_turn(lambda pointer: self._truncate(pointer, n))

    def generate(self, prompt: Prompt = "", **how: "Unpack[Generating]") -> Generation:
        """Appends the prompt, then the text that the model generates.

        A prompt is a text, ids, or the messages of a whole conversation; tokens that the session has already
        are not evaluated again. Without a prompt the session's text goes on. In a text the names of control tokens
        become those tokens, so put text from untrusted users into messages."""
        return Stream(self, prompt, how, quiet=True).finish()

    def stream(self, prompt: Prompt = "", **how: "Unpack[Generating]") -> Stream:
        """As generate(), piece by piece."""
        return Stream(self, prompt, how)

    async def agenerate(self, prompt: Prompt = "", **how: "Unpack[Generating]") -> Generation:
        """generate() for asyncio; cancelling the task ends it."""
        async with AsyncStream(lambda: self, prompt, how, quiet=True) as stream:
            return await stream.finish()

    def astream(self, prompt: Prompt = "", **how: "Unpack[Generating]") -> AsyncStream:
        """stream() for asyncio."""
        return AsyncStream(lambda: self, prompt, how)

    def cancel(self) -> None:
        """Ends the running call, if any: generate() returns the text so far, eval() raises Cancelled."""
        self._turns.cancel()

    def report(self) -> dict[str, Any]:
        """The kernels and counts of this session: the JSON of bitnet_session_report."""
        report: dict[str, Any] = self._in_turn(
            lambda pointer: _native.json_from(lib.bitnet_session_report, pointer))
        return report

    def receipt(self, *, sign: bool = True, key_file: str | os.PathLike[str] | None = None, with_tokens: bool = False,
                facts: Mapping[str, Any] | None = None) -> str:
        """A receipt of the last answer, as one line of JSON for verify_receipt().

        It is signed by the key in `key_file`, or by the user's own key, which is made at its first use. `with_tokens`
        adds the ids of prompt and answer, which a replay needs; `facts` are members of your own, such as
        {"program": {...}}."""
        options = receipt_options(sign, key_file, with_tokens, facts)
        return self._in_turn(
            lambda pointer: _native.text_from(lib.bitnet_session_receipt, pointer, options.struct))

    def set_preference(self, device: str) -> None:
        """Moves the session, with its tokens, to the first usable device of the list."""
        request = _native.word("device", device)
        self._in_turn(lambda pointer: _native.call(lib.bitnet_session_set_preference, pointer, request))


class _Turn:
    """A call other than a generation."""

    def __init__(self, session: Session):
        self.session, self.stopped = session, False

    def stop(self) -> None:
        self.stopped = True
        self.session._cancel(self)


class _Turns:
    """The call that uses the session. A cancel reaches the running call and no later one."""

    def __init__(self, pointer: Any):
        self.who: object = None
        self._pointer = pointer
        self._lock = threading.RLock()  # the garbage collector may call it while it is locked

    @property
    def at_work(self) -> bool:
        """True while a call that was not cancelled uses the session; False while a turn begins or ends."""
        who = self.who
        return who is not None and not getattr(who, "stopped", False)

    def cancel(self, who: object = None) -> None:
        with self._lock:  # a running call holds the pointer
            if self.who is not None and who in (None, self.who):
                lib.bitnet_session_cancel(self._pointer)

    def end(self) -> None:
        with self._lock:
            self.who = None
            lib.bitnet_session_clear_cancel(self._pointer)
