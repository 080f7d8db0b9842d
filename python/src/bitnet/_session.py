from __future__ import annotations

import asyncio
import queue
import secrets
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Iterator, Mapping, Sequence, TypedDict, TypeVar, Union

import numpy as np

from . import _handles, _native, errors
from ._engine import Owner, interruptible, wait_for
from ._model import Message, Model, format_chat, token_array, tokenize
from ._native import ffi, lib, numbers

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Unpack

Prompt = Union[str, Sequence[int], Sequence[Message]]

T = TypeVar("T")

_STOPS = {number: name.removeprefix("BITNET_STOP_").lower() for name, number in numbers.items()
          if name.startswith("BITNET_STOP_")}
_THINKING = "<think>"


class SessionOptions(TypedDict, total=False):
    """bitnet_session_options. `kv_k` and `kv_v` are "f16", "f32" or "q8_0", `pooling` of a session for
    embeddings "model" (what the file says, else "last"), "mean", "last" or "cls"."""

    n_context: int
    n_batch: int
    kv_k: str
    kv_v: str
    deterministic: bool
    profile: bool
    low_memory: bool
    window: int
    window_keep: int
    embeddings: bool
    pooling: str


class Generating(TypedDict, total=False):
    """How to generate: bitnet_generation and bitnet_sampling, with their defaults.

    Without a seed one is drawn, which the Generation has. `stop` are texts that end the answer and
    are not in it, `stop_tokens` ids that do. `template` is for messages, as in Model.format_chat().
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
    seed: int
    ignore_eos: bool
    logit_bias: Mapping[int, float]
    stop: Union[str, Sequence[str]]
    stop_tokens: Sequence[int]
    template: str


@dataclass(frozen=True)
class Generation:
    """What was generated, and why it ended."""

    text: str
    tokens: list[int]  #: with the one that ended it
    stop_reason: str  #: length, eos, string, token, context or cancelled
    stop: str | int | None  #: the text or token of `stop` or `stop_tokens` that ended it
    seed: int
    n_prompt: int  #: tokens that were evaluated before the first new one
    prompt_seconds: float
    generate_seconds: float

    def __str__(self) -> str:
        return self.text


class _Run:
    """One bitnet_generate, on a thread of its own: Ctrl-C and who reads reach it at any time.

    `tell` takes each piece of text, False from it ending the run, and None at the end.
    """

    def __init__(self, session: "Session", prompt: Prompt, how: Generating, tell: Callable[[str | None], object],
                 own: bool = False, at_end: Callable[[Generation], None] | None = None):
        self.session, self.own, self.at_end, self.tell = session, own, at_end, tell
        self.ended = _handles.Flag()
        self.failed: BaseException | None = None
        self.result: Generation | None = None
        self.stopped = False
        self._pieces: list[str] = []
        self._asked = prompt, dict(how)
        self._begun = _handles.Flag()
        self._refused: BaseException | None = None

    def start(self) -> "_Run":
        """Begins, or raises why it cannot."""
        try:
            _handles.start(self._work)
            interrupted = wait_for(self._begun, self.stop)
            if interrupted is not None:
                raise interrupted
        except BaseException:
            self.stop()
            raise
        if self._refused is not None:
            raise self._refused
        return self

    def stop(self) -> None:
        self.stopped = True
        self.session._cancel(self)

    def check(self) -> Generation:
        if self.failed is not None:
            raise self.failed
        assert self.result is not None
        return self.result

    def _prepare(self, prompt: Prompt, how: dict[str, Any]) -> None:
        unknown = set(how) - set(Generating.__annotations__)
        if unknown:
            raise TypeError(f"there is no way to generate called {', '.join(sorted(unknown))}")
        ids, self._first = self.session._prompt(self._pointer, prompt, how.pop("template", None))
        stop, stop_tokens = how.pop("stop", None) or [], how.pop("stop_tokens", None)
        self._stops = [stop] if isinstance(stop, str) else list(stop)
        self._stop_tokens = token_array([] if stop_tokens is None else stop_tokens)
        biases = how.pop("logit_bias", None) or {}
        max_tokens = how.pop("max_tokens", None)
        seed = how.pop("seed", None)
        self._seed = secrets.randbits(32) if seed is None else seed
        sampling = _native.Options("bitnet_sampling").give(
            seed=self._seed, logit_bias_size=ffi.sizeof("bitnet_logit_bias"), **how)
        try:
            sampling.give_list("logit_bias", "bitnet_logit_bias", [
                {"token": token, "bias": bias} for token, bias in biases.items()])
        except (TypeError, OverflowError, AttributeError) as why:
            raise TypeError(f"logit_bias maps ids to numbers: {why}") from None
        generation = _native.Options("bitnet_generation").give(max_tokens=max_tokens, text=ffi.callback(
            "bitnet_text_callback", self._on_text, error=1))
        views = []
        for one in self._stops:
            encoded = generation.keep(ffi.from_buffer(_native.utf8("stop", one)))
            views.append({"data": encoded, "size": len(encoded)})
        generation.give_list("stop_strings", "bitnet_str", views)
        generation.struct.n_stop_tokens = len(self._stop_tokens)
        generation.struct.stop_tokens = self._stop_tokens
        generation.struct.sampling = sampling.struct
        # The context bounds what can be generated, so that no id is ever lost.
        room = self.session.capacity + 1
        if max_tokens is not None and 0 <= max_tokens < room:
            room = max_tokens
        self._new = ffi.new("bitnet_token[]", max(room, 1))
        generation.struct.out_tokens, generation.struct.out_capacity = self._new, room
        self._ids, self._sampling = ids, sampling
        self._generation: _native.Options | None = generation

    def _on_text(self, user: Any, text: Any) -> int:
        try:
            if self._first:  # what the form of the chat has begun
                self._say(self._first)
                self._first = ""
            self._say(_native.piece_of(text))
        except BaseException as why:
            self.failed = why
            return 1
        return 1 if self.stopped else 0

    def _say(self, piece: str) -> None:
        self._pieces.append(piece)
        if self.tell(piece) is False:
            self.stopped = True

    def _work(self) -> None:
        try:
            self._pointer = self.session._begin(self)
            try:
                self._prepare(*self._asked)
                self._begun.set()
                if self.stopped:
                    self.stop()
                self._generate()
            finally:
                self._generation = None  # whose callback holds this
                self.session._end(self)
        except BaseException as why:
            if self._begun.is_set:
                self.failed = self.failed or why
            else:
                self.failed = self._refused = why
        finally:
            if self.own:
                self.session.close()
            self.ended.set()
            self._begun.set()
            self.tell(None)

    def _generate(self) -> None:
        assert self._generation is not None
        ids = token_array(self._ids)
        out = ffi.new("bitnet_generation_result*", {"struct_size": ffi.sizeof("bitnet_generation_result")})
        n_new = 0
        try:
            _native.call(lib.bitnet_generate, self._pointer, ids, len(ids), self._generation.struct, out)
            n_new = min(out.n_generated, len(self._new))
        except errors.Cancelled:
            out.stop_reason = numbers["BITNET_STOP_CANCELLED"]
        finally:
            new = list(self._new[0:n_new])
            self.session._appended(self._pointer, [*self._ids, *new])
        reason = _STOPS.get(out.stop_reason, "unknown")
        stops: Any = {"string": self._stops, "token": self._stop_tokens}.get(reason, [])
        self.result = Generation(
            "".join(self._pieces), new, reason, stops[out.stop_index] if out.stop_index < len(stops) else None,
            self._seed, out.n_prompt, out.prompt_ns / 1e9, out.generate_ns / 1e9)
        if self.at_end is not None:
            self.at_end(self.result)


class Stream(Iterator[str]):
    """Pieces of text as they are generated, each of whole characters. Generation goes on while they are
    read; close(), or the end of a `with` block, ends it."""

    def __init__(self, session: "Session", prompt: Prompt, how: Generating, own: bool = False,
                 at_end: Callable[[Generation], None] | None = None, quiet: bool = False):
        pieces: "queue.SimpleQueue[str | None]" = queue.SimpleQueue()
        self._pieces = pieces
        tell = (lambda piece: None) if quiet else pieces.put
        self._run = _Run(session, prompt, how, tell, own, at_end)
        self._run.start()

    def __next__(self) -> str:
        try:
            piece = self._pieces.get()
        except BaseException:  # Ctrl-C
            self.close()
            raise
        if piece is None:
            self._pieces.put(None)
            self._run.check()
            raise StopIteration
        return piece

    def finish(self) -> Generation:
        """Waits for the end; all of it."""
        interrupted = wait_for(self._run.ended, self._run.stop)
        if interrupted is not None:
            raise interrupted
        return self._run.check()

    @property
    def result(self) -> Generation:
        """All of it, once it has ended."""
        if not self._run.ended.is_set:
            raise RuntimeError("the stream has not ended; finish() waits for it")
        return self._run.check()

    def cancel(self) -> None:
        """Ends it soon; what is there can still be read."""
        self._run.stop()

    def close(self) -> None:
        self._run.stop()
        interrupted = wait_for(self._run.ended, self._run.stop)
        if interrupted is not None:
            raise interrupted

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_run"):
            self._run.stop()


async def _awake(waiting: Awaitable[T]) -> T:
    """Awaits it. Meanwhile the loop looks around twice a second: Ctrl-C does not always wake one that has
    nothing to do, and is seen when it does something."""
    loop = asyncio.get_running_loop()
    ticking: asyncio.TimerHandle

    def tick() -> None:
        nonlocal ticking
        ticking = loop.call_later(0.5, tick)

    ticking = loop.call_later(0.5, tick)
    try:
        return await waiting
    finally:
        ticking.cancel()


class AsyncStream:
    """The same for asyncio: `async for piece in stream`, in an `async with` block if it may be left
    before the end."""

    def __init__(self, session: Callable[[], "Session"], prompt: Prompt, how: Generating, own: bool = False,
                 at_end: Callable[[Generation], None] | None = None, quiet: bool = False):
        self._what = session, prompt, how, own, at_end, quiet
        self._pieces: "asyncio.Queue[str | None] | None" = None
        self._run: _Run | None = None
        self._stopped = self._ended = False

    async def _start(self) -> "asyncio.Queue[str | None]":
        if self._pieces is not None:
            return self._pieces
        make, prompt, how, own, at_end, quiet = self._what
        loop = asyncio.get_running_loop()
        pieces: "asyncio.Queue[str | None]" = asyncio.Queue()
        self._pieces = pieces

        def tell(piece: str | None) -> bool:
            if quiet and piece is not None:
                return True
            try:
                loop.call_soon_threadsafe(pieces.put_nowait, piece)
            except RuntimeError:  # the loop is closed
                return False
            return True

        def begin() -> None:
            run = _Run(make(), prompt, how, tell, own, at_end)
            self._run = run.start()
            if self._stopped:
                run.stop()

        try:
            await _awake(loop.run_in_executor(None, begin))
        except BaseException:
            self.cancel()
            if self._run is None:
                self._ended = True
            raise
        return pieces

    def __aiter__(self) -> "AsyncStream":
        return self

    async def __anext__(self) -> str:
        piece = await self._next()
        if piece is None:
            assert self._run is not None
            self._run.check()
            raise StopAsyncIteration
        return piece

    async def _next(self) -> str | None:
        pieces = await self._start()
        if self._ended:
            return None
        try:
            piece = await _awake(pieces.get())
        except BaseException:
            self.cancel()
            raise
        self._ended = piece is None
        return piece

    async def finish(self) -> Generation:
        """Waits for the end; all of it."""
        while await self._next() is not None:
            pass
        return self.result

    @property
    def result(self) -> Generation:
        """All of it, once it has ended."""
        if self._run is None or not self._run.ended.is_set:
            raise RuntimeError("the stream has not ended; finish() waits for it")
        return self._run.check()

    def cancel(self) -> None:
        """Ends it soon; what is there can still be read."""
        self._stopped = True
        if self._run is not None:
            self._run.stop()

    async def aclose(self) -> None:
        self.cancel()
        if self._run is not None:
            while not self._ended:
                await self._next()

    async def __aenter__(self) -> "AsyncStream":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        self.cancel()


class Session(Owner):
    """Tokens, their keys and values, and what follows them; by one thread at a time, others meet Busy.
    cancel() is for any thread."""

    def __init__(self, model: Model, **options: "Unpack[SessionOptions]"):
        if not isinstance(model, Model):
            raise TypeError(f"model is a bitnet.Model, not {type(model).__name__}")
        unknown = set(options) - set(SessionOptions.__annotations__)
        if unknown:
            raise TypeError(f"there is no option of a session called {', '.join(sorted(unknown))}")
        given: dict[str, Any] = dict(options)
        for name, kind in (("kv_k", "KV"), ("kv_v", "KV"), ("pooling", "POOLING")):
            if given.get(name) is not None:
                given[name] = _native.choice(name, kind, given[name])
        chosen = _native.Options("bitnet_session_options").give(**given)
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
    def model(self) -> Model:
        return self._model

    @property
    def capacity(self) -> int:
        """Of the context, in tokens."""
        return self._capacity

    @property
    def tokens(self) -> list[int]:
        """What it consists of; what is generated joins when that has ended."""
        return list(self._tokens)

    def __len__(self) -> int:
        return len(self._tokens)

    def __bool__(self) -> bool:
        return True

    # ---- turns: who works with it

    def _begin(self, who: object) -> Any:
        assert self._handle is not None
        pointer = self._handle.hold()
        try:
            ends = time.monotonic() + 60
            while not self._turn.acquire(timeout=0 if self._turns.at_work else 0.05):
                # Who was told to stop, such as a stream that was left, is waited for.
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
        """work(pointer), in a turn of its own."""
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
        """After a call that appends; where it failed it may have appended some of them, or none."""
        self._tokens = [*self._tokens, *tokens][:lib.bitnet_session_length(pointer)]

    def _prompt(self, pointer: Any, prompt: Prompt, template: str | None) -> tuple[list[int], str]:
        """Ids to append, and what the answer begins with."""
        if isinstance(prompt, str):
            return tokenize(self._model_pointer, prompt, False if self._tokens else None, True), ""
        if isinstance(prompt, (bytes, Mapping)):
            raise TypeError(f"a prompt is a text, a list of ids or a list of messages, not {prompt!r}")
        parts: list[Any] = list(prompt)
        if not parts or not isinstance(parts[0], Mapping):
            return list(token_array(parts)), ""
        text = format_chat(self._model_pointer, parts, template)
        ids = tokenize(self._model_pointer, text, False, True)
        # What the session has of it already stays; at least one token is to be evaluated.
        same = next((i for i, (old, new) in enumerate(zip(self._tokens, ids)) if old != new),
                    min(len(self._tokens), len(ids)))
        same = max(min(same, len(ids) - 1), 0)
        if same < len(self._tokens):
            self._truncate(pointer, same)
        begun = _THINKING + "\n" if text.rstrip(" \t\r\n").endswith(_THINKING) else ""
        return ids[same:], begun

    def _truncate(self, pointer: Any, n: int) -> None:
        _native.call(lib.bitnet_session_truncate, pointer, n)
        del self._tokens[n:]

    # ---- work

    def eval(self, tokens: Sequence[int], *, all_rows: bool = False,
             out: "npt.NDArray[np.float32] | None" = None) -> "npt.NDArray[np.float32]":
        """Appends tokens; the logits behind the last one (n_vocab), or behind each (n, n_vocab).

        The library writes into the array that this returns, or into `out`, of that shape."""
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
        It depends on these tokens alone: the session holds none before and none after."""
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
        """Appends the prompt, then what the model makes of it.

        A prompt is a text, ids, or the messages of a whole conversation, of which only what the session
        does not have yet is evaluated. Without one it goes on where generate() ended."""
        return Stream(self, prompt, how, quiet=True).finish()

    def stream(self, prompt: Prompt = "", **how: "Unpack[Generating]") -> Stream:
        """The same, piece by piece."""
        return Stream(self, prompt, how)

    async def agenerate(self, prompt: Prompt = "", **how: "Unpack[Generating]") -> Generation:
        """generate() for asyncio: a task that is cancelled ends it."""
        async with AsyncStream(lambda: self, prompt, how, quiet=True) as stream:
            return await stream.finish()

    def astream(self, prompt: Prompt = "", **how: "Unpack[Generating]") -> AsyncStream:
        """stream() for asyncio."""
        return AsyncStream(lambda: self, prompt, how)

    def cancel(self) -> None:
        """Ends what runs, if something does: generate() returns what it has, eval() raises Cancelled."""
        self._turns.cancel()

    def report(self) -> dict[str, Any]:
        """What ran in this session: the JSON of bitnet_session_report."""
        report: dict[str, Any] = self._in_turn(
            lambda pointer: _native.json_from(lib.bitnet_session_report, pointer))
        return report

    def set_preference(self, device: str) -> None:
        """Moves to the first device of the request that can be used, with what it has."""
        request = _native.word("device", device)
        self._in_turn(lambda pointer: _native.call(lib.bitnet_session_set_preference, pointer, request))


