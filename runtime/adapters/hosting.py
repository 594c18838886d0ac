"""What the adapters share: a framework's own model call, made inside a guarded turn."""

from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from assay.errors import TurnFailed
from assay.guards.protocols import Completion, Request
from assay.runtime.prompts import QUOTED
from assay.runtime.session import Session

T = TypeVar("T")


class Notes(NamedTuple):
    """What a framework's model is shown besides its own conversation.

    Attributes:
        rule: For the end of the system prompt: what the notes are.
        message: The user's words, after the notes that were admitted; stands in their place.
    """

    rule: str
    message: str


class Hosted(Generic[T]):
    """One conversation of an agent of another framework, whose answers have type ``T``.

    The user's words go through one guarded turn: retrieved, reviewed, answered by the framework's
    model, remembered. When the framework calls its model again within the same exchange, as after
    a tool call, the same notes are shown and nothing is remembered twice.

    Args:
        session: The conversation here.
        completion: Reads an answer of the framework.
        answer: Makes one from a text, for the policy that asks the user back.
    """

    def __init__(
        self,
        session: Session,
        *,
        completion: Callable[[T], Completion],
        answer: Callable[[str], T],
    ) -> None:
        self._session = session
        self._completion = completion
        self._answer = answer
        self._notes: Notes | None = None

    async def call(self, said: str, *, fresh: bool, model: Callable[[Notes], Awaitable[T]]) -> T:
        """The answer of the framework's model to the user's words.

        Args:
            said: What the user said last.
            fresh: Whether nothing has answered it yet; else the exchange goes on.
            model: Asks the framework's model.

        Raises:
            TurnError: If the turn failed here; what the model raised is raised as it is.
        """
        if not fresh and self._notes is not None:
            return await model(self._notes)
        asked = _Asked(model, self._completion)
        try:
            reply = await self._session.send(said, answerer=asked)
        except TurnFailed:
            if asked.failure is not None:
                raise asked.failure from None
            raise
        self._notes = asked.notes
        return self._answer(reply.text) if asked.answer is None else asked.answer


class _Asked(Generic[T]):
    """The framework's model as an answerer; keeps what it said, and what it raised."""

    def __init__(
        self, model: Callable[[Notes], Awaitable[T]], completion: Callable[[T], Completion]
    ) -> None:
        self._model = model
        self._completion = completion
        self.notes: Notes | None = None
        self.answer: T | None = None
        self.failure: Exception | None = None

    async def __call__(self, request: Request) -> Completion:
        self.notes = Notes(QUOTED, request.messages[-1].content)
        try:
            self.answer = await self._model(self.notes)
        except Exception as failure:
            self.failure = failure
            raise
        return self._completion(self.answer)
