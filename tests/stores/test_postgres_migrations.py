"""Two releases on one bank: hosts are upgraded one by one while all of them go on."""

import anyio
import pytest

from assay.errors import NewerFormat, StoreError
from assay.stores.postgres.database import Postgres
from assay.stores.postgres.journal import PostgresJournal
from assay.stores.postgres.records import PostgresRecords
from assay.stores.postgres.schema import FORMAT, MIGRATIONS, Migration
from assay.stores.protocols import JournalEntry
from assay.stores.records import SessionId

from .support import ANN, NOON, FreshDatabase, ids, memory

S1, S2 = SessionId("ann/old"), SessionId("ann/new")

# What a next release may do: first add, later remove what only the release before has read.
EXPANDED = (
    *MIGRATIONS,
    Migration(
        "ALTER TABLE journal ADD COLUMN written timestamptz DEFAULT now();"
        "ALTER TABLE records ADD COLUMN words integer NOT NULL DEFAULT 0;"
        "CREATE TABLE additions (id text PRIMARY KEY)",
        readable_from=FORMAT,
    ),
)
CONTRACTED = (
    *EXPANDED,
    Migration("ALTER TABLE journal DROP COLUMN written", readable_from=FORMAT + 1),
)


async def _append(journal: PostgresJournal, session: SessionId, count: int) -> None:
    for n in range(count):
        await journal.append(session, [JournalEntry(n, f"event {n}".encode())])


async def test_two_releases_read_and_write_side_by_side(fresh_database: FreshDatabase) -> None:
    url = fresh_database()
    async with Postgres(url) as old:
        journal, records = PostgresJournal(old), PostgresRecords(old)
        await records.write([memory("r1")])
        async with anyio.create_task_group() as group:
            # The release of before goes on writing while the next one changes the tables.
            group.start_soon(_append, journal, S1, 40)
            async with Postgres(url, migrations=EXPANDED) as new:
                await _append(PostgresJournal(new), S2, 5)
                await PostgresRecords(new).write([memory("r2")])
                await new.fetch("INSERT INTO additions VALUES ('of the new release')")
        await records.write([memory("r3")])

        assert ids(await records.current(ANN, at=NOON)) == ["r1", "r2", "r3"]
        assert [len(await journal.read(session)) for session in (S1, S2)] == [40, 5]


async def test_the_release_of_before_opens_a_bank_that_was_expanded(
    fresh_database: FreshDatabase,
) -> None:
    url = fresh_database()
    async with Postgres(url, migrations=EXPANDED):
        pass

    async with Postgres(url) as old:
        await _append(PostgresJournal(old), S1, 2)
    async with Postgres(url, migrations=EXPANDED) as new:
        rows = await new.fetch("SELECT version, readable_from FROM format")
        entries = await PostgresJournal(new).read(S1)

    assert [tuple(row) for row in rows] == [(FORMAT + 1, FORMAT)]
    assert [entry.sequence for entry in entries] == [0, 1]


async def test_a_contracted_bank_refuses_the_release_of_before(
    fresh_database: FreshDatabase,
) -> None:
    url = fresh_database()
    async with Postgres(url) as old:
        await _append(PostgresJournal(old), S1, 1)
    async with Postgres(url, migrations=CONTRACTED):
        pass

    with pytest.raises(NewerFormat, match=f"readable from format {FORMAT + 1}.*upgrade Assay"):
        async with Postgres(url):
            pass

    async with Postgres(url, migrations=EXPANDED) as between:
        assert [entry.sequence for entry in await PostgresJournal(between).read(S1)] == [0]


async def test_releases_that_migrate_at_once_take_each_step_once(
    fresh_database: FreshDatabase,
) -> None:
    url = fresh_database()

    async def upgrade() -> None:
        async with Postgres(url, migrations=EXPANDED):
            pass

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(upgrade)

    async with Postgres(url, migrations=EXPANDED) as new:
        assert await new.fetch("SELECT 1 FROM additions") == []


async def test_a_step_that_fails_changes_nothing(fresh_database: FreshDatabase) -> None:
    url = fresh_database()
    broken = (*EXPANDED, Migration("ALTER TABLE nothing ADD COLUMN x text", readable_from=FORMAT))
    async with Postgres(url) as old:
        await _append(PostgresJournal(old), S1, 1)

    with pytest.raises(StoreError, match="nothing"):
        async with Postgres(url, migrations=broken):
            pass

    async with Postgres(url) as old:
        [[version]] = await old.fetch("SELECT version FROM format")
        assert version == FORMAT
