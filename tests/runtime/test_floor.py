"""Two processes over one bank: whoever holds the lease of a session takes its turns."""

from collections.abc import Sequence

import anyio
import pytest

from assay.errors import LeaseLost, StoreError, TurnFailed
from assay.guards.protocols import Completion, DeltaSink, Request
from assay.runtime.clock import StoppedClock
from assay.runtime.events import MessageReceived, ReplyProduced, TurnCancelled
from assay.runtime.local_turns import LocalTurns
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.requests import Send
from assay.runtime.session import Session
from assay.runtime.settings import Settings
from assay.runtime.streams import stream_of
from assay.stores.memory_leases import InMemoryLeases
from assay.stores.protocols import Bank, Journal, JournalEntry, Lease
from assay.stores.records import SessionId

from .crashing import MESSAGES
from .leavings import left_behind
from .rooms import SESSION, USER, fresh_bank, journal_of, over, with_settings

STREAM = stream_of(USER, SESSION)


class Waiting(ScriptedModel):
    """Answers once it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = anyio.Event()
        self.may_answer = anyio.Event()

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        self.is_asked.set()
        await self.may_answer.wait()
        return await super().complete(request, sink=sink)


class Unreachable(InMemoryLeases):
    """Leases that can be taken and not renewed, as when the way to the database is cut."""

    async def renew(self, lease: Lease, *, seconds: float) -> None:
        raise StoreError("cut")


class CountingJournal:
    """Counts the entries that were read."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.read_entries = 0

    async def append(self, session: SessionId, entries: Sequence[JournalEntry]) -> None:
        await self._journal.append(session, entries)

    async def read(self, session: SessionId, *, after: int = -1) -> list[JournalEntry]:
        found = await self._journal.read(session, after=after)
        self.read_entries += len(found)
        return found

    async def sessions(self) -> list[SessionId]:
        return await self._journal.sessions()


def shared_bank(clock: StoppedClock) -> Bank:
    return fresh_bank()._replace(leases=InMemoryLeases(clock))


def session_in(bank: Bank, owner: str, model: ScriptedModel | None = None) -> Session:
    return over(bank, owner=owner, model=model).session(user=USER, session_id=SESSION)


def impatient() -> Settings:
    return with_settings(turn={"lease_seconds": 0.05})


async def test_turns_of_two_processes_alternate_as_if_there_were_one() -> None:
    alone, bank = fresh_bank(), shared_bank(StoppedClock())
    one, other = session_in(bank, "one"), session_in(bank, "other")
    sole = session_in(alone, "sole")

    replies = [await one.send(MESSAGES[0]), await other.send(MESSAGES[1]), await one.send("And?")]
    expected = [await sole.send(text) for text in (*MESSAGES, "And?")]

    assert [reply.text for reply in replies] == [reply.text for reply in expected]
    assert await left_behind(bank) == await left_behind(alone)


async def test_messages_sent_to_both_at_once_are_taken_one_after_the_other() -> None:
    bank = shared_bank(StoppedClock())
    sessions = [session_in(bank, owner) for owner in ("one", "other", "third")]

    async with anyio.create_task_group() as group:
        for session in sessions:
            group.start_soon(session.send, f"I live in Porto, says {session.user}.")

    kinds = [type(event) for event in await journal_of(bank)]
    assert kinds == kinds[:5] * 3


async def test_only_what_others_wrote_is_read_again() -> None:
    bank = shared_bank(StoppedClock())
    journal = CountingJournal(bank.journal)
    watched = bank._replace(journal=journal)
    one = session_in(watched, "one")
    await one.send(MESSAGES[0])
    await one.send(MESSAGES[0])
    unshared = journal.read_entries
    await session_in(bank, "other").send(MESSAGES[1])

    await one.send("And?")

    assert (unshared, journal.read_entries) == (0, 5)


async def test_what_another_process_was_asked_is_awaited_here_too() -> None:
    bank = shared_bank(StoppedClock())
    one, other = session_in(bank, "one"), session_in(bank, "other")
    await one.send(MESSAGES[0])
    before = await other.last_reply()

    latest = await one.send(MESSAGES[1])

    assert before is not None
    assert await other.last_reply() == latest


async def test_a_turn_of_a_process_that_died_is_finished_once_its_lease_is_over() -> None:
    clock = StoppedClock()
    bank = shared_bank(clock)
    leases = bank.leases
    assert leases is not None
    await leases.acquire(STREAM, owner="dead", seconds=10)
    replied, waited = anyio.Event(), False

    async def send() -> None:
        await session_in(bank, "one").send(MESSAGES[0])
        replied.set()

    async with anyio.create_task_group() as group:
        group.start_soon(send)
        await anyio.wait_all_tasks_blocked()
        waited = not replied.is_set()
        clock.advance(11)

    assert waited
    assert replied.is_set()


