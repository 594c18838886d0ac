"""Duplicates, other orders, restarts, cancellations and jumping clocks do no harm."""

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.stores.support import ANN, NOON, ids, memory, turn

from assay.errors import ConflictingWrite
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.wiring import open_runtime
from assay.stores.embeddings import HashingEmbedder
from assay.stores.protocols import Bank, JournalEntry
from assay.stores.records import RecordId

from .bank_content import (
    ROUNDS,
    SESSION,
    Content,
    add_round,
    cache_row,
    entries_of,
    filled,
    opened,
    read_all,
    records_of,
)
from .conftest import Promise

Event = Callable[[Bank], Awaitable[None]]


def events_of(k: int) -> list[Event]:
    """Everything of one round, each row an event of its own."""

    def record(one: int) -> Event:
        return lambda bank: bank.store.write([records_of(k)[one]])

    def said(one: int) -> Event:
        return lambda bank: bank.archive.append([turn(3 * k + one, f"hello {k} {one}")])

    def noted(one: int) -> Event:
        return lambda bank: bank.journal.append(SESSION, [entries_of(k)[one]])

    return [
        *(record(one) for one in range(8)),
        *(said(one) for one in range(3)),
        *(noted(one) for one in range(2)),
        lambda bank: bank.cache.put(ANN, [cache_row(k)]),
    ]


async def deliver(bank: Bank, event: Event) -> bool:
    """Whether it was taken; a journal refuses an event that comes before its turn."""
    try:
        await event(bank)
    except ConflictingWrite:
        return False
    return True


async def deliver_in_any_order(path: Path, rng: random.Random) -> int:
    """Every event one to four times, shuffled, over several openings; gives deliveries."""
    waiting = [
        event for k in range(ROUNDS) for event in events_of(k) for _ in range(rng.randint(1, 4))
    ]
    rng.shuffle(waiting)
    delivered = 0
    while waiting:
        async with opened(path) as bank:
            batch, waiting = waiting[:120], waiting[120:]
            delivered += len(batch)
            waiting += [event for event in batch if not await deliver(bank, event)]
    return delivered


def by_key(content: Content) -> list[list[str]]:
    """Without the order of writing, which is what was shuffled."""
    return [sorted(map(repr, rows)) for rows in content]


async def content(path: Path) -> Content:
    async with opened(path) as bank:
        return await read_all(bank)


@pytest.mark.promise("P7", "events delivered again, in any order, leave the same bank")
async def test_any_delivery_gives_the_same_bank(promise: Promise, tmp_path: Path) -> None:
    truth = by_key(await filled(tmp_path / "once"))
    orders = promise.times(1, 10)

    delivered = [
        await deliver_in_any_order(tmp_path / str(seed), random.Random(seed))  # noqa: S311 - an order
        for seed in range(orders)
    ]

    banks = [by_key(await content(tmp_path / str(seed))) for seed in range(orders)]
    assert banks == [truth] * orders
    promise.kept(f"{sum(delivered):,} deliveries in {orders} orders with restarts: the same bank")


CONFLICTS: list[Event] = [
    lambda bank: bank.store.write([memory("r0-1", "Rex hates carrots")]),
    lambda bank: bank.archive.append([turn(0, "something else")]),
    lambda bank: bank.journal.append(SESSION, [JournalEntry(0, b"something else")]),
]


@pytest.mark.promise("P7", "events delivered again, in any order, leave the same bank")
async def test_other_content_under_a_known_key_is_refused(promise: Promise, tmp_path: Path) -> None:
    async with opened(tmp_path) as bank:
        await add_round(bank, 0)
        before = await read_all(bank)

        taken = [await deliver(bank, conflict) for conflict in CONFLICTS]

        assert taken == [False] * len(CONFLICTS)
        assert await read_all(bank) == before
    promise.kept(f"{len(CONFLICTS)} of {len(CONFLICTS)} conflicting contents refused")


# ---- cancellation


class CancelledAt:
    """Awaits a coroutine and cancels the scope at its n-th await that waits for something."""

    def __init__(self, work: Coroutine[Any, Any, object], n: int, scope: anyio.CancelScope) -> None:
        self._work = work
        self._left = n
        self._scope = scope

    def __await__(self) -> Generator[Any, Any, None]:
        resume: Callable[[Any], Any] = self._work.send
        value: Any = None
        while True:
            try:
                waited_for = resume(value)
            except StopIteration:
                return
            self._left -= 1
            if self._left == 0:
                self._scope.cancel()
            try:
                value = yield waited_for
                resume = self._work.send
            except BaseException as error:  # noqa: BLE001 - handed on to the work
                value = error
                resume = self._work.throw


async def cancelled_at(n: int, work: Coroutine[Any, Any, object]) -> bool:
    """Whether it had an n-th await to be cancelled at."""
    with anyio.CancelScope() as scope:
        await CancelledAt(work, n, scope)
    return scope.cancel_called


def handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


STORE_CALLS: dict[str, Callable[[Bank], Coroutine[Any, Any, object]]] = {
    "write": lambda bank: bank.store.write(records_of(1)),
    "append": lambda bank: bank.archive.append([turn(3 + i, "hello again") for i in range(3)]),
    "note": lambda bank: bank.journal.append(SESSION, entries_of(1)),
    "put": lambda bank: bank.cache.put(ANN, [cache_row(1)]),
    "erase": lambda bank: bank.store.erase(ANN, [RecordId("r0-1"), RecordId("r0-2")]),
    "changes": lambda bank: bank.store.changes(ANN, after=0),
    "retrieve": lambda bank: bank.retriever.retrieve(ANN, "Rex", limit=3, at=NOON),
}


async def cancel_everywhere(
    folder: Path, call: Callable[[Bank], Coroutine[Any, Any, object]]
) -> int:
    """Cancel a call at each of its awaits, a fresh bank each time; gives how many there were."""
    async with opened(folder / "whole") as bank:
        await add_round(bank, 0)
        before = await read_all(bank)
        await call(bank)
        whole = [before, await read_all(bank)]
    tasks, open_handles = len(asyncio.all_tasks()), handles()
    n = 1
    while True:
        async with opened(folder / str(n)) as bank:
            await add_round(bank, 0)
            struck = await cancelled_at(n, call(bank))
            assert await read_all(bank) in whole
        assert (len(asyncio.all_tasks()), handles()) == (tasks, open_handles)
        if not struck:
            return n - 1
        n += 1


@pytest.mark.timeout(120)
@pytest.mark.promise("P6", "a cancelled call leaves no task, handle, thread or half row")
async def test_store_calls_may_be_cancelled_at_each_await(promise: Promise, tmp_path: Path) -> None:
    names = list(STORE_CALLS) if promise.long else ["write", "retrieve"]

    points = [await cancel_everywhere(tmp_path / name, STORE_CALLS[name]) for name in names]

    assert min(points) >= 1
    assert threading.active_count() < 12
    promise.kept(f"{len(names)} store calls cancelled at {sum(points)} awaits: nothing left")


async def speakers_after(path: Path, n: int) -> tuple[list[str], bool]:
    """Who is in the archive after a turn cancelled at its n-th await, and one more turn."""
    async with open_runtime(
        model=ScriptedModel(), embedder=HashingEmbedder(), guard="panel", bank=path
    ) as runtime:
        session = runtime.session(user="ann")
        await session.send("My cat is called Miso.")
        struck = await cancelled_at(n, session.send("My dog is called Rex."))
        reply = await session.send("What is my cat called?")
        assert "Miso" in reply.text
        return [one.speaker for one in await runtime.bank.archive.all(ANN)], struck


@pytest.mark.timeout(120)
@pytest.mark.promise("P6", "a cancelled call leaves no task, handle, thread or half row")
async def test_a_turn_may_be_cancelled_at_each_await(promise: Promise, tmp_path: Path) -> None:
    tasks, open_handles, points = len(asyncio.all_tasks()), handles(), 0
    struck = True
    while struck:
        n = 1 + points * promise.times(9, 1)
        said, struck = await speakers_after(tmp_path / str(n), n)
        assert said == ["user", "assistant"] * (len(said) // 2)
        assert (len(asyncio.all_tasks()), handles()) == (tasks, open_handles)
        points += struck

    assert points > 1
    promise.kept(
        f"a guarded turn on SQLite cancelled at {points} awaits: nothing left, no half turn"
    )


# ---- time


JUMPS = [
    timedelta(hours=1),
    timedelta(hours=-1),
    timedelta(days=3653),
    timedelta(days=-3653),
]


@pytest.mark.promise("P18", "a clock that jumps loses, deletes and reorders nothing")
async def test_no_jump_of_the_clock_deletes_or_reorders(promise: Promise, tmp_path: Path) -> None:
    async with opened(tmp_path) as bank:
        now: datetime = NOON
        for n, jump in enumerate(JUMPS * 3):
            now += jump
            await bank.store.write(
                [memory(f"r{n}", f"number {n}", at=now, valid_to=NOON + timedelta(minutes=30))]
            )
            await bank.archive.append([turn(n, f"number {n}", at=now)])
        recent = await bank.archive.recent(ANN, turn(0).session, limit=99)
        written = (await bank.store.changes(ANN, after=0)).records

        assert [one.position for one in recent] == list(range(12))
        assert ids(written) == [f"r{n}" for n in range(12)]
        assert await bank.store.current(ANN, at=NOON + timedelta(days=3653)) == []
        # Back before its end: an expired record was kept, not deleted.
        assert ids(await bank.store.current(ANN, at=NOON)) == ids(written)
    promise.kept(f"{len(JUMPS) * 3} jumps of 1 h and 10 y, both ways: order kept, 0 deleted early")
