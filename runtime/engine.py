"""The loop of a turn: journal the event, reduce, publish, carry out the command; its event is next."""

from datetime import datetime
from typing import Literal

import msgspec

from assay.errors import StoreCorrupt, TurnError
from assay.runtime.bus import SessionBus
from assay.runtime.commands import AnyCommand, command_name
from assay.runtime.events import (
    AnyEvent,
    GuardDecided,
    MessageReceived,
    ToolResultsReceived,
    TurnCancelled,
    decode,
    encode,
)
from assay.runtime.observe import Observation
from assay.runtime.reducer import State, reduce
from assay.stores.protocols import Journal, JournalEntry
from assay.stores.records import SessionId


class Engine:
    """Runs the turns of one session, one at a time.

    Args:
        journal: Where events are durable before anything follows from them.
        stream: Name of the session in the journal.
        bus: Carries commands out and shows events; runs while the engine does.
        observation: Spans and logs.
    """

    def __init__(
        self, journal: Journal, stream: SessionId, bus: SessionBus, observation: Observation
    ) -> None:
        self._journal = journal
        self._stream = stream
        self._bus = bus
        self._observation = observation
        self._state = State()
        self._next = 0
        self._revision = 0
        self._is_read = False
        self._requests: set[str] = set()

    def go_on_over(self, journal: Journal, *, revision: int) -> None:
        """Take a journal for what comes next; another revision means that others wrote meanwhile."""
        self._journal = journal
        if revision != self._revision:
            self._revision = revision
            self._is_read = False

    async def state(self, *, fresh: bool = False) -> State:
        """The session's state, read from the journal the first time and after a failed write.

        Args:
            fresh: Whether to look for what other processes have written since, too.
        """
        if fresh or not self._is_read:
            for entry in await self._journal.read(self._stream, after=self._next - 1):
                self._take_in(_decoded(entry), entry.sequence)
            self._is_read = True
        return self._state

    async def begun_by(self, request: str) -> State | None:
        """The session as it stood when what a request began was over, or as far as that has come.

        Args:
            request: Its name.

        Returns:
            ``None`` if it began nothing, or has no name.
        """
        now = await self.state()
        if request not in self._requests:
            return None
        state, is_begun = State(), False
        for entry in await self._journal.read(self._stream):
            event = _decoded(entry)
            if isinstance(event, MessageReceived | ToolResultsReceived):
                if is_begun:
                    return state
                is_begun = event.request == request
            state = reduce(state, event).state
        return now

    async def run(self, event: AnyEvent) -> State:
        """Take an event from outside in and go on until nothing is asked for.

        Raises:
            StoreError: If the journal cannot be written; the next call reads it again.
            TurnError: If what watches the session failed after the turn had ended.
        """
        return await self._go_on(await self.take(event))

    async def resume(self) -> State:
        """Carry out what a journal left open asks for, if anything."""
        return await self._go_on((await self.state()).pending)

    async def give_up(self, reason: Literal["cancelled", "deadline"], *, at: datetime) -> None:
        """Close the open turn, if it is still open; observers are not told, the journal is."""
        pending = (await self.state()).pending
        if pending is not None:
            event = TurnCancelled(
                turn_id=pending.turn_id, exchange=pending.exchange, at=at, reason=reason
            )
            await self._write(event)

    async def take(self, event: AnyEvent) -> AnyCommand | None:
        """Journal one event, then reduce and publish it; gives the command it asks for."""
        command = await self._write(event)
        await self._bus.publish(event)
        return command

    async def _write(self, event: AnyEvent) -> AnyCommand | None:
        await self.state()
        self._is_read = False  # whether a cancelled append was written only the journal knows
        entry = JournalEntry(self._next, encode(event))
        await self._journal.append(self._stream, [entry])
        self._is_read = True
        return self._take_in(event, entry.sequence)

    def _take_in(self, event: AnyEvent, sequence: int) -> AnyCommand | None:
        if isinstance(event, MessageReceived | ToolResultsReceived) and event.request:
            self._requests.add(event.request)
        step = reduce(self._state, event)
        self._state, self._next = step.state, sequence + 1
        return step.command

    async def _go_on(self, command: AnyCommand | None) -> State:
        while command is not None:
            command = await self.take(await self._carried_out(command))
        state = await self.state()
        failed = await self._bus.settled()
        if failed is not None and state.failure is None:
            raise TurnError(f"an observer failed after the turn: {failed.kind}: {failed.message}")
        return state

    async def _carried_out(self, command: AnyCommand) -> AnyEvent:
        name = command_name(command)
        with self._observation.command(name, command.turn_id):
            event = await self._bus.request(command)
            if isinstance(event, GuardDecided):
                self._observation.decision(event.decision)
        return event


def _decoded(entry: JournalEntry) -> AnyEvent:
    try:
        return decode(entry.payload)
    except msgspec.DecodeError as error:
        raise StoreCorrupt(
            f"journal entry {entry.sequence} is no event of this version: {error}"
        ) from error
