"""A model for LlamaIndex (llama-index-core)."""

from __future__ import annotations

from typing import Any, Sequence

from llama_index.core.base.llms.types import (
    ChatMessage, ChatResponse, ChatResponseAsyncGen, ChatResponseGen, CompletionResponse, CompletionResponseAsyncGen,
    CompletionResponseGen, LLMMetadata, MessageRole, TextBlock)
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.custom import CustomLLM
from pydantic import Field, PrivateAttr

import bitnet


def messages_of(messages: Sequence[ChatMessage]) -> list[dict[str, str]]:
    found = []
    for one in messages:
        if one.role not in (MessageRole.SYSTEM, MessageRole.USER, MessageRole.ASSISTANT):
            raise ValueError(f"a message of the role {one.role.value} has no place in a chat of bitnet")
        if not all(isinstance(block, TextBlock) for block in one.blocks):
            raise ValueError("bitnet reads text only")
        found.append({"role": one.role.value, "content": one.content or ""})
    return found


class BitnetLLM(CustomLLM):
    """Each call has a new session of the model. `generating`: see bitnet.Generating."""

    generating: dict[str, Any] = Field(default_factory=dict)
    _model: bitnet.Model = PrivateAttr()

    def __init__(self, model: bitnet.Model, generating: dict[str, Any] | None = None, **more: Any):
        super().__init__(generating=generating or {}, **more)
        self._model = model

    @classmethod
    def class_name(cls) -> str:
        return "bitnet"

    @property
    def metadata(self) -> LLMMetadata:
        info = self._model.info
        # The default context of a session.
        return LLMMetadata(context_window=min(info.n_context, 4096), is_chat_model=True,
                           num_output=self.generating.get("max_tokens", 256), model_name=info.name)

    def _how(self, more: dict[str, Any]) -> dict[str, Any]:
        return {**self.generating, **more}

    @staticmethod
    def _raw(done: bitnet.Generation) -> dict[str, Any]:
        return {"stop_reason": done.stop_reason, "seed": done.seed, "tokens": done.tokens}

    def _answer(self, text: str, delta: str | None = None, raw: Any = None) -> ChatResponse:
        return ChatResponse(message=ChatMessage(text, role=MessageRole.ASSISTANT), delta=delta, raw=raw)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        done = self._model.generate(prompt, **self._how(kwargs))
        return CompletionResponse(text=done.text, raw=self._raw(done))

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        done = await self._model.agenerate(prompt, **self._how(kwargs))
        return CompletionResponse(text=done.text, raw=self._raw(done))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        def pieces() -> CompletionResponseGen:
            text = ""
            with self._model.stream(prompt, **self._how(kwargs)) as stream:
                for piece in stream:
                    text += piece
                    yield CompletionResponse(text=text, delta=piece)

        return pieces()

    @llm_completion_callback()
    async def astream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseAsyncGen:
        async def pieces() -> CompletionResponseAsyncGen:
            text = ""
            async with self._model.astream(prompt, **self._how(kwargs)) as stream:
                async for piece in stream:
                    text += piece
                    yield CompletionResponse(text=text, delta=piece)

        return pieces()

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        done = self._model.generate(messages_of(messages), **self._how(kwargs))
        return self._answer(done.text, raw=self._raw(done))

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        done = await self._model.agenerate(messages_of(messages), **self._how(kwargs))
        return self._answer(done.text, raw=self._raw(done))

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        def pieces() -> ChatResponseGen:
            text = ""
            with self._model.stream(messages_of(messages), **self._how(kwargs)) as stream:
                for piece in stream:
                    text += piece
                    yield self._answer(text, piece)

        return pieces()

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        async def pieces() -> ChatResponseAsyncGen:
            text = ""
            async with self._model.astream(messages_of(messages), **self._how(kwargs)) as stream:
                async for piece in stream:
                    text += piece
                    yield self._answer(text, piece)

        return pieces()
