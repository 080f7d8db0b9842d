from __future__ import annotations

import asyncio
import contextlib
import math
import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Iterator, Sequence, TypedDict, overload

from . import _handles, _native, errors
from ._asked import Asked, Generating, Prompt, begun_answer, check_names, ids_or_messages
from ._engine import Owner
from ._model_file import ModelFile
from ._native import ffi, lib
from ._requests import Completion, EmbeddingRequest, Piece, Reader, Request
from ._session import session_options
from ._text import token_array, tokenize, tokenize_chat

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Unpack

    from ._model import Model

# Texts of one embed() that wait or are computed: the library takes a bounded number.
_TEXTS_AT_ONCE = 128


class _SequenceOptions(TypedDict, total=False):
    """Of each sequence, as SessionOptions; n_batch is the tokens of a step of all of them."""

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
    """bitnet_scheduler_options, and of bitnet_session_options what its sequences have. With `embeddings`, and
    perhaps `pooling`, it is for embed() alone."""


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

    `n` are answers to the prompt, which is computed once; answer i has `seed` + i. Clients share what there is:
    `client` is any number. Of those that wait, a higher `priority` goes first. After `timeout` seconds the request
    fails with Timeout. `logprobs`: pieces have the log probability of their token, and `top_logprobs` of so many of
    the most probable, at most 20. `best_of` answers are generated, and the `n` with the highest mean log probability
    come, the best first and once all have ended. `prompt_logprobs`: the Completion has those of the prompt's tokens, and
    `top_prompt_logprobs` of so many beside each; the whole prompt is computed then, whatever is known of it.
    """

    n: int


class AsyncRequest:
    """The pieces of a request's answers as they come: `async for piece in request`. It is submitted when the first
    one is asked for, or where an `async with` block begins; leaving that, or forgetting it, cancels what has not
    ended."""

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
        """Waits for the end, without the pieces; the first answer."""
        request = self._start()
        request.drop_pieces()
        while not request.ended:
            await self._news(request)
        return self.result

    @property
    def results(self) -> list[Completion]:
        """All answers, once they have ended."""
        if self._request is None or not self._request.ended:
            raise RuntimeError("the request has not ended; finish() waits for it")
        return self._request.results()

    @property
    def result(self) -> Completion:
        """The first answer, once all have ended."""
        return self.results[0]

    def cancel(self) -> None:
        """Ends it within one step; what is there can still be read. From any thread."""
        self._stopped = True
        if self._request is not None:
            self._request.cancel()

    async def aclose(self) -> None:
        """Cancels it, and waits for its end."""
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
    """Answers many requests at once, for asyncio: each step reads the weights once for all of them. What a request
    gets does not depend on the others. `bitnet_scheduler` in bitnet.h; options: see AsyncEngineOptions.

    One event loop at a time uses it; report() and close() are for any thread."""

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
        """Pieces of the answers to a text, ids or messages, as they come."""
        return AsyncRequest(self, prompt, dict(how))

    @overload
    async def complete(self, prompt: Prompt, *, n: None = None,
                       **how: "Unpack[_RequestingOne]") -> Completion: ...

    @overload
    async def complete(self, prompt: Prompt, *, n: int, **how: "Unpack[_RequestingOne]") -> list[Completion]: ...

    async def complete(self, prompt: Prompt, *, n: int | None = None,
                       **how: "Unpack[_RequestingOne]") -> Completion | list[Completion]:
        """The whole answer; with `n` the list of all of them. A task that is cancelled ends it."""
        async with AsyncRequest(self, prompt, {**how, "n": n}) as request:
            first = await request.finish()
            return first if n is None else request.results

    async def embed(self, texts: str | Sequence[str]) -> "npt.NDArray[np.float32]":
        """The embedding of a text (n_embedding), or of each of several (n, n_embedding), with the bits of
        Model.embed(): computed in common steps, with those of other tasks. Of an engine with `embeddings`."""
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
        """Writes what is computed of a prompt to a file, for restore() after a restart: `bitnet_scheduler_save`. How
        many tokens, in whole blocks of 64; NotFound where no block is. The prompt is a text, ids or messages, as
        generate() has it; with the ids of an answer behind it, a conversation so far. Other tasks and requests go on
        meanwhile. A task that is cancelled does not wait for the file, which is written all the same."""
        assert self._handle is not None
        with self._handle.used():
            how = {"template": template, "parse_special_in_messages": parse_special_in_messages}
            ids = token_array(self._prompt(prompt, how)[0])
        file = _native.path("the file of a prompt", path)
        return await self._move(lambda scheduler, n: _native.call(
            lib.bitnet_scheduler_save, scheduler, ids, len(ids), file, n))

    async def restore(self, path: str | os.PathLike[str]) -> int:
        """Makes the prompt in a file known, as if a request had just had it: `bitnet_scheduler_restore`. How many
        tokens. Unsupported where its model, backend, version, window or types of keys and values are others, BadData
        where it is damaged. Restore only files that no other user could write: the text is what answers go on
        from."""
        file = _native.path("the file of a prompt", path)
        return await self._move(lambda scheduler, n: _native.call(lib.bitnet_scheduler_restore, scheduler, file, n))

    async def set_preference(self, device: str) -> None:
        """Lets its requests go on with the first device of the list that can be used, such as "cuda,cpu":
        `bitnet_scheduler_set_preference`. Their texts go on; what they have is computed again there. Unavailable where
        no device of it can be used, and nothing has changed then."""
        wanted = _native.word("device", device)
        await self._move(lambda scheduler, _: _native.call(lib.bitnet_scheduler_set_preference, scheduler, wanted))

    async def _move(self, work: Callable[[Any, Any], None]) -> int:
        """Runs it on a thread, since it may take long; the number of tokens that it has counted, where it counts."""
        handle = self._handle
        assert handle is not None

        def run() -> int:
            n = ffi.new("uint64_t*")
            with handle.used() as scheduler:
                work(scheduler, n)
            return int(n[0])

        return await asyncio.get_running_loop().run_in_executor(None, run)

    def report(self) -> dict[str, Any]:
        """What waits and runs, and was counted since it was opened: the JSON of bitnet_scheduler_report."""
        assert self._handle is not None
        with self._handle.used() as scheduler:
            report: dict[str, Any] = _native.json_from(lib.bitnet_scheduler_report, scheduler)
            return report

    # ---- ends

    def close(self) -> None:
        """Ends all requests, whose readers meet Cancelled, and waits for the step that runs. Again does nothing."""
        if hasattr(self, "_reader"):
            self._reader.shut()
        super().close()

    async def aclose(self) -> None:
        """close(), while other tasks run."""
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
        """Its ids, and what the answer begins with."""
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
        """The scheduler, held for the request that the block submits; an error in the block lets it go."""
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
    """Of what it takes out of Requesting: all but how to generate."""
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
