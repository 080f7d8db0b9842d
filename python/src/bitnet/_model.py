"""The highest layer except Engine and AsyncEngine: sessions, chats, texts and embeddings of a model file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Sequence

from ._answers import Answer, AnswerStream
from ._asked import Generating, Prompt
from ._chat import Chat
from ._generation import AsyncStream, Generation, Stream
from ._model_file import ModelFile
from ._session import Session, SessionOptions

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Unpack


class Model(ModelFile):
    """A model file, read-only; from any thread.

    Without an engine it has one of its own, on `device`. `progress` is called with the loaded bytes
    and their total; an exception that it raises ends the opening. The other arguments are those of
    bitnet_model_options.
    """

    def __enter__(self) -> "Model":
        return self

    # ---- to embed

    def embed(self, texts: str | Sequence[str], *, pooling: str = "model",
              **options: "Unpack[SessionOptions]") -> "npt.NDArray[np.float32]":
        """The embedding of a text (n_embedding), or of each of several (n, n_embedding). Its length is
        1, so the dot product of two is the similarity of their texts. Each is computed in a session
        with these options, and depends only on its own text."""
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

    def session(self, **options: "Unpack[SessionOptions]") -> Session:
        """Session(self, ...)"""
        return Session(self, **options)

    def chat(self, system: str | None = None, *, template: str | None = None,
             **options: "Unpack[SessionOptions]") -> Chat:
        """A conversation that keeps its messages."""
        return Chat(self, system, template=template, **options)

    def answer(self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Mapping[str, Any]] | None = None,
               tool_choice: str | Mapping[str, Any] | None = None,
               template_arguments: Mapping[str, Any] | None = None, template: str | None = None,
               dialect: str | None = None, **how: "Unpack[Generating]") -> Answer:
        """The answer to messages in OpenAI's form, in its parts: text, thinking, and calls of `tools`. `tool_choice`
        is auto, none, required, or names a tool. InvalidArgument names the wrong member by its path. See
        docs/reference/chat-json.md."""
        return self.stream_answer(messages, tools=tools, tool_choice=tool_choice, template=template, dialect=dialect,
                                  template_arguments=template_arguments, **how).finish()

    def stream_answer(self, messages: Sequence[Mapping[str, Any]], *,
                      tools: Sequence[Mapping[str, Any]] | None = None,
                      tool_choice: str | Mapping[str, Any] | None = None,
                      template_arguments: Mapping[str, Any] | None = None, template: str | None = None,
                      dialect: str | None = None, **how: "Unpack[Generating]") -> AnswerStream:
        """The parts of the same answer, while it is generated."""
        return AnswerStream(self, {"messages": messages, "tools": tools, "tool_choice": tool_choice,
                                   "template_arguments": template_arguments},
                            {"template_name": template, "dialect": dialect}, how)

    def generate(self, prompt: Prompt, **how: "Unpack[Generating]") -> Generation:
        """Session.generate() in a session of its own."""
        with self.session() as session:
            return session.generate(prompt, **how)

    def stream(self, prompt: Prompt, **how: "Unpack[Generating]") -> Stream:
        """Session.stream() in a session of its own."""
        return Stream(self.session(), prompt, how, own=True)

    async def agenerate(self, prompt: Prompt, **how: "Unpack[Generating]") -> Generation:
        """Session.agenerate() in a session of its own."""
        async with AsyncStream(lambda: Session(self), prompt, how, own=True, quiet=True) as stream:
            return await stream.finish()

    def astream(self, prompt: Prompt, **how: "Unpack[Generating]") -> AsyncStream:
        """Session.astream() in a session of its own."""
        return AsyncStream(lambda: Session(self), prompt, how, own=True)
