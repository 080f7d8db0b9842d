"""Models for LangChain (langchain-core).

>>> chat = ChatBitnet(model=bitnet.Model("model.gguf"), generating={"max_tokens": 60})  # doctest: +SKIP
"""

from __future__ import annotations

from typing import Any, AsyncIterator, Iterator, Sequence

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import LLM, BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult, GenerationChunk
from pydantic import BaseModel, ConfigDict, Field

import bitnet

_ROLES = {"human": "user", "ai": "assistant", "system": "system"}


def messages_of(messages: Sequence[BaseMessage]) -> list[dict[str, str]]:
    found = []
    for one in messages:
        if one.type not in _ROLES:
            raise ValueError(f"a message of the type {one.type} has no place in a chat of bitnet")
        parts = one.content if isinstance(one.content, list) else [one.content]
        texts = [part if isinstance(part, str) else part.get("text") for part in parts
                 if isinstance(part, str) or part.get("type") == "text"]
        if len(texts) != len(parts):
            raise ValueError("bitnet reads text only")
        found.append({"role": _ROLES[one.type], "content": "".join(map(str, texts))})
    return found


def _metadata(done: bitnet.Generation) -> dict[str, Any]:
    return {"stop_reason": done.stop_reason, "seed": done.seed}


def _usage(done: bitnet.Generation) -> dict[str, int]:
    return {"input_tokens": done.n_prompt, "output_tokens": len(done.tokens),
            "total_tokens": done.n_prompt + len(done.tokens)}


class _OfModel(BaseModel):
    """Base of both classes: a model and its options of generation."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    model: bitnet.Model = Field(exclude=True)
    generating: dict[str, Any] = Field(default_factory=dict)  #: see bitnet.Generating

    @property
    def _llm_type(self) -> str:
        return "bitnet"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.model.path, **self.generating}

    def _how(self, stop: list[str] | None, more: dict[str, Any]) -> dict[str, Any]:
        return {**self.generating, **({"stop": stop} if stop else {}), **more}


class ChatBitnet(_OfModel, BaseChatModel):
    """A chat model. Each call is a separate conversation, in a new session of the model."""

    def _result(self, done: bitnet.Generation) -> ChatResult:
        message = AIMessage(done.text, response_metadata=_metadata(done), usage_metadata=_usage(done))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(self, messages: list[BaseMessage], stop: list[str] | None = None,
                  run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any) -> ChatResult:
        return self._result(self.model.generate(messages_of(messages), **self._how(stop, kwargs)))

    async def _agenerate(self, messages: list[BaseMessage], stop: list[str] | None = None,
                         run_manager: AsyncCallbackManagerForLLMRun | None = None, **kwargs: Any) -> ChatResult:
        return self._result(await self.model.agenerate(messages_of(messages), **self._how(stop, kwargs)))

    def _stream(self, messages: list[BaseMessage], stop: list[str] | None = None,
                run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        with self.model.stream(messages_of(messages), **self._how(stop, kwargs)) as stream:
            for piece in stream:
                chunk = ChatGenerationChunk(message=AIMessageChunk(piece))
                if run_manager is not None:
                    run_manager.on_llm_new_token(piece, chunk=chunk)
                yield chunk
            yield _last(stream.result)

    async def _astream(self, messages: list[BaseMessage], stop: list[str] | None = None,
                       run_manager: AsyncCallbackManagerForLLMRun | None = None,
                       **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        async with self.model.astream(messages_of(messages), **self._how(stop, kwargs)) as stream:
            async for piece in stream:
                chunk = ChatGenerationChunk(message=AIMessageChunk(piece))
                if run_manager is not None:
                    await run_manager.on_llm_new_token(piece, chunk=chunk)
                yield chunk
            yield _last(stream.result)


def _last(done: bitnet.Generation) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(
        "", response_metadata=_metadata(done), usage_metadata=_usage(done)))


class Bitnet(_OfModel, LLM):
    """A model that continues texts. Each call has a new session."""

    def _call(self, prompt: str, stop: list[str] | None = None,
              run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any) -> str:
        return self.model.generate(prompt, **self._how(stop, kwargs)).text

    async def _acall(self, prompt: str, stop: list[str] | None = None,
                     run_manager: AsyncCallbackManagerForLLMRun | None = None, **kwargs: Any) -> str:
        return (await self.model.agenerate(prompt, **self._how(stop, kwargs))).text

    def _stream(self, prompt: str, stop: list[str] | None = None,
                run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any) -> Iterator[GenerationChunk]:
        with self.model.stream(prompt, **self._how(stop, kwargs)) as stream:
            for piece in stream:
                chunk = GenerationChunk(text=piece)
                if run_manager is not None:
                    run_manager.on_llm_new_token(piece, chunk=chunk)
                yield chunk

    async def _astream(self, prompt: str, stop: list[str] | None = None,
                       run_manager: AsyncCallbackManagerForLLMRun | None = None,
                       **kwargs: Any) -> AsyncIterator[GenerationChunk]:
        async with self.model.astream(prompt, **self._how(stop, kwargs)) as stream:
            async for piece in stream:
                chunk = GenerationChunk(text=piece)
                if run_manager is not None:
                    await run_manager.on_llm_new_token(piece, chunk=chunk)
                yield chunk
