"""The loop of a turn: journal the event, reduce, publish, carry out the command; its event is next."""

from datetime import datetime
from typing import Literal

import msgspec

from assay.errors import StoreCorrupt, TurnError
from assay.runtime.bus import Bus
from assay.runtime.commands import AnyCommand, command_name
from assay.runtime.events import AnyEvent, GuardDecided, TurnCancelled, decode, encode
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
        self, journal: Journal, stream: SessionId, bus: Bus, observation: Observation
    ) -> None:
        self._journal = journal
        self._stream = stream
        self._bus = bus
        self._observation = observation
        self._state: State | None = None
        self._next = 0

    async def state(self) -> State:
        """The session's state, read from the journal the first time and after a failed write."""
        if self._state is None:
            state, self._next = State(), 0
            for entry in await self._journal.read(self._stream):
                state = reduce(state, _decoded(entry)).state
                self._next = entry.sequence + 1
            self._state = state
        return self._state

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
        state = await self.state()
        self._state = None  # whether a cancelled append was written only the journal knows
        entry = JournalEntry(self._next, encode(event))
        await self._journal.append(self._stream, [entry])
        step = reduce(state, event)
        self._state, self._next = step.state, entry.sequence + 1
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
