from __future__ import annotations

from typing import TYPE_CHECKING

from ._asked import Generating
from ._generation import AsyncStream, Conversation, Generation, Stream, first_turn
from ._session import Session, SessionOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._model import Model


class _Turn:
    """One question: what is asked, and what becomes of the messages once there is an answer."""

    def __init__(self, chat: "Chat", text: str, how: Generating):
        self.how = how
        self._messages = chat.messages
        self._said = {"role": "user", "content": text}
        self.prompt = Conversation([*chat.messages, self._said])
        if chat._template is not None:
            self.how.setdefault("template", chat._template)

    def remember(self, answer: Generation) -> None:
        first = first_turn(self._messages)
        del self._messages[first:first + self.prompt.left_out]
        self._messages += [self._said, {"role": "assistant", "content": answer.text}]


class Chat:
    """A conversation: send() says something and returns the answer; both are remembered.

    Where the context is full, the oldest turns are left out, of the messages too, with a warning (LeftOut):
    never the system prompt nor what is said. ContextFull is raised where these alone are too long. A call
    that raises leaves the messages as they were; a stream that is closed early has said what it said.
    """

    def __init__(self, model: "Model", system: str | None = None, *, template: str | None = None,
                 **options: "Unpack[SessionOptions]"):
        self.messages: list[dict[str, str]] = []
        if system is not None:
            self.messages.append({"role": "system", "content": system})
        self._template = template
        self.session = Session(model, **options)

    def send(self, text: str, **how: "Unpack[Generating]") -> Generation:
        turn = _Turn(self, text, how)
        with Stream(self.session, turn.prompt, turn.how, quiet=True) as stream:
            answer = stream.finish()
        turn.remember(answer)
        return answer

    def stream(self, text: str, **how: "Unpack[Generating]") -> Stream:
        turn = _Turn(self, text, how)
        return Stream(self.session, turn.prompt, turn.how, at_end=turn.remember)

    async def asend(self, text: str, **how: "Unpack[Generating]") -> Generation:
        turn = _Turn(self, text, how)
        async with AsyncStream(lambda: self.session, turn.prompt, turn.how, quiet=True) as stream:
            answer = await stream.finish()
        turn.remember(answer)
        return answer

    def astream(self, text: str, **how: "Unpack[Generating]") -> AsyncStream:
        turn = _Turn(self, text, how)
        return AsyncStream(lambda: self.session, turn.prompt, turn.how, at_end=turn.remember)

    def close(self) -> None:
        self.session.close()

    def __enter__(self) -> "Chat":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
