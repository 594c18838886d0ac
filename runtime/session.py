"""A conversation with one user: a message in, a reply with its decision out."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from assay.guards.protocols import DeltaSink, ToolCall
from assay.runtime.bus import CAPACITY, EventHandler, Observer
from assay.runtime.commands import ToolResult
from assay.runtime.conversation import Conversation
from assay.runtime.events import AnyEvent
from assay.runtime.handlers import Answerer
from assay.runtime.limits import checked_message, checked_output, checked_request
from assay.runtime.reducer import State
from assay.runtime.reply import Reply, reply_of
from assay.runtime.requests import AnswerTools, Resume, Send, TurnRequest
from assay.stores.checks import checked_characters
from assay.stores.records import Namespace, SessionId


class Turns(Protocol):
    """Where the turns of one session run: here, or wherever somebody has time for them."""

    async def take(
        self,
        request: TurnRequest,
        *,
        sink: DeltaSink | None = None,
        answerer: Answerer | None = None,
    ) -> Reply | None:
        """Do what is asked for, after all that was asked before; raises as ``Session`` says."""
        ...

    async def state(self) -> State:
        """How the session stands when no turn runs."""
        ...

    def subscribe(self, take: EventHandler, *kinds: type[AnyEvent]) -> AbstractContextManager[None]:
        """Hand events to ``take`` in order."""
        ...

    def observe(self, *kinds: type[AnyEvent], capacity: int) -> AbstractContextManager[Observer]:
        """A queue of events that drops its oldest when full."""
        ...


class Session:
    """One conversation. Its turns run one after the other, also when sent at the same time.

    A turn that a crash interrupted is finished before the next message is taken, or by
    ``resume()``; its decision is the one that was made, and nothing is written twice.

    Attributes:
        user: Whose conversation it is.
        id: Which one; the same id later goes on with it.
    """

    def __init__(self, turns: Turns, user: Namespace, session_id: SessionId) -> None:
        self.user = user
        self.id = session_id
        self._turns = turns

    async def send(  # noqa: PLR0913  # what a caller may say of a message
        self,
        text: str,
        *,
        tools: str = "",
        sink: DeltaSink | None = None,
        answerer: Answerer | None = None,
        conversation: Conversation | None = None,
        request: str = "",
    ) -> Reply:
        """Say something and get the reply.

        Args:
            text: What the user says.
            tools: JSON text of the OpenAI ``tools`` array the model may call; empty: none.
            sink: Takes pieces of the reply as they come; must not block.
            answerer: Replies in the place of the runtime's model, as an agent of another framework
                does. What it raises fails the turn. A turn that a crash interrupted before it
                answered is finished by the runtime's model.
            conversation: What came before, where the caller keeps it; ``None``: the session's turns.
            request: Names what is wished for. The same name again, after a crash or a lost answer,
                finishes the turn it began, or gives its reply or failure; no second turn begins.

        Raises:
            ValueError: On an empty or too long message, or one with NUL; nothing has happened then.
            TurnTimeout: If ``turn.seconds`` passed; the turn is over.
            TurnFailed: If a command failed; the turn is over, and the message can be sent again.
            LeaseLost: If another process took the session over; it finishes the turn.
            StoreError: If the journal cannot be written.
        """
        checked_message(text)
        checked_characters("tools", tools)
        send = Send(
            text=text, tools=tools, conversation=conversation, request=checked_request(request)
        )
        return _present(await self._turns.take(send, sink=sink, answerer=answerer))

    async def answer_tools(
        self,
        results: Sequence[ToolResult],
        *,
        sink: DeltaSink | None = None,
        conversation: Conversation | None = None,
        request: str = "",
    ) -> Reply:
        """Hand in the results of the calls the last reply asked for, and get the next reply.

        Each result is remembered together with its call, as the tool's words, not the user's.

        Args:
            results: One per call, in any order.
            sink: As for ``send``.
            conversation: As for ``send``.
            request: As for ``send``.

        Raises:
            ValueError: If the results are not those of the calls awaited, or cannot be kept.
            TurnError: As for ``send``.
        """
        for result in results:
            checked_output(result.output)
        answer = AnswerTools(
            results=tuple(results), conversation=conversation, request=checked_request(request)
        )
        return _present(await self._turns.take(answer, sink=sink))

    async def resume(self, *, sink: DeltaSink | None = None) -> Reply | None:
        """Finish the turn a crash interrupted, if there is one; gives its reply.

        Raises:
            TurnError: If it cannot be finished; it is over then.
        """
        return await self._turns.take(Resume(), sink=sink)

    async def awaited_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls whose results the session waits for; none: it waits for a message."""
        state = await self._turns.state()
        return state.reply.tool_calls if state.awaiting and state.reply else ()

    async def last_reply(self) -> Reply | None:
        """The reply of the last turn, from the journal; ``None`` if it has none."""
        return reply_of(await self._turns.state())

    def subscribe(self, take: EventHandler, *kinds: type[AnyEvent]) -> AbstractContextManager[None]:
        """Hand the session's events to ``take`` in order; a slow one slows the turn, a failing one fails it.

        Those of turns that this process takes or hands out; a turn that runs elsewhere is not slowed.
        """
        return self._turns.subscribe(take, *kinds)

    def observe(
        self, *kinds: type[AnyEvent], capacity: int = CAPACITY
    ) -> AbstractContextManager[Observer]:
        """A queue of the session's events that never holds a turn up: it drops its oldest when full."""
        return self._turns.observe(*kinds, capacity=capacity)


def _present(reply: Reply | None) -> Reply:
    if reply is None:
        raise AssertionError("unreachable")
    return reply
