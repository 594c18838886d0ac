"""P10: users, a slow and failing model and a failing disk, in seeded virtual time."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import anyio
import numpy as np
import pytest

from assay.errors import ModelUnavailable, StoreError, TurnError
from assay.guards.methods import guard_named
from assay.guards.protocols import Completion, DeltaSink, Request
from assay.runtime.clock import StoppedClock
from assay.runtime.equipment import Equipment
from assay.runtime.events import AnyEvent, MemoriesWritten, MessageReceived, ReplyProduced, decode
from assay.runtime.facade import Runtime
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.reducer import rebuild
from assay.runtime.settings import Settings
from assay.runtime.streams import stream_of
from assay.stores.bank import memory_bank
from assay.stores.embeddings import HashingEmbedder
from assay.stores.protocols import Bank, Journal, JournalEntry
from assay.stores.records import Namespace, SessionId

from ..runtime.rooms import with_settings  # noqa: TID252
from .conftest import Promise
from .virtual_time import virtually

USERS = ("ann", "ben", "cleo")
SAID = ("My cat is called Miso.", "I live in Porto.", "What is my cat called?", "Where do I live?")


class SlowModel(ScriptedModel):
    """Takes its time, and fails now and then."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self._rng = rng

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        await anyio.sleep(float(self._rng.exponential(4.0)))
        if self._rng.random() < 0.1:
            raise ModelUnavailable("status 503")
        return await super().complete(request, sink=sink)


class SlowJournal:
    """Takes its time; a write fails now and then, before or after it was made."""

    def __init__(self, journal: Journal, rng: np.random.Generator) -> None:
        self._journal = journal
        self._rng = rng
        self.acknowledged: list[tuple[SessionId, JournalEntry]] = []

    async def append(self, session: SessionId, entries: Sequence[JournalEntry]) -> None:
        await anyio.sleep(float(self._rng.exponential(0.05)))
        fate = self._rng.random()
        if fate < 0.02:
            raise StoreError("no space left")
        await self._journal.append(session, entries)
        if fate < 0.04:
            raise StoreError("written, but not acknowledged")
        self.acknowledged += [(session, entry) for entry in entries]

    async def read(self, session: SessionId, *, after: int = -1) -> list[JournalEntry]:
        return await self._journal.read(session, after=after)

    async def sessions(self) -> list[SessionId]:
        return await self._journal.sessions()


class World(NamedTuple):
    """What is left of one simulation.

    Attributes:
        journal: With what it acknowledged.
        bank: The bank.
        events: Of every session.
        failed: Turns that failed, and said so.
        seconds: Virtual time it took.
    """

    journal: SlowJournal
    bank: Bank
    events: dict[str, list[AnyEvent]]
    failed: int
    seconds: float


async def simulate(seed: int) -> World:
    rng = np.random.default_rng(seed)
    clock = StoppedClock()
    bank = memory_bank(embedder=HashingEmbedder(64), clock=clock)
    journal = SlowJournal(bank.journal, rng)
    rt = Runtime(
        Equipment(
            bank=bank._replace(journal=journal),
            model=SlowModel(rng),
            guard=guard_named("panel"),
            settings=_settings(),
            clock=clock,
            seed=7,
            new_session=lambda: "s",
        )
    )
    failures: list[str] = []
    async with anyio.create_task_group() as users:
        for user in USERS:
            users.start_soon(_talk, rt, user, rng, clock, failures)
    events = {user: await _events(bank, user) for user in USERS}
    return World(journal, bank, events, len(failures), anyio.current_time())


def _settings() -> Settings:
    return with_settings(turn={"seconds": 40.0}, guard={"seconds": 15.0})


async def _talk(
    rt: Runtime, user: str, rng: np.random.Generator, clock: StoppedClock, failures: list[str]
) -> None:
    session = rt.session(user=user, session_id="s")
    for text in SAID:
        await anyio.sleep(float(rng.exponential(30.0)))
        clock.advance(1.0)
        with anyio.move_on_after(float(rng.choice([3.0, 100.0]))):
            try:
                await session.send(text)
            except (TurnError, StoreError) as error:
                failures.append(str(error))
    for _ in range(50):
        try:
            await session.resume()
        except (TurnError, StoreError):
            continue
        return


async def _events(bank: Bank, user: str) -> list[AnyEvent]:
    entries = await bank.journal.read(stream_of(Namespace(user), SessionId("s")))
    assert [entry.sequence for entry in entries] == list(range(len(entries)))
    return [decode(entry.payload) for entry in entries]


def broken(world: World) -> str:
    """Which law does not hold; nothing if all do."""
    for user, events in world.events.items():
        if rebuild(events).pending is not None:
            return f"{user}'s last turn never ended"
        said = [event.text for event in events if isinstance(event, MessageReceived)]
        if not _in_order(said):
            return f"{user} said {said}"
        written = [event for event in events if isinstance(event, MemoriesWritten)]
        if len({event.turn_id for event in written}) != len(written):
            return f"{user}'s turn was remembered twice"
    kept = {(stream, e) for stream, e in world.journal.acknowledged}
    found = {
        (stream_of(Namespace(user), SessionId("s")), number)
        for user, events in world.events.items()
        for number in range(len(events))
    }
    lost = {(stream, entry.sequence) for stream, entry in kept} - found
    return f"acknowledged and lost: {sorted(lost)}" if lost else ""


def _in_order(said: list[str]) -> bool:
    left: Iterator[str] = iter(SAID)
    return all(any(text == next_one for next_one in left) for text in said)


@pytest.mark.promise("P10", "a seeded simulation in virtual time breaks no law, and repeats")
def test_no_seed_breaks_a_law(promise: Promise) -> None:
    seeds = range(promise.times(12, 100))
    worlds = {seed: virtually(simulate(seed)) for seed in seeds}

    wrong = {f"seed {seed}": what for seed, world in worlds.items() if (what := broken(world))}
    again = virtually(simulate(seeds[-1]))

    assert wrong == {}
    assert again.events == worlds[seeds[-1]].events, f"seed {seeds[-1]} does not repeat"
    replies = sum(
        isinstance(e, ReplyProduced)
        for w in worlds.values()
        for es in w.events.values()
        for e in es
    )
    assert replies > len(worlds) * len(USERS), "hardly a turn was answered: nothing was tried"
    hours = sum(world.seconds for world in worlds.values()) / 3600
    promise.kept(
        f"{len(worlds)} seeds, {sum(len(w.journal.acknowledged) for w in worlds.values()):,} "
        f"events, {sum(w.failed for w in worlds.values())} failed turns told, {hours:.1f} h"
    )