async def test_a_turn_whose_lease_is_lost_is_cut_and_writes_nothing() -> None:
    """The second process takes over while the first one still believes that it has the session."""
    clock, slow = StoppedClock(), Waiting()
    bank = shared_bank(clock)
    first = over(bank, owner="one", model=slow, settings=impatient())
    whole = fresh_bank()
    await session_in(whole, "sole").send(MESSAGES[0], request="wish")

    async with anyio.create_task_group() as group:

        async def cut() -> None:
            with pytest.raises(LeaseLost):
                await first.session(user=USER, session_id=SESSION).send(MESSAGES[0], request="wish")

        group.start_soon(cut)
        await slow.is_asked.wait()
        clock.advance(1)
        await session_in(bank, "other").send(MESSAGES[0], request="wish")

    assert await left_behind(bank) == await left_behind(whole)


async def test_a_process_cut_off_from_the_leases_gives_its_turn_up_in_time() -> None:
    slow = Waiting()
    bank = fresh_bank()._replace(leases=Unreachable(StoppedClock()))
    cut_off = over(bank, owner="one", model=slow, settings=impatient())

    with anyio.fail_after(5), pytest.raises(LeaseLost, match=r"not heard of for 0\.05 s"):
        await cut_off.session(user=USER, session_id=SESSION).send(MESSAGES[0])

    assert not any(isinstance(event, TurnCancelled) for event in await journal_of(bank))


async def test_a_long_turn_keeps_its_lease() -> None:
    slow, renewed = Waiting(), anyio.Event()

    class Renewing(InMemoryLeases):
        async def renew(self, lease: Lease, *, seconds: float) -> None:
            await super().renew(lease, seconds=seconds)
            renewed.set()

    bank = fresh_bank()._replace(leases=Renewing(StoppedClock()))
    session = over(bank, owner="one", model=slow, settings=impatient()).session(
        user=USER, session_id=SESSION
    )

    async with anyio.create_task_group() as group:
        group.start_soon(session.send, MESSAGES[0])
        await renewed.wait()
        slow.may_answer.set()

    assert isinstance((await journal_of(bank))[3], ReplyProduced)


async def test_a_turn_that_is_let_go_stays_open_for_the_next() -> None:
    slow, bank = Waiting(), shared_bank(StoppedClock())
    turns = over(bank, owner="one", model=slow).local_turns(USER, SESSION)

    async with anyio.create_task_group() as group:
        group.start_soon(_take, turns)
        await slow.is_asked.wait()
        turns.let_go()
        group.cancel_scope.cancel()
    reply = await session_in(bank, "other").send(MESSAGES[0], request="wish")

    assert reply.turn_id == "s1/0"
    assert sum(isinstance(event, MessageReceived) for event in await journal_of(bank)) == 1


async def test_a_turn_that_is_cancelled_is_closed_under_the_lease() -> None:
    slow, bank = Waiting(), shared_bank(StoppedClock())
    turns = over(bank, owner="one", model=slow).local_turns(USER, SESSION)

    async with anyio.create_task_group() as group:
        group.start_soon(_take, turns)
        await slow.is_asked.wait()
        group.cancel_scope.cancel()

    assert isinstance((await journal_of(bank))[-1], TurnCancelled)


async def test_whoever_goes_away_while_it_is_taken_gives_it_back() -> None:
    class Slow(InMemoryLeases):
        async def acquire(self, session: SessionId, *, owner: str, seconds: float) -> Lease | None:
            lease = await super().acquire(session, owner=owner, seconds=seconds)
            if owner == "one":
                taken.set()
                await may_return.wait()
            return lease

    taken, may_return, leases = anyio.Event(), anyio.Event(), Slow(StoppedClock())
    bank = fresh_bank()._replace(leases=leases)

    async with anyio.create_task_group() as group:
        group.start_soon(session_in(bank, "one").send, MESSAGES[0])
        await taken.wait()
        group.cancel_scope.cancel()
        may_return.set()

    assert await leases.acquire(STREAM, owner="other", seconds=1) is not None


async def test_a_turn_that_fails_gives_its_lease_back() -> None:
    def script(request: Request) -> str:
        raise RuntimeError("no")

    bank = shared_bank(StoppedClock())
    with pytest.raises(TurnFailed):
        await session_in(bank, "one", ScriptedModel(script)).send(MESSAGES[0])

    assert bank.leases is not None
    assert await bank.leases.acquire(STREAM, owner="other", seconds=1) is not None


async def _take(turns: LocalTurns) -> None:
    await turns.take(Send(text=MESSAGES[0], request="wish"))
