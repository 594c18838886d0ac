"""Turns that run in this process."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import Literal, assert_never

import anyio

from assay.errors import ErasedInput, StoreError, TurnError, TurnFailed, TurnTimeout
from assay.guards.protocols import DeltaSink, ToolCall
from assay.runtime.bus import Bus, EventHandler, Observer, SessionBus
from assay.runtime.commands import Complete, ToolResult
from assay.runtime.engine import Engine
from assay.runtime.equipment import Equipment
from assay.runtime.erasing import erase_turn
from assay.runtime.events import (
    AnyEvent,
    CommandFailed,
    MessageReceived,
    ToolResultsReceived,
    TurnCancelled,
)
from assay.runtime.floor import Floor, Held
from assay.runtime.handlers import Answerer, Handlers
from assay.runtime.observe import Observation
from assay.runtime.reducer import State
from assay.runtime.reply import Reply, reply_of
from assay.runtime.requests import AnswerTools, Resume, Send, TurnRequest
from assay.runtime.streams import stream_of
from assay.stores.records import Namespace, SessionId, TurnId

_CLEAN_UP_SECONDS = 5.0


class LocalTurns:
    """The turns of one session, one after the other, also beside other processes over the bank.

    Args:
        equipment: What turns are made with.
        user: Whose session.
        session_id: Which one.
    """

    def __init__(self, equipment: Equipment, user: Namespace, session_id: SessionId) -> None:
        self._equipment = equipment
        self._user = user
        self._id = session_id
        self._handlers = Handlers(equipment, user, session_id)
        bank, stream = equipment.bank, stream_of(user, session_id)
        self._bus = _bus(equipment, self._handlers, stream)
        self._observation = Observation(equipment.clock, session=session_id)
        self._engine = Engine(bank.journal, stream, self._bus, self._observation)
        self._floor = Floor(
            bank.journal,
            bank.leases,
            stream,
            owner=equipment.owner,
            seconds=equipment.settings.turn.lease_seconds,
        )
        self._lock = anyio.Lock()
        self._held: Held | None = None

    async def take(
        self,
        request: TurnRequest,
        *,
        sink: DeltaSink | None = None,
        answerer: Answerer | None = None,
        watch: EventHandler | None = None,
    ) -> Reply | None:
        """Do what is asked for; ``None`` only where there was nothing to resume.

        Args:
            request: What is asked for.
            sink: Takes the pieces of the reply.
            answerer: Replies in the place of the runtime's model.
            watch: Takes the events of this turn and of no other, as a subscriber.

        Raises:
            ValueError: If tool results are not those of the calls awaited.
            TurnError: If no reply came of it.
            LeaseLost: If another process took the session over.
            StoreError: If the journal cannot be written.
        """
        async with self._having_the_floor():
            if isinstance(request, Resume):
                return await self._resumed(sink, watch)
            begun = await self._engine.begun_by(request.request)
            if begun is not None and begun.pending is None:
                return _told_again(_outcome(begun), sink)
            if begun is None:
                await self._finish_interrupted()
            event = await self._event(request) if begun is None else None
            with self._handlers.asked_with(answerer, request.conversation), self._watched(watch):
                return await self._turn(event, sink)

    async def state(self) -> State:
        """How the session stands when no turn of this process runs."""
        async with self._lock:
            return await self._engine.state(fresh=self._floor.is_shared)

    def subscribe(self, take: EventHandler, *kinds: type[AnyEvent]) -> AbstractContextManager[None]:
        """As the bus does."""
        return self._bus.subscribe(take, *kinds)

    def observe(self, *kinds: type[AnyEvent], capacity: int) -> AbstractContextManager[Observer]:
        """As the bus does."""
        return self._bus.observe(*kinds, capacity=capacity)

    def let_go(self) -> None:
        """Leave the turn under way, if there is one, to another process: cancelled, it stays open."""
        if self._held is not None:
            self._held.let_go()

    @asynccontextmanager
    async def _having_the_floor(self) -> AsyncGenerator[None]:
        async with self._lock, self._floor.held() as held:
            self._engine.go_on_over(held, revision=held.revision)
            self._held = held
            try:
                yield
            finally:
                self._held = None

    def _watched(self, watch: EventHandler | None) -> AbstractContextManager[None]:
        return nullcontext() if watch is None else self._bus.subscribe(watch)

    async def _resumed(self, sink: DeltaSink | None, watch: EventHandler | None) -> Reply | None:
        if (await self._engine.state()).pending is None:
            return None
        with self._watched(watch):
            return await self._turn(None, sink)

    async def _finish_interrupted(self) -> None:
        """What an interrupted turn fails with is in the journal; the new message goes on."""
        if (await self._engine.state()).pending is not None:
            try:
                await self._turn(None, None)
            except TurnError:
                return

    async def _event(self, request: Send | AnswerTools) -> MessageReceived | ToolResultsReceived:
        state, at = await self._engine.state(), self._equipment.clock.now()
        match request:
            case Send():
                return MessageReceived(
                    turn_id=TurnId(f"{self._id}/{state.messages}"),
                    number=state.messages,
                    text=request.text,
                    tools=request.tools,
                    request=request.request,
                    at=at,
                )
            case AnswerTools():
                last, calls = _awaited(state)
                return ToolResultsReceived(
                    turn_id=last.turn_id,
                    exchange=last.exchange + 1,
                    results=_matched(calls, request.results),
                    request=request.request,
                    at=at,
                )
            case _:
                assert_never(request)

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
            except ErasedInput:
                await self._erase(turn_id)
                raise
            except anyio.get_cancelled_exc_class():
                await self._give_up(turn_id, "cancelled")
                raise
            await self._give_up(turn_id, "deadline")
            raise TurnTimeout(f"no reply within {seconds:g} s (turn.seconds); the turn is over")

    async def _run(
        self, event: MessageReceived | ToolResultsReceived | None, sink: DeltaSink | None
    ) -> State:
        self._handlers.sink = sink
        async with self._bus.running():
            return await (self._engine.resume() if event is None else self._engine.run(event))

    async def _give_up(self, turn_id: TurnId, reason: Literal["cancelled", "deadline"]) -> None:
        """Close the turn in the journal, so that it is not resumed; if that fails, it is resumed."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(_CLEAN_UP_SECONDS):
            try:
                await self._engine.give_up(reason, at=self._equipment.clock.now())
            except ErasedInput:
                await self._erase(turn_id)
            except StoreError as error:
                self._observation.not_closed(error)

    async def _erase(self, turn_id: TurnId) -> None:
        """The user was erased meanwhile: what the turn has written since goes, too."""
        with anyio.CancelScope(shield=True):
            await erase_turn(self._equipment.bank, self._user, turn_id)


def _bus(equipment: Equipment, handlers: Handlers, stream: SessionId) -> SessionBus:
    if equipment.make_bus is None:
        return Bus(handlers, now=equipment.clock.now)
    return equipment.make_bus(handlers, stream=stream)


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


def _told_again(reply: Reply, sink: DeltaSink | None) -> Reply:
    if sink is not None and reply.text:
        sink(reply.text)
    return reply


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
    given = {result.call.id: result.output for result in results}
    awaited = [call.id for call in calls]
    if len(given) != len(results) or set(given) != set(awaited):
        raise ValueError(f"expected one result for each of {awaited!r}, got {list(given)!r}")
    return tuple(ToolResult(call=call, output=given[call.id]) for call in calls)
