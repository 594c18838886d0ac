"""What a check of a bank in PostgreSQL sees."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from assay.errors import StoreError
from assay.stores.embeddings import HashingEmbedder
from assay.stores.postgres.bank import open_postgres_bank
from assay.stores.postgres.database import Postgres
from assay.stores.postgres.inspection import inspect_database
from assay.stores.protocols import CacheRow, JournalEntry
from assay.stores.records import RecordId, SessionId

from .support import ANN, BEN, NOON, FreshDatabase, NoonClock, memory, turn

S1 = SessionId("ann/s1")


@asynccontextmanager
async def filled(url: str) -> AsyncGenerator[Postgres]:
    async with open_postgres_bank(url, embedder=HashingEmbedder(8), clock=NoonClock()) as bank:
        await bank.store.write([memory("r1"), memory("r2"), memory("b1", namespace=BEN)])
        await bank.store.erase(ANN, [RecordId("r2")])
        await bank.archive.append([turn(0), turn(1)])
        await bank.journal.append(S1, [JournalEntry(n, b"event") for n in range(3)])
        await bank.cache.put(ANN, [CacheRow("k1", b"a", b"q", (RecordId("r1"),))])
        await bank.retriever.retrieve(ANN, "carrots", limit=1, at=NOON)
    async with Postgres(url) as database:
        yield database


async def test_a_bank_as_written_is_counted(clean_database: str) -> None:
    async with filled(clean_database):
        found = await inspect_database(clean_database)

    assert (found.ok, found.damage, found.format, found.integrity) == (True, (), 1, "ok")
    assert "correct" not in found.path
    ann, ben = found.namespaces[ANN], found.namespaces[BEN]
    assert (ann.records, ann.erased, ann.turns, ann.cache, ann.index) == (1, 1, 2, 1, "current")
    assert (ben.records, ben.erased, ben.turns, ben.cache, ben.index) == (1, 0, 0, 0, "absent")
    assert found.journal == 3
    assert {file.name for file in found.files} >= {"records", "journal", "outbox"}


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE records SET body = substr(body, 2) WHERE id = 'r1'", r"record \d+\.1: a row"),
        ("UPDATE turns SET body = 'x' WHERE id = 's1-1'", r"archived turn \d+\.0: a row"),
        ("UPDATE journal SET payload = '\\x00' WHERE sequence = 1", r"journal \d+\.1: entry 1"),
        ("DELETE FROM subject_keys", r"journal \d+\.0: the key it is encrypted with is not there"),
        ("DELETE FROM journal WHERE sequence = 1", "1 journal entries after a gap"),
        ("DELETE FROM turns WHERE id = 's1-1'", "namespaces that count their turns wrongly"),
        ("DELETE FROM turns WHERE id = 's1-1'", "words of archived turns that are not there"),
        ("UPDATE namespaces SET records = 7", "2 namespaces that count their records wrongly"),
    ],
)
async def test_what_is_not_as_written_is_found(clean_database: str, damage: str, said: str) -> None:
    async with filled(clean_database) as database:
        await database.fetch(damage)

        found = await inspect_database(clean_database)

    assert not found.ok
    assert any(re.search(said, finding) for finding in found.damage), found.damage


async def test_a_check_makes_no_bank(fresh_database: FreshDatabase) -> None:
    url = fresh_database()
    for _ in range(2):
        with pytest.raises(StoreError, match="holds no bank"):
            await inspect_database(url)
