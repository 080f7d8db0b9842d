from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from ._generation import AsyncStream, Generating, Generation, Stream
from ._model import Message, Model
from ._session import Session, SessionOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


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
