from __future__ import annotations

import asyncio
import contextlib
import math
import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Iterator, Sequence, TypedDict, overload

from . import _handles, _native, errors
from ._asked import Asked, Generating, Prompt, begun_answer, check_names, ids_or_messages
from ._model_file import ModelFile
from ._native import ffi, lib
from ._owner import Owner
from ._requests import Completion, EmbeddingRequest, Piece, Reader, Request
from ._session import session_options
from ._text import token_array, tokenize, tokenize_chat

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Unpack

    from ._model import Model

# Texts of one embed() that are queued or computed at a time: the library accepts a bounded number.
_TEXTS_AT_ONCE = 128


class _SequenceOptions(TypedDict, total=False):
    """Options of each sequence, as in SessionOptions; n_batch is the most tokens of a step, of all sequences."""

    n_context: int
    n_batch: int
    kv_k: str
    kv_v: str
    deterministic: bool
    precision: str
    low_memory: bool
    window: int
    window_keep: int
    embeddings: bool
    pooling: str


class _SchedulerOptions(TypedDict, total=False):
    max_sequences: int
    kv_bytes: int
    max_waiting: int
    max_waiting_tokens: int
    event_capacity: int
    reader_timeout_ms: int


class AsyncEngineOptions(_SequenceOptions, _SchedulerOptions, total=False):
    """bitnet_scheduler_options, and members of bitnet_session_options for its sequences. With `embeddings`, and
    perhaps `pooling`, the engine has embed() only."""


class _RequestingOne(Generating, total=False):
    client: int
    priority: int
    timeout: float
    logprobs: bool
    top_logprobs: int
    best_of: int
    prompt_logprobs: bool
    top_prompt_logprobs: int


class Requesting(_RequestingOne, total=False):
    """How to generate, and bitnet_request_options.

    `n` is the number of answers to the prompt, which is computed once; answer i has `seed` + i. `client` is any
    number: clients get equal shares of the steps. Of the queued requests, those with a higher `priority` start first.
    After `timeout` seconds the request fails with Timeout. `logprobs`: pieces have the log probability of their token,
    and those of the `top_logprobs` most probable tokens, at most 20. `best_of` answers are generated, and the `n` with
    the highest mean log probability are returned, the best first, once all have ended. `prompt_logprobs`: the
    Completion has those of the prompt's tokens, and of the `top_prompt_logprobs` most probable tokens at each; the
    whole prompt is then computed, even if its begin is cached.
    """

    n: int


class AsyncRequest:
    """The pieces of a request's answers as they are generated: `async for piece in request`. The request is submitted
    when the first piece is read, or when an `async with` block begins. The end of the block cancels answers that have
    not ended, and so does dropping the last reference."""

    def __init__(self, engine: "AsyncEngine", prompt: Prompt, how: dict[str, Any]):
        check_names(how, Requesting)
        self._engine, self._what = engine, (prompt, how)
        self._request: Request | None = None
        self._stopped = False

    def _start(self) -> Request:
        if self._request is None:
            if self._stopped:
                raise errors.Cancelled("the request was cancelled before it was submitted")
            self._request = self._engine._submit(*self._what)
        return self._request

    async def _news(self, request: Request) -> None:
        try:
            await request.news()
        except BaseException:
            self.cancel()
            raise

    def __aiter__(self) -> "AsyncRequest":
        return self

    async def __anext__(self) -> Piece:
        request = self._start()
        while not request.pieces:
            if request.ended:
                request.results()
                raise StopAsyncIteration
            await self._news(request)
        return request.take()

    async def finish(self) -> Completion:
        """Waits for the end, drops the pieces, and returns the first answer."""
        request = self._start()
        request.drop_pieces()
        while not request.ended:
            await self._news(request)
        return self.result

    @property
    def results(self) -> list[Completion]:
        """All answers, after they have ended."""
        if self._request is None or not self._request.ended:
            raise RuntimeError("the request has not ended; finish() waits for it")
        return self._request.results()

    @property
    def result(self) -> Completion:
        """The first answer, after all have ended."""
        return self.results[0]

    def cancel(self) -> None:
        """Ends the request within one step; pieces that exist can still be read. From any thread."""
        self._stopped = True
        if self._request is not None:
            self._request.cancel()

    async def aclose(self) -> None:
        """Cancels the request and waits for its end."""
        self.cancel()
        request = self._request
        if request is None:
            return
        request.drop_pieces()
        try:
            while not request.ended:
                await request.news()
        except BaseException:
            request.abandon()
            raise

    async def __aenter__(self) -> "AsyncRequest":
        self._start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        request = getattr(self, "_request", None)
        if request is not None:
            request.abandon()


