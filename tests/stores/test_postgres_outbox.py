"""The outbox: nothing committed is ever passed over, whatever the order of commits."""

import random
from contextlib import AsyncExitStack

import anyio
import pytest

from assay.errors import StoreError
from assay.stores.postgres import outbox
from assay.stores.postgres.connection import Connection, Transaction
from assay.stores.postgres.database import Postgres, in_transaction
from assay.stores.postgres.journal import PostgresJournal, append_entries
from assay.stores.postgres.outbox import PostgresOutbox
from assay.stores.protocols import JournalEntry, Wait
from assay.stores.records import SessionId

from .pg_waiting import somebody_waits, told

S1, S2 = SessionId("ann%2Fmy/s1"), SessionId("ben/s2")


class _NaiveReader:
    """Remembers the highest number it has seen, as a queue in a table is often read."""

    def __init__(self, database: Postgres) -> None:
        self._database = database
        self._watermark = 0
        self.seen: list[tuple[str, int]] = []

    async def step(self) -> None:
        rows = await self._database.fetch(
            "SELECT number, session, sequence FROM outbox WHERE number > $1 ORDER BY number",
            self._watermark,
        )
        for number, session, sequence in rows:
            self._watermark = number
            self.seen.append((session, sequence))


class _Reader:
    """Goes on from the cursor of the last row it got."""

    def __init__(self, database: Postgres, limit: int = 100) -> None:
        self._outbox = PostgresOutbox(database)
        self._limit = limit
        self._cursor = ""
        self.seen: list[tuple[str, int]] = []

    async def step(self) -> None:
        while rows := await self._outbox.read(after=self._cursor, limit=self._limit):
            self._cursor = rows[-1].cursor
            self.seen += [(row.session, row.sequence) for row in rows]

    async def read_on(self, count: int) -> None:
        """Until so many are seen: any transaction of the server may delay them."""
        with anyio.fail_after(10):
            while len(self.seen) < count:
                await self.step()


def entries(*numbers: int) -> list[JournalEntry]:
    return [JournalEntry(n, f"event {n}".encode()) for n in numbers]


async def test_what_was_appended_is_told_in_order(clean_database: str) -> None:
    async with Postgres(clean_database) as database:
        journal = PostgresJournal(database)
        await journal.append(S1, entries(0, 1))
        await journal.append(S2, entries(0))
        await journal.append(S1, entries(1, 2))

        rows = await told(database, 4)

    assert [(row.session, row.sequence) for row in rows] == [(S1, 0), (S1, 1), (S2, 0), (S1, 2)]
    assert [row.namespace for row in rows] == ["ann/my", "ann/my", "ben", "ann/my"]


async def test_a_refused_append_tells_nothing(clean_database: str) -> None:
    async with Postgres(clean_database) as database:
        with pytest.raises(ValueError, match="session"):
            await PostgresJournal(database).append(SessionId(""), entries(0))
        async with database.apart() as connection:
            with pytest.raises(RuntimeError, match="crash"):
                await _append_and_crash(connection)

        assert await PostgresOutbox(database).read(limit=9) == []


async def _append_and_crash(connection: Connection) -> None:
    async with in_transaction(connection):
        await append_entries(connection, S1, entries(0), None)
        raise RuntimeError("crash")


async def test_a_late_commit_is_lost_to_a_watermark_and_not_to_us(clean_database: str) -> None:
    async with Postgres(clean_database) as database, database.apart() as slow:
        naive, ours = _NaiveReader(database), _Reader(database)
        async with in_transaction(slow):
            await append_entries(slow, S1, entries(0), None)
            await PostgresJournal(database).append(S2, entries(0))
            await naive.step()
            await ours.step()
            # Somebody may still come before it: it is not told yet.
            assert ours.seen == []
        await naive.step()
        await ours.read_on(2)

    assert naive.seen == [(S2, 0)]
    assert ours.seen == [(S1, 0), (S2, 0)]


class _Writer:
    """Appends to a stream in transactions that stay open for a while; some are undone."""

    def __init__(self, connection: Connection, stream: SessionId, rng: random.Random) -> None:
        self.committed: list[tuple[str, int]] = []
        self._connection = connection
        self._stream = stream
        self._rng = rng
        self._transaction: Transaction | None = None
        self._pending: list[tuple[str, int]] = []

    async def step(self) -> None:
        """Begin and append, append more, or end."""
        if self._transaction is None or self._rng.random() < 0.4:
            await self._append()
        else:
            await self.end(keep=self._rng.random() < 0.75)

    async def end(self, *, keep: bool) -> None:
        """Commit what is open, or undo it."""
        if self._transaction is not None:
            await (self._transaction.commit() if keep else self._transaction.rollback())
            self.committed += self._pending if keep else []
        self._transaction, self._pending = None, []

    async def _append(self) -> None:
        if self._transaction is None:
            self._transaction = self._connection.transaction()
            await self._transaction.start()
        number = len(self.committed) + len(self._pending)
        await append_entries(self._connection, self._stream, entries(number), None)
        self._pending.append((self._stream, number))


