"""A server that is killed again and again while journals are written."""

import os
import signal
import time
from contextlib import suppress

import anyio
import anyio.to_thread
import pytest
from tests.servers import PostgresServer, running_postgres

from assay.stores.postgres.database import Postgres
from assay.stores.postgres.journal import PostgresJournal
from assay.stores.postgres.leases import PostgresLeases
from assay.stores.protocols import Journal, JournalEntry
from assay.stores.records import SessionId

from .pg_waiting import told

WRITERS = 6


class _Writer:
    """Appends to one stream under its lease, and notes what was acknowledged."""

    def __init__(self, database: Postgres, name: str) -> None:
        self.session = SessionId(f"{name}/s")
        self.acknowledged: list[JournalEntry] = []
        self._database = database
        self._name = name

    async def run(self, done: anyio.Event) -> None:
        leases = PostgresLeases(self._database)
        lease = await leases.acquire(self.session, owner=self._name, seconds=600)
        assert lease is not None
        journal: Journal = leases.fenced(PostgresJournal(self._database), lease)
        while not done.is_set():
            number = len(self.acknowledged)
            entry = JournalEntry(number, f"{self._name} {number}".encode())
            await journal.append(self.session, [entry])
            self.acknowledged.append(entry)


async def _kill_while_they_write(
    server: PostgresServer, writers: list[_Writer], times: int
) -> None:
    for _ in range(times):
        before = [len(writer.acknowledged) for writer in writers]
        while any(len(w.acknowledged) < n + 5 for w, n in zip(writers, before, strict=True)):  # noqa: ASYNC110
            await anyio.sleep(0.01)
        await anyio.to_thread.run_sync(_kill_and_start, server)


def _kill_and_start(server: PostgresServer) -> None:
    os.kill(server.pid, signal.SIGKILL)
    # Its children are still leaving, and keep the data to themselves until then.
    for _ in range(50):
        with suppress(AssertionError):
            return server.start()
        time.sleep(0.1)
    raise AssertionError("the server did not start again")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.slow)])
async def test_no_acknowledged_entry_is_lost_or_doubled_when_postgres_is_killed(kills: int) -> None:
    with running_postgres() as server:
        async with Postgres(server.fresh_database(), patience=30) as database:
            writers = [_Writer(database, f"user{n}") for n in range(WRITERS)]
            done = anyio.Event()
            async with anyio.create_task_group() as group:
                for writer in writers:
                    group.start_soon(writer.run, done)
                await _kill_while_they_write(server, writers, kills)
                done.set()

            journal = PostgresJournal(database)
            kept = [await journal.read(writer.session) for writer in writers]
            news = await told(database, sum(map(len, kept)))

    assert kept == [writer.acknowledged for writer in writers]
    assert sorted((row.session, row.sequence) for row in news) == sorted(
        (writer.session, entry.sequence) for writer in writers for entry in writer.acknowledged
    )
