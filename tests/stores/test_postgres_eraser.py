"""Erasing while others write: what was erased is gone, whoever was in the middle of something."""

import anyio
import pytest

from assay.errors import ErasedInput
from assay.stores.postgres.database import Postgres, in_transaction
from assay.stores.postgres.eraser import PostgresEraser, erase_all
from assay.stores.postgres.journal import PostgresJournal, append_entries
from assay.stores.postgres.outbox import PostgresOutbox
from assay.stores.protocols import Erased, Erasure, JournalEntry
from assay.stores.records import SessionId

from .pg_waiting import somebody_waits, told
from .support import ANN

S1, OTHER = SessionId("ann/s1"), SessionId("anna/s1")
FIRST = JournalEntry(0, b"first")
ALL_OF_ANN = Erasure(namespace=ANN, whole=True)


async def test_erasing_waits_for_an_append_and_takes_it_along(clean_database: str) -> None:
    erased: list[Erased] = []
    async with Postgres(clean_database) as database, database.apart() as connection:

        async def erase() -> None:
            erased.extend(await PostgresEraser(database).erase([ALL_OF_ANN]))

        async with anyio.create_task_group() as group, in_transaction(connection):
            await append_entries(connection, S1, [FIRST], None)
            group.start_soon(erase)
            await somebody_waits(database)

        journal = PostgresJournal(database)
        assert erased[0].entries == 1
        assert await journal.sessions() == []
        assert await PostgresOutbox(database).read(limit=9) == []
        with pytest.raises(ErasedInput, match="entry 0"):
            await journal.read(S1)


async def test_an_append_that_waits_for_erasing_is_refused(clean_database: str) -> None:
    async with Postgres(clean_database) as database, database.apart() as connection:
        journal = PostgresJournal(database)
        await journal.append(S1, [FIRST])

        async def append_late() -> None:
            with pytest.raises(ErasedInput, match="was erased"):
                await journal.append(S1, [JournalEntry(1, b"late")])

        async with anyio.create_task_group() as group, in_transaction(connection):
            await erase_all(connection, [ALL_OF_ANN])
            group.start_soon(append_late)
            await somebody_waits(database)


async def test_a_subject_whose_name_begins_alike_keeps_everything(clean_database: str) -> None:
    async with Postgres(clean_database) as database:
        journal = PostgresJournal(database)
        await journal.append(OTHER, [FIRST])
        await journal.append(S1, [FIRST])

        await PostgresEraser(database).erase([ALL_OF_ANN])

        assert await journal.read(OTHER) == [FIRST]
        assert [row.session for row in await told(database, 1)] == [OTHER]
