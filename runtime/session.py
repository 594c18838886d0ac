"""A conversation with one user: a message in, a reply with its decision out."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Literal
from urllib.parse import quote, unquote

import anyio

from assay.errors import StoreError, TurnError, TurnFailed, TurnTimeout
from assay.guards.protocols import DeltaSink, ToolCall
from assay.runtime.bus import CAPACITY, Bus, EventHandler, Observer
from assay.runtime.commands import Complete, ToolResult
from assay.runtime.conversation import Conversation
from assay.runtime.engine import Engine
from assay.runtime.equipment import Equipment
from assay.runtime.events import (
    AnyEvent,
    CommandFailed,
    MessageReceived,
    ToolResultsReceived,
    TurnCancelled,
)
from assay.runtime.handlers import Answerer, Handlers
from assay.runtime.limits import checked_message, checked_output
from assay.runtime.observe import Observation
from assay.runtime.reducer import State
from assay.runtime.reply import Reply, reply_of
from assay.stores.checks import checked_characters
from assay.stores.records import Namespace, SessionId, TurnId

_CLEAN_UP_SECONDS = 5.0


class Session:
    """One conversation. Its turns run one after the other, also when sent at the same time.

    A turn that a crash interrupted is finished before the next message is taken, or by
    ``resume()``; its decision is the one that was made, and nothing is written twice.

    Attributes:
        user: Whose conversation it is.
        id: Which one; the same id later goes on with it.
    """

    def __init__(self, equipment: Equipment, user: Namespace, session_id: SessionId) -> None:
        self.user = user
        self.id = session_id
        self._equipment = equipment
        self._handlers = Handlers(equipment, user, session_id)
        self._bus = Bus(self._handlers, now=equipment.clock.now)
        self._observation = Observation(equipment.clock, session=session_id)
        self._engine = Engine(
            equipment.bank.journal, stream_of(user, session_id), self._bus, self._observation
        )
        self._lock = anyio.Lock()

    async def send(
        self,
        text: str,
        *,
        tools: str = "",
        sink: DeltaSink | None = None,
        answerer: Answerer | None = None,
        conversation: Conversation | None = None,
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

        Raises:
            ValueError: On an empty or too long message, or one with NUL; nothing has happened then.
            TurnTimeout: If ``turn.seconds`` passed; the turn is over.
            TurnFailed: If a command failed; the turn is over, and the message can be sent again.
            StoreError: If the journal cannot be written.
        """
        checked_message(text)
        checked_characters("tools", tools)
        async with self._lock:
            await self._finish_interrupted()
            number = (await self._engine.state()).messages
            event = MessageReceived(
                turn_id=TurnId(f"{self.id}/{number}"),
                number=number,
                text=text,
                tools=tools,
                at=self._equipment.clock.now(),
            )
            self._handlers.answerer = answerer
            self._handlers.conversation = conversation
            try:
                return await self._turn(event, sink)
            finally:
                self._handlers.answerer = self._handlers.conversation = None

    async def answer_tools(
        self,
        results: Sequence[ToolResult],
        *,
        sink: DeltaSink | None = None,
        conversation: Conversation | None = None,
    ) -> Reply:
        """Hand in the results of the calls the last reply asked for, and get the next reply.

        Each result is remembered together with its call, as the tool's words, not the user's.

        Args:
            results: One per call, in any order.
            sink: As for ``send``.
            conversation: As for ``send``.

        Raises:
            ValueError: If the results are not those of the calls awaited, or cannot be kept.
            TurnError: As for ``send``.
        """
        async with self._lock:
            await self._finish_interrupted()
            last, calls = _awaited(await self._engine.state())
            event = ToolResultsReceived(
                turn_id=last.turn_id,
                exchange=last.exchange + 1,
                results=_matched(calls, results),
                at=self._equipment.clock.now(),
            )
            self._handlers.conversation = conversation
            try:
                return await self._turn(event, sink)
            finally:
                self._handlers.conversation = None

    async def resume(self, *, sink: DeltaSink | None = None) -> Reply | None:
        """Finish the turn a crash interrupted, if there is one; gives its reply.

        Raises:
            TurnError: If it cannot be finished; it is over then.
        """
        async with self._lock:
            if (await self._engine.state()).pending is None:
                return None
            return await self._turn(None, sink)

    async def awaited_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls whose results the session waits for; none: it waits for a message."""
        async with self._lock:
            state = await self._engine.state()
            return state.reply.tool_calls if state.awaiting and state.reply else ()

    async def last_reply(self) -> Reply | None:
        """The reply of the last turn, from the journal; ``None`` if it has none."""
        async with self._lock:
            return reply_of(await self._engine.state())

    def subscribe(self, take: EventHandler, *kinds: type[AnyEvent]) -> AbstractContextManager[None]:
        """Hand the session's events to ``take`` in order; a slow one slows the turn, a failing one fails it."""
        return self._bus.subscribe(take, *kinds)

    def observe(
        self, *kinds: type[AnyEvent], capacity: int = CAPACITY
    ) -> AbstractContextManager[Observer]:
        """A queue of the session's events that never holds a turn up: it drops its oldest when full."""
        return self._bus.observe(*kinds, capacity=capacity)

    async def _finish_interrupted(self) -> None:
        """What an interrupted turn fails with is in the journal; the new message goes on."""
        if (await self._engine.state()).pending is not None:
            try:
                await self._turn(None, None)
            except TurnError:
                return

    async def _turn(
        self, event: MessageReceived | ToolResultsReceived | None, sink: DeltaSink | None
    ) -> Reply:
        """Run a turn from an outside event, or go on with the interrupted one."""
        seconds = self._equipment.settings.turn.seconds
        turn_id = event.turn_id if event else _open_turn(await self._engine.state())
        with self._observation.turn(turn_id, resumed=event is None):
            try:
                with anyio.move_on_after(seconds):
                    return _outcome(await self._run(event, sink))
            except anyio.get_cancelled_exc_class():
                await self._give_up("cancelled")
                raise
            await self._give_up("deadline")
            raise TurnTimeout(f"no reply within {seconds:g} s (turn.seconds); the turn is over")

    async def _run(
        self, event: MessageReceived | ToolResultsReceived | None, sink: DeltaSink | None
    ) -> State:
        self._handlers.sink = sink
        async with self._bus.running():
            return await (self._engine.resume() if event is None else self._engine.run(event))

    async def _give_up(self, reason: Literal["cancelled", "deadline"]) -> None:
        """Close the turn in the journal, so that it is not resumed; if that fails, it is resumed."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(_CLEAN_UP_SECONDS):
            try:
                await self._engine.give_up(reason, at=self._equipment.clock.now())
            except StoreError as error:
                self._observation.not_closed(error)


def _open_turn(state: State) -> TurnId:
    if state.pending is None:
        raise AssertionError("unreachable")
    return state.pending.turn_id


def _outcome(state: State) -> Reply:
    match state.failure:
        case CommandFailed() as failed:
            raise TurnFailed(failed.message, kind=failed.kind)
        case TurnCancelled() as cancelled:
            raise TurnTimeout(f"the turn was given up: {cancelled.reason}")
        case None:
            return _present(reply_of(state))


def _present(reply: Reply | None) -> Reply:
    if reply is None:
        raise AssertionError("unreachable")
    return reply


def _awaited(state: State) -> tuple[Complete, tuple[ToolCall, ...]]:
    if state.awaiting is None or state.reply is None:
        raise ValueError("no tool calls are awaited in this session")
    return state.awaiting, state.reply.tool_calls


def _matched(calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> tuple[ToolResult, ...]:
    """The results in the order of their calls."""
    given = {result.call.id: checked_output(result.output) for result in results}
    awaited = [call.id for call in calls]
    if len(given) != len(results) or set(given) != set(awaited):
        raise ValueError(f"expected one result for each of {awaited!r}, got {list(given)!r}")
    return tuple(ToolResult(call=call, output=given[call.id]) for call in calls)


def stream_of(user: Namespace, session_id: SessionId | Literal[""]) -> SessionId:
    """The journal's name of a session; no two (user, session) pairs share one.

    With an empty session id: what the names of all sessions of the user begin with.
    """
    return SessionId(f"{quote(user, safe='')}/{quote(session_id, safe='')}")


def namespace_in(stream: SessionId) -> Namespace | None:
    """The user's namespace in the journal's name of a session; ``None``: it is no session of turns."""
    namespace, separator, session = stream.partition("/")
    return Namespace(unquote(namespace)) if separator and session else None


def session_of(stream: SessionId) -> SessionId:
    """The session id in the journal's name of a session."""
    return SessionId(unquote(stream.partition("/")[2]))