class AsyncEngine(Owner):
    """Answers many requests at once, for asyncio: each step reads the weights once for all of them. The answer to a
    request does not depend on other requests. It is `bitnet_scheduler` in bitnet.h; options: see AsyncEngineOptions.

    Only one event loop at a time may use it; report() and close() may be called from any thread."""

    def __init__(self, model: "Model", **options: "Unpack[AsyncEngineOptions]"):
        if not isinstance(model, ModelFile):
            raise TypeError(f"model is a bitnet.Model, not {type(model).__name__}")
        given: dict[str, Any] = dict(options)
        self._embeds = bool(given.get("embeddings"))
        own = {name: given.pop(name) for name in _SchedulerOptions.__annotations__ if name in given}
        sequences = session_options(given, _SequenceOptions, "an AsyncEngine")
        chosen = _native.Options("bitnet_scheduler_options").give(**own)
        chosen.struct.sequences = sequences.struct
        parent = model._handle
        assert parent is not None
        out = ffi.new("bitnet_scheduler**")
        self._model, self._model_pointer = model, parent.hold()
        try:
            _native.call(lib.bitnet_scheduler_open, self._model_pointer, chosen.struct, out)
        except BaseException:
            parent.let_go()
            raise
        self._handle = _handles.Handle("AsyncEngine", out[0], lib.bitnet_scheduler_close, parent)
        self._reader = Reader(self._handle, lib.bitnet_scheduler_descriptor(out[0]))
        self._handle.stop = self._reader.cancel_all

    def __repr__(self) -> str:
        return f"<bitnet.AsyncEngine {'closed' if self.closed else f'with {len(self._reader)} requests'}>"

    @property
    def model(self) -> "Model":
        return self._model

    def generate(self, prompt: Prompt, **how: "Unpack[Requesting]") -> AsyncRequest:
        """Pieces of the answers to a text, ids or messages, as they are generated."""
        return AsyncRequest(self, prompt, dict(how))

    @overload
    async def complete(self, prompt: Prompt, *, n: None = None,
                       **how: "Unpack[_RequestingOne]") -> Completion: ...

    @overload
    async def complete(self, prompt: Prompt, *, n: int, **how: "Unpack[_RequestingOne]") -> list[Completion]: ...

    async def complete(self, prompt: Prompt, *, n: int | None = None,
                       **how: "Unpack[_RequestingOne]") -> Completion | list[Completion]:
        """The whole answer; with `n` a list of all answers. Cancelling the task ends the request."""
        async with AsyncRequest(self, prompt, {**how, "n": n}) as request:
            first = await request.finish()
            return first if n is None else request.results

    async def embed(self, texts: str | Sequence[str]) -> "npt.NDArray[np.float32]":
        """The embedding of a text (n_embedding), or of each of several (n, n_embedding), with the bits of
        Model.embed(). Texts of all tasks are computed in common steps. Only for an engine with `embeddings`."""
        import numpy as np
        several = [texts] if isinstance(texts, str) else list(texts)
        out = np.empty((len(several), self._model.info.n_embedding), np.float32)
        requests: list[EmbeddingRequest] = []
        try:
            for at, text in enumerate(several):
                if at >= _TEXTS_AT_ONCE:
                    await requests[at - _TEXTS_AT_ONCE].finish()
                requests.append(self._submit_text(text))
            for row, request in zip(out, requests):
                await request.finish()
                request.results()
                row[:] = np.frombuffer(request.vector, np.float32)
        finally:
            for request in requests:
                request.abandon()
        return out[0] if isinstance(texts, str) else out

    async def save(self, prompt: Prompt, path: str | os.PathLike[str], *, template: str | None = None,
                   parse_special_in_messages: bool = False) -> int:
        """Writes the computed state of a prompt to a file, for restore() after a restart: `bitnet_scheduler_save`.
        Returns the number of saved tokens, a multiple of 64. Raises NotFound if no whole block is known. The prompt is
        a text, ids or messages, as in generate(); ids of a prompt and its answer are a conversation so far. Other
        tasks and requests go on meanwhile. A cancelled task does not wait for the file, which is still written."""
        assert self._handle is not None
        with self._handle.used():
            how = {"template": template, "parse_special_in_messages": parse_special_in_messages}
            ids = token_array(self._prompt(prompt, how)[0])
        file = _native.path("the file of a prompt", path)
        return await self._move(lambda scheduler, n: _native.call(
            lib.bitnet_scheduler_save, scheduler, ids, len(ids), file, n))

    async def restore(self, path: str | os.PathLike[str]) -> int:
        """Loads the state of a prompt from a file, as if a request had just computed it: `bitnet_scheduler_restore`.
        Returns the number of tokens. Raises Unsupported if the model, backend, version, window or types of keys and
        values differ, and BadData if the file is damaged. Restore only files that no other user could write: answers
        continue from their text."""
        file = _native.path("the file of a prompt", path)
        return await self._move(lambda scheduler, n: _native.call(lib.bitnet_scheduler_restore, scheduler, file, n))

    async def set_preference(self, device: str) -> None:
        """Moves the requests to the first usable device of the list, such as "cuda,cpu":
        `bitnet_scheduler_set_preference`. Their texts go on; their tokens are computed again on the new device. Raises
        Unavailable, with nothing changed, if no device of the list can be used."""
        wanted = _native.word("device", device)
        await self._move(lambda scheduler, _: _native.call(lib.bitnet_scheduler_set_preference, scheduler, wanted))

    async def _move(self, work: Callable[[Any, Any], None]) -> int:
        """Runs `work` on a thread, since it may take long. Returns the number of tokens, if it counts any."""
        handle = self._handle
        assert handle is not None

        def run() -> int:
            n = ffi.new("uint64_t*")
            with handle.used() as scheduler:
                work(scheduler, n)
            return int(n[0])

        return await asyncio.get_running_loop().run_in_executor(None, run)

    def report(self) -> dict[str, Any]:
        """Queued and running requests, and counters since it was opened: the JSON of bitnet_scheduler_report."""
        assert self._handle is not None
        with self._handle.used() as scheduler:
            report: dict[str, Any] = _native.json_from(lib.bitnet_scheduler_report, scheduler)
            return report

    # ---- ends

    def close(self) -> None:
        """Ends all requests with Cancelled, and waits for the running step. A second call does nothing."""
        if hasattr(self, "_reader"):
            self._reader.shut()
        super().close()

    async def aclose(self) -> None:
        """As close(), but other tasks run meanwhile."""
        self._reader.shut()
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def __enter__(self) -> "AsyncEngine":
        return self

    async def __aenter__(self) -> "AsyncEngine":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self.aclose()

    # ---- requests

    def _prompt(self, prompt: Prompt, how: dict[str, Any]) -> tuple[Any, str]:
        """The prompt's ids, and the text with which its answer begins."""
        template, parse_special = how.pop("template", None), how.pop("parse_special_in_messages", False)
        if isinstance(prompt, str):
            return tokenize(self._model_pointer, prompt, None, True), ""
        ids, messages = ids_or_messages(prompt)
        if not messages:
            return ids, ""
        begun = begun_answer(self._model_pointer, messages, template)
        return tokenize_chat(self._model_pointer, messages, template, parse_special)[0], begun

    def _submit_text(self, text: str) -> EmbeddingRequest:
        if not self._embeds:
            raise errors.InvalidArgument("the engine was not opened for embeddings; open another one with "
                                         "embeddings=True")
        with self._held() as scheduler:
            ids = tokenize(self._model_pointer, text, None, False, eos=True)
            pointer = _begin(scheduler, _native.Options("bitnet_request_options"), ids)
        request = EmbeddingRequest(self._reader, self._handle_of(pointer), pointer)
        self._reader.add(request)
        return request

    def _submit(self, prompt: Prompt, how: dict[str, Any]) -> Request:
        with self._held() as scheduler:
            how = dict(how)
            options = _request_options(how)
            ids, begun = self._prompt(prompt, how)
            how.setdefault("in_reasoning", bool(begun))
            asked = Asked(how)
            asked.drafts_for(self._handle)
            options.struct.generation = asked.options.struct
            pointer = _begin(scheduler, options, ids)
        request = Request(self._reader, self._handle_of(pointer), pointer, asked, options.struct.n_choices, begun,
                          bool(options.struct.logprobs), options.struct.best_of > 0)
        self._reader.add(request)
        return request

    @contextlib.contextmanager
    def _held(self) -> Iterator[Any]:
        """Holds the scheduler for the request that the block submits; an error in the block releases it."""
        assert self._handle is not None
        scheduler = self._handle.hold()
        try:
            self._reader.bind()
            yield scheduler
        except BaseException:
            self._handle.let_go()
            raise

    def _handle_of(self, request: Any) -> _handles.Handle:
        return _handles.Handle("request", request, lib.bitnet_request_close, self._handle)