class _Turn:
    """A call that is not a generation."""

    def __init__(self, session: Session):
        self.session, self.stopped = session, False

    def stop(self) -> None:
        self.stopped = True
        self.session._cancel(self)


class _Turns:
    """Whose turn it is. A cancel reaches the call that runs and none after it."""

    def __init__(self, pointer: Any):
        self.who: object = None
        self._pointer = pointer
        self._lock = threading.RLock()  # the garbage collector may come in between

    @property
    def at_work(self) -> bool:
        """Whether somebody is who was not told to stop; nobody is while a turn begins or ends."""
        who = self.who
        return who is not None and not getattr(who, "stopped", False)

    def cancel(self, who: object = None) -> None:
        with self._lock:  # while it is somebody's turn, the pointer is held
            if self.who is not None and who in (None, self.who):
                lib.bitnet_session_cancel(self._pointer)

    def end(self) -> None:
        with self._lock:
            self.who = None
            lib.bitnet_session_clear_cancel(self._pointer)


class Chat:
    """A conversation: send() says something and returns the answer; both are remembered."""

    def __init__(self, model: Model, system: str | None = None, *, template: str | None = None,
                 **options: "Unpack[SessionOptions]"):
        self.messages: list[dict[str, str]] = []
        if system is not None:
            self.messages.append({"role": "system", "content": system})
        self._template = template
        self.session = Session(model, **options)

    def _next(self, text: str, how: Generating) -> tuple[list[Message], Generating, Callable[[Generation], None]]:
        said = {"role": "user", "content": text}
        if self._template is not None:
            how.setdefault("template", self._template)

        def at_end(answer: Generation) -> None:
            self.messages += [said, {"role": "assistant", "content": answer.text}]

        return [*self.messages, said], how, at_end

    def send(self, text: str, **how: "Unpack[Generating]") -> Generation:
        prompt, how, at_end = self._next(text, how)
        return Stream(self.session, prompt, how, at_end=at_end, quiet=True).finish()

    def stream(self, text: str, **how: "Unpack[Generating]") -> Stream:
        prompt, how, at_end = self._next(text, how)
        return Stream(self.session, prompt, how, at_end=at_end)

    async def asend(self, text: str, **how: "Unpack[Generating]") -> Generation:
        prompt, how, at_end = self._next(text, how)
        async with AsyncStream(lambda: self.session, prompt, how, at_end=at_end, quiet=True) as stream:
            return await stream.finish()

    def astream(self, text: str, **how: "Unpack[Generating]") -> AsyncStream:
        prompt, how, at_end = self._next(text, how)
        return AsyncStream(lambda: self.session, prompt, how, at_end=at_end)

    def close(self) -> None:
        self.session.close()

    def __enter__(self) -> "Chat":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
