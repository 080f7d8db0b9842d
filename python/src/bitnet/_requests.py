"""Requests of a scheduler, read by an event loop: no thread of Python waits for them.

The scheduler's descriptor is watched for edges, so that a request whose pieces are not read, and
whose events therefore stay in the library's queue, does not wake the loop again and again.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import select
from dataclasses import dataclass
from typing import Any, Callable, NamedTuple

from . import _handles, _native, errors
from ._asked import Asked
from ._generation import Generation
from ._native import ffi, lib, numbers

# Pieces that a request keeps here for its reader. The library queues later ones, and pauses the request
# when its queue is full.
READ_AHEAD = 64
# Events that are read before other tasks run.
PER_WAKE = 256
_TIMEOUT = numbers["BITNET_TIMEOUT"]
_TEXT, _FAILED = numbers["BITNET_EVENT_TEXT"], numbers["BITNET_EVENT_FAILED"]
_PROMPT = numbers["BITNET_EVENT_PROMPT"]


class Logprob(NamedTuple):
    token: int
    logprob: float  #: natural logarithm, from the model's logits without the sampler's changes


class PromptToken(NamedTuple):
    """A token of a prompt, with its log probability."""

    token: int
    text: str  #: whole characters: a later token may complete the text of this one
    logprob: float | None  #: None for the first token, which has no context
    top_logprobs: tuple[Logprob, ...] = ()


@dataclass(frozen=True)
class Piece:
    """A token of an answer, and the text that it completes: whole characters, or none."""

    text: str
    token: int | None  #: None if the text has no token: it was held back, or the chat's template begins with it
    choice: int = 0  #: index of the answer to the prompt
    logprob: float | None = None  #: if `logprobs` were requested
    top_logprobs: tuple[Logprob, ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Completion(Generation):
    """An answer of an AsyncEngine. `n_prompt` counts all tokens of its prompt."""

    choice: int = 0
    n_cached: int = 0  #: tokens of the prompt that an earlier request had computed
    n_recomputed: int = 0  #: tokens computed again after a preemption or a change of device
    preemptions: int = 0
    queue_seconds: float = 0.0  #: time in the queue
    logprobs: list[float] | None = None  #: of each token, if requested
    top_logprobs: list[tuple[Logprob, ...]] | None = None
    mean_logprob: float | None = None  #: of its tokens, if `logprobs` or `best_of` was requested
    prompt_logprobs: list[PromptToken] | None = None  #: the tokens of the prompt, if `prompt_logprobs` were requested


class _Choice:
    """The part of one answer that has arrived."""

    def __init__(self, begun: str):
        self.begun = begun  # text of the chat's template that comes first
        self.texts: list[str] = []
        self.tokens: list[int] = []
        self.logprobs: list[float] = []
        self.top_logprobs: list[tuple[Logprob, ...]] = []
        self.result: Completion | None = None

    def add(self, piece: Piece) -> None:
        self.texts.append(piece.text)
        if piece.token is not None:
            self.tokens.append(piece.token)
        if piece.logprob is not None:
            self.logprobs.append(piece.logprob)
            self.top_logprobs.append(piece.top_logprobs)


def _top_of(event: Any) -> tuple[Logprob, ...]:
    return tuple(Logprob(event.top[i].token, event.top[i].logprob) for i in range(event.n_top))


class Request:
    """One bitnet_request. The thread of its loop reads it; cancel() and abandon() may be called from any thread."""

    def __init__(self, reader: "Reader", handle: _handles.Handle, pointer: Any, asked: Asked, n: int, begun: str,
                 has_logprobs: bool, has_mean: bool = False):
        self.pointer = pointer
        self.pieces: "collections.deque[Piece]" = collections.deque()
        self.is_quiet = False  # only the results are requested
        self.is_left = False  # the library queues events for which there is no room here
        self.ended = False
        self.failed: BaseException | None = None
        self._reader, self._handle, self._asked, self._has_logprobs = reader, handle, asked, has_logprobs
        self._has_mean = has_logprobs or has_mean
        self._choices = [_Choice(begun) for _ in range(n)]
        self._prompt: list[PromptToken] = []
        self._waiting: "list[asyncio.Future[None]]" = []

    def results(self) -> list[Completion]:
        if self.failed is not None:
            raise self.failed
        return [one.result for one in self._choices if one.result is not None]

    def cancel(self) -> None:
        with contextlib.suppress(errors.Closed), self._handle.used():
            lib.bitnet_request_cancel(self.pointer)

    def abandon(self) -> None:
        """The request will not be read any more."""
        if not self.ended:
            self.ended = True
            self._reader.forget(self)  # before another request can get the same address
            self._handle.close()

    def fail(self, why: BaseException) -> None:
        self.failed = why
        self.abandon()
        self._wake()

    async def news(self) -> None:
        """Waits until a piece arrives or the request ends."""
        loop = asyncio.get_running_loop()
        self._reader.check(loop)
        waiting = loop.create_future()
        self._waiting.append(waiting)
        await waiting

    def take(self) -> Piece:
        piece = self.pieces.popleft()
        if self.is_left and len(self.pieces) <= READ_AHEAD // 2:
            self._reader.read(self)
        return piece

    def drop_pieces(self) -> None:
        self.is_quiet = True
        self.pieces.clear()
        if self.is_left:
            self._reader.read(self)

    def read(self, event: Any, err: Any, most: int) -> int:
        """Reads up to `most` events, until none is queued or there is no room. Returns how many."""
        n = 0
        try:
            self._handle.hold()
        except errors.Closed:
            return 0
        try:
            while n < most and not self.ended:
                self.is_left = len(self.pieces) >= READ_AHEAD and not self.is_quiet
                status = _TIMEOUT if self.is_left else lib.bitnet_request_next(self.pointer, 0, event, err)
                if status == _TIMEOUT or self._reader.is_ending:
                    break
                n += 1
                if status:
                    self.fail(_native.failure(status, err))
                else:
                    self._take(event)
        finally:
            self._handle.let_go()
        if n:
            self._wake()
        return n

    def _take(self, event: Any) -> None:
        choice = self._choices[event.choice]
        if event.kind == _FAILED:
            message = _native.piece_of(event.message)
            made = errors.BY_STATUS.get(event.status, errors.Error)(message)
            made.status, made.where = event.status, "bitnet_request_next"
            self.fail(made)
        elif event.kind == _TEXT:
            self._take_text(choice, event)
        elif event.kind == _PROMPT:
            self._prompt.append(PromptToken(event.token, _native.piece_of(event.text),
                                            event.logprob if self._prompt else None, _top_of(event)))
        else:
            choice.result = self._result(choice, event)
            if all(one.result is not None for one in self._choices):
                self.abandon()

    def _take_text(self, choice: _Choice, event: Any) -> None:
        if choice.begun:
            self._add(choice, Piece(choice.begun, None, event.choice))
            choice.begun = ""
        token = event.token if event.token >= 0 else None
        logprob: float | None = None
        top: tuple[Logprob, ...] = ()
        if self._has_logprobs and token is not None:
            logprob = event.logprob
            top = _top_of(event)
        self._add(choice, Piece(_native.piece_of(event.text), token, event.choice, logprob, top))

    def _add(self, choice: _Choice, piece: Piece) -> None:
        choice.add(piece)
        if not self.is_quiet:
            self.pieces.append(piece)

    def _result(self, choice: _Choice, event: Any) -> Completion:
        reason, stop = self._asked.ending(event.stop_reason, event.stop_index)
        logprobs, top = (choice.logprobs, choice.top_logprobs) if self._has_logprobs else (None, None)
        return Completion(
            "".join(choice.texts), choice.tokens, reason, stop, (self._asked.seed + event.candidate) % 2**32,
            event.n_prompt, event.prompt_ns / 1e9, event.generate_ns / 1e9, choice=event.choice,
            n_cached=event.n_cached, n_recomputed=event.n_recomputed, preemptions=event.preemptions,
            n_drafted=event.n_drafted, n_accepted=event.n_accepted, queue_seconds=event.queue_ns / 1e9,
            logprobs=logprobs, top_logprobs=top, mean_logprob=event.mean_logprob if self._has_mean else None,
            prompt_logprobs=self._prompt or None)

    async def finish(self) -> None:
        """Waits until the request has ended."""
        while not self.ended:
            await self.news()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                with contextlib.suppress(RuntimeError):  # its loop is closed
                    one.set_result(None)


class EmbeddingRequest(Request):
    """A request for an embedding: its only event has the vector."""

    def __init__(self, reader: "Reader", handle: _handles.Handle, pointer: Any):
        super().__init__(reader, handle, pointer, Asked({}), 1, "", False)
        self.vector = b""  # float32

    def _result(self, choice: _Choice, event: Any) -> Completion:
        if event.embedding != ffi.NULL:
            self.vector = bytes(ffi.buffer(event.embedding, event.n_embedding * ffi.sizeof("float")))
        return super()._result(choice, event)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Reader:
    """The requests of one scheduler, and the event loop that reads them; it may change while there are none."""

    def __init__(self, handle: _handles.Handle, descriptor: int):
        self._handle = handle
        self._loop: asyncio.AbstractEventLoop | None = None
        self._requests: dict[Any, Request] = {}
        self._is_watching = self._is_due = self._is_shut = False
        self.is_ending = False  # later events are caused by the end and are not read: all requests fail soon
        self._ticking: asyncio.TimerHandle | None = None
        self._event = ffi.new("bitnet_event*", {"struct_size": ffi.sizeof("bitnet_event")})
        self._err = _native.new_error()
        self._ready = ffi.new("bitnet_request**")
        self._epoll = select.epoll()
        self._epoll.register(descriptor, select.EPOLLIN | select.EPOLLET)

    def __len__(self) -> int:
        return len(self._requests)

    def check(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is not loop:
            raise errors.Busy("the engine is at work for requests of another event loop; open an engine for each loop")

    def bind(self) -> None:
        """Binds the reader to the running loop."""
        loop = asyncio.get_running_loop()
        if self._loop is not None and self._loop.is_closed():
            self._fail_all(errors.Cancelled("the event loop of the request was closed before it had ended"))
        if self._requests:
            self.check(loop)
        self._loop = loop

    def add(self, request: Request) -> None:
        assert self._loop is not None
        self._requests[request.pointer] = request
        if not self._is_watching:
            self._loop.add_reader(self._epoll.fileno(), self._wake)
            self._is_watching = True
            self._tick()

    def forget(self, request: Request) -> None:
        self._requests.pop(request.pointer, None)
        if not self._requests:
            self._in_loop(self._settle)

    def cancel_all(self) -> None:
        for request in list(self._requests.values()):
            request.cancel()

    def shut(self) -> None:
        """Ends all requests and the reader."""
        self.is_ending = True
        self._in_loop(self._shut)

    def read(self, request: Request) -> None:
        """Reads queued events of a request that has room again."""
        if request.read(self._event, self._err, PER_WAKE) == PER_WAKE:
            self._again()

    # ---- in the loop's thread

    def _in_loop(self, work: Callable[[], None]) -> None:
        loop = self._loop
        if loop is None or not loop.is_running() or loop is _running_loop():
            work()
        else:
            with contextlib.suppress(RuntimeError):  # it is closed by now
                loop.call_soon_threadsafe(work)

    def _settle(self) -> None:
        if self._requests or not self._is_watching:
            return
        assert self._loop is not None
        self._is_watching = False
        if not self._loop.is_closed():
            self._loop.remove_reader(self._epoll.fileno())
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None

    def _shut(self) -> None:
        if self._is_shut:
            return
        self._is_shut = True
        self._fail_all(errors.Cancelled("the engine was closed before the request had ended"))
        self._settle()
        self._epoll.close()

    def _fail_all(self, why: errors.Error) -> None:
        for request in list(self._requests.values()):
            request.fail(why)

    def _tick(self) -> None:
        """Runs twice a second: Ctrl-C does not always wake an idle loop, and is handled at its next step."""
        assert self._loop is not None
        self._ticking = self._loop.call_later(0.5, self._tick)

    def _wake(self) -> None:
        self._epoll.poll(0)
        self._read()

    def _again(self) -> None:
        if not self._is_due and self._loop is not None:
            self._is_due = True
            self._loop.call_soon(self._read)

    def _read(self) -> None:
        self._is_due = False
        try:
            scheduler = self._handle.hold()
        except errors.Closed:
            return
        try:
            is_over = self._read_ready(scheduler)
        finally:
            self._handle.let_go()
        if not is_over:
            self._again()

    def _read_ready(self, scheduler: Any) -> bool:
        """Reads ready requests, which the library names in turn; returns True when nothing readable is left."""
        left = PER_WAKE
        passed: set[Any] = set()
        while left > 0:
            if lib.bitnet_scheduler_wait(scheduler, 0, self._ready, ffi.NULL):
                return True
            pointer = self._ready[0]
            if pointer in passed:
                return True
            request = self._requests.get(pointer)
            n = 0 if request is None else request.read(self._event, self._err, left)
            if request is None or n == 0 or request.is_left:
                passed.add(pointer)
            left -= n
        return False