def _begin(scheduler: Any, options: _native.Options, ids: Any) -> Any:
    tokens = token_array(ids)
    options.struct.prompt, options.struct.n_prompt = tokens, len(tokens)
    out = ffi.new("bitnet_request**")
    _native.call(lib.bitnet_request_submit, scheduler, options.struct, out)
    return out[0]


def _request_options(how: dict[str, Any]) -> _native.Options:
    """bitnet_request_options; removes its members from `how`, which keeps those of generation."""
    n, top, best_of = how.pop("n", None), how.pop("top_logprobs", None), how.pop("best_of", None)
    top_of_prompt = how.pop("top_prompt_logprobs", None)
    if n == 0:
        raise ValueError("n is a number of answers, 1 or more, not 0")
    if best_of == 0:
        raise ValueError("best_of is a number of answers, n or more, not 0")
    return _native.Options("bitnet_request_options").give(
        n_choices=1 if n is None else n, best_of=best_of, client=how.pop("client", None), priority=how.pop("priority", None),
        deadline_ms=_milliseconds(how.pop("timeout", None)), n_top_logprobs=top,
        logprobs=bool(how.pop("logprobs", False)) or bool(top), n_top_prompt_logprobs=top_of_prompt,
        prompt_logprobs=bool(how.pop("prompt_logprobs", False)) or bool(top_of_prompt))


def _milliseconds(timeout: float | None) -> int | None:
    if timeout is None or timeout == math.inf:
        return None
    if not timeout > 0:
        raise ValueError(f"timeout is a number of seconds above 0, not {timeout!r}")
    return math.ceil(timeout * 1000)
