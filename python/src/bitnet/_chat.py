from __future__ import annotations

from typing import TYPE_CHECKING

from ._asked import Generating
from ._generation import AsyncStream, Conversation, Generation, Stream, first_turn
from ._session import Session, SessionOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._model import Model


class _Turn:
    """One question, and the update of the messages after its answer."""

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
    """A conversation: send() appends a message and its answer to the messages, and returns the answer.

    If the context is full, the oldest turns are removed, from the messages, too, with a warning (LeftOut), but
    never the system prompt or the new message. ContextFull is raised if these two alone are too long. A call that
    raises leaves the messages unchanged; a stream that is closed early appends the text that it has.
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