async def test_random_interleavings_lose_nothing_and_keep_each_stream_in_order(
    clean_database: str,
) -> None:
    rng = random.Random(20)  # noqa: S311 - an order of steps, not a secret
    async with Postgres(clean_database) as database, AsyncExitStack() as stack:
        writers = [
            _Writer(await stack.enter_async_context(database.apart()), SessionId(f"user{n}/s"), rng)
            for n in range(4)
        ]
        naive, ours = _NaiveReader(database), _Reader(database, limit=3)
        for _ in range(400):
            step = rng.choice([writer.step for writer in writers] * 2 + [naive.step, ours.step])
            await step()
        for writer in writers:
            await writer.end(keep=True)
        await naive.step()
        committed = [entry for writer in writers for entry in writer.committed]
        await ours.read_on(len(committed))

    assert len(committed) > 50
    assert len(naive.seen) < len(committed)
    assert sorted(ours.seen) == sorted(committed)
    assert [[e for e in ours.seen if e in w.committed] for w in writers] == [
        w.committed for w in writers
    ]


async def test_two_who_append_to_one_stream_are_told_in_its_order(clean_database: str) -> None:
    async with Postgres(clean_database) as database, database.apart() as first:
        journal, ours = PostgresJournal(database), _Reader(database)

        async with anyio.create_task_group() as group, in_transaction(first):
            group.start_soon(journal.append, S2, entries(0))
            await append_entries(first, S1, entries(0), None)
            # Waits for the stream, and has no number of a transaction yet.
            group.start_soon(journal.append, S1, entries(0, 1))
            await somebody_waits(database)
            await append_entries(first, S1, entries(1), None)
        await journal.append(S1, entries(2))
        await ours.read_on(4)

    assert [entry for entry in ours.seen if entry[0] == S1] == [(S1, 0), (S1, 1), (S1, 2)]


async def test_rows_that_were_told_are_forgotten(clean_database: str) -> None:
    async with Postgres(clean_database) as database:
        box = PostgresOutbox(database)
        await PostgresJournal(database).append(S1, entries(0, 1, 2))
        first, second, third = await told(database, 3)

        assert await box.trim(second.cursor) == 2
        assert await box.read(limit=9) == [third]
        assert await box.read(after=first.cursor, limit=9) == [third]


async def test_a_bank_whose_outbox_nobody_reads_does_not_grow_without_end(
    clean_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "KEPT", 5)
    monkeypatch.setattr(outbox, "_TRIM_EVERY", 10)
    async with Postgres(clean_database) as database:
        for n in range(23):
            await PostgresJournal(database).append(S1, entries(n))

        [[fewest, left]] = await database.fetch("SELECT min(sequence), count(*) FROM outbox")

    assert 5 <= left < 15  # rows are numbered on from whatever test was before
    assert fewest == 23 - left


async def test_a_reader_wakes_up_when_something_is_appended(clean_database: str) -> None:
    async with Postgres(clean_database) as database, PostgresOutbox(database).listening() as wait:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(wait, 60.0)
                await PostgresJournal(database).append(S1, entries(0))


async def test_a_reader_stops_waiting_after_its_time(clean_database: str) -> None:
    async with Postgres(clean_database) as database, PostgresOutbox(database).listening() as wait:
        with anyio.fail_after(5):
            await wait(0.01)


async def test_a_reader_whose_server_was_away_is_told_to_listen_again(clean_database: str) -> None:
    async with Postgres(clean_database) as database, PostgresOutbox(database).listening() as wait:
        await database.fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        with anyio.fail_after(5), pytest.raises(StoreError, match="listen again"):
            await _wait_again_and_again(wait)


async def _wait_again_and_again(wait: Wait) -> None:
    while True:
        await wait(0.01)


@pytest.mark.parametrize("cursor", ["x", "1", "1.", "-1.2", "1.2.3"])
async def test_a_cursor_of_somebody_else_is_refused(clean_database: str, cursor: str) -> None:
    async with Postgres(clean_database) as database:
        with pytest.raises(ValueError, match="cursor must come from a row of the outbox"):
            await PostgresOutbox(database).read(after=cursor, limit=1)
