from __future__ import annotations

import asyncio
import queue
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Iterator, List, Sequence, TypeVar

from . import _handles, _native, errors
from ._asked import Asked, Generating, Prompt, check_names
from ._native import ffi, lib, numbers
from ._owner import wait_for
from ._text import Message, token_array

if TYPE_CHECKING:
    from ._session import Session

T = TypeVar("T")


def first_turn(messages: Sequence[Message]) -> int:
    """Index of the first turn: behind a system prompt."""
    return 1 if messages and messages[0]["role"] == "system" else 0


class Conversation(List[Message]):
    """Messages whose oldest turns are left out if they do not fit the context."""

    left_out = 0

    def leave_out(self, n: int) -> list[Message]:
        """The messages without the n oldest. Called before the generation: a warning that raises ends the turn."""
        if n:
            warnings.warn(f"the context is full: the {n} oldest messages were left out", errors.LeftOut)
        self.left_out = n
        first = first_turn(self)
        return [*self[:first], *self[first + n:]]


@dataclass(frozen=True)
class Generation:
    """A generated text, and why it ended."""

    text: str
    tokens: list[int]  #: includes the token that ended it
    stop_reason: str  #: length, eos, string, token, context, cancelled, or grammar: it allows no further text
    stop: str | int | None  #: the text or token of `stop` or `stop_tokens` that ended it
    seed: int
    n_prompt: int  #: tokens that were evaluated before the first new one
    prompt_seconds: float
    generate_seconds: float
    left_out: int = 0  #: oldest messages that did not fit the context, of a Chat
    n_drafted: int = 0  #: tokens of drafts that were computed
    n_accepted: int = 0  #: of these: tokens that are in the text

    def __str__(self) -> str:
        return self.text


class _Run:
    """One bitnet_generate, on a thread of its own, so that Ctrl-C and the reader can end it at any time.

    `deliver` is called with each piece of text, and with None at the end; if it returns False, the run ends.
    """

    def __init__(self, session: Session, prompt: Prompt, how: Generating, deliver: Callable[[str | None], object],
                 own: bool = False, at_end: Callable[[Generation], None] | None = None):
        self.session, self.own, self.at_end, self.deliver = session, own, at_end, deliver
        self.ended = _handles.Flag()
        self.failed: BaseException | None = None
        self.result: Generation | None = None
        self.stopped = False
        self._pieces: list[str] = []
        self._asked = prompt, dict(how)
        self._begun = _handles.Flag()
        self._rejected: BaseException | None = None

    def start(self) -> "_Run":
        """Starts the run, or raises the reason why it cannot start."""
        try:
            _handles.start(self._work)
            interrupted = wait_for(self._begun, self.stop)
            if interrupted is not None:
                raise interrupted
        except BaseException:
            self.stop()
            raise
        if self._rejected is not None:
            raise self._rejected
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
        check_names(how, Generating)
        ids, self._first = self.session._prompt(self._pointer, prompt, how.pop("template", None),
                                                how.pop("parse_special_in_messages", False))
        how.setdefault("in_reasoning", bool(self._first))
        self._how = Asked(how)
        self._how.drafts_for(self.session._handle)
        generation = self._how.options.struct
        self._callback: Any = ffi.callback("bitnet_text_callback", self._on_text, error=1)
        generation.text = self._callback
        # The context bounds what can be generated, so that no id is ever lost.
        room, most = self.session.capacity + 1, self._how.max_tokens
        if most is not None and 0 <= most < room:
            room = most
        self._new = ffi.new("bitnet_token[]", max(room, 1))
        generation.out_tokens, generation.out_capacity = self._new, room
        self._ids = ids

    def _on_text(self, user: Any, text: Any) -> int:
        try:
            if self._first:  # the text with which the chat's template begins the answer
                self._say(self._first)
                self._first = ""
            self._say(_native.piece_of(text))
        except BaseException as why:
            self.failed = why
            return 1
        return 1 if self.stopped else 0

    def _say(self, piece: str) -> None:
        self._pieces.append(piece)
        if self.deliver(piece) is False:
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
                self._callback = None  # it refers to this object
                self.session._end(self)
        except BaseException as why:
            if self._begun.is_set:
                self.failed = self.failed or why
            else:
                self.failed = self._rejected = why
        finally:
            if self.own:
                self.session.close()
            self.ended.set()
            self._begun.set()
            self.deliver(None)

    def _generate(self) -> None:
        ids = token_array(self._ids)
        out = ffi.new("bitnet_generation_result*", {"struct_size": ffi.sizeof("bitnet_generation_result")})
        n_new = 0
        try:
            _native.call(lib.bitnet_generate, self._pointer, ids, len(ids), self._how.options.struct, out)
            n_new = min(out.n_generated, len(self._new))
        except errors.Cancelled:
            out.stop_reason = numbers["BITNET_STOP_CANCELLED"]
        finally:
            new = list(self._new[0:n_new])
            self.session._appended(self._pointer, [*self._ids, *new])
        reason, stop = self._how.ending(out.stop_reason, out.stop_index)
        self.result = Generation(
            "".join(self._pieces), new, reason, stop, self._how.seed, out.n_prompt, out.prompt_ns / 1e9,
            out.generate_ns / 1e9, getattr(self._asked[0], "left_out", 0), out.n_drafted, out.n_accepted)
        if self.at_end is not None:
            self.at_end(self.result)


class Stream(Iterator[str]):
    """Pieces of text as they are generated, each of whole characters. Generation goes on while pieces are
    read; close(), or the end of a `with` block, ends it."""

    def __init__(self, session: Session, prompt: Prompt, how: Generating, own: bool = False,
                 at_end: Callable[[Generation], None] | None = None, quiet: bool = False):
        pieces: "queue.SimpleQueue[str | None]" = queue.SimpleQueue()
        self._pieces = pieces
        deliver = (lambda piece: None) if quiet else pieces.put
        self._run = _Run(session, prompt, how, deliver, own, at_end)
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
    """Awaits `work`. The loop wakes twice a second meanwhile: Ctrl-C does not always wake an idle loop, and
    is handled at its next step."""
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

    def __init__(self, session: Callable[[], Session], prompt: Prompt, how: Generating, own: bool = False,
                 at_end: Callable[[Generation], None] | None = None, quiet: bool = False):
        self._what = session, prompt, how, own, at_end, quiet
        self._pieces: "asyncio.Queue[str | None] | None" = None
        self._run: _Run | None = None
        self._beginning: _Run | None = None  # created before the start, so that a cancel reaches it
        self._stopped = self._ended = False

    async def _start(self) -> "asyncio.Queue[str | None]":
        if self._pieces is not None:
            return self._pieces
        make, prompt, how, own, at_end, quiet = self._what
        loop = asyncio.get_running_loop()
        pieces: "asyncio.Queue[str | None]" = asyncio.Queue()
        self._pieces = pieces

        def deliver(piece: str | None) -> bool:
            if quiet and piece is not None:
                return True
            try:
                loop.call_soon_threadsafe(pieces.put_nowait, piece)
            except RuntimeError:  # the loop is closed
                return False
            return True

        def begin() -> None:
            run = self._beginning = _Run(make(), prompt, how, deliver, own, at_end)
            if self._stopped:
                run.stop()
            self._run = run.start()

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
        if self._beginning is not None:
            self._beginning.stop()

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
