"""Records in PostgreSQL against the in-memory oracle, and many writers at once."""

from itertools import count

import anyio
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.stores.embeddings import HashingEmbedder
from assay.stores.memory import InMemoryStore
from assay.stores.postgres.bank import open_postgres_bank
from assay.stores.postgres.connection import Connection
from assay.stores.postgres.database import Postgres
from assay.stores.postgres.namespaces import hold_namespace
from assay.stores.postgres.records import PostgresRecords
from assay.stores.records import Consent, MemoryRecord, Namespace, RecordId

from ..servers import FreshDatabase  # noqa: TID252 - every room's servers
from .pg_waiting import somebody_waits
from .support import ANN, BEN, HOUR, NOON, NoonClock, memory
from .test_oracle import IDS, RECORDS, TEXTS, outcome

pytestmark = pytest.mark.timeout(60)

EXAMPLES = count()
"""Each example has a namespace of its own: the database is emptied once per test only."""

BATCHES = st.lists(
    st.tuples(st.lists(RECORDS, max_size=4), st.lists(IDS.map(RecordId), max_size=2)), max_size=6
)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(BATCHES, TEXTS)
async def test_records_in_postgres_agree_with_the_oracle(
    clean_database: str, batches: list[tuple[list[MemoryRecord], list[RecordId]]], question: str
) -> None:
    oracle, namespace = InMemoryStore(), Namespace(f"u{next(EXAMPLES)}")
    async with Postgres(clean_database) as database:
        store = PostgresRecords(database)
        # The words of others are in no statistic of this namespace.
        await store.write([memory("other", question, namespace=Namespace(f"{namespace}-other"))])
        for records, erased in batches:
            named = [msgspec.structs.replace(r, namespace=namespace) for r in records]
            assert await outcome(store.write(named)) == await outcome(oracle.write(named))
            assert await store.erase(namespace, erased) == await oracle.erase(namespace, erased)

        for after in (0, 3):
            changes = await store.changes(namespace, after=after)
            assert changes == await oracle.changes(namespace, after=after)
        for at in (NOON - HOUR, NOON, NOON + HOUR):
            assert await store.current(namespace, at=at) == await oracle.current(namespace, at=at)
        for limit in (1, 99):
            expected = await oracle.match(namespace, question, limit=limit)
            got = await store.match(namespace, question, limit=limit)
            assert [hit.record_id for hit in got] == [hit.record_id for hit in expected]
            assert [hit.score for hit in got] == pytest.approx([hit.score for hit in expected])


async def test_a_reader_that_follows_misses_no_write_of_many_writers(clean_database: str) -> None:
    seen: list[str] = []
    finished: list[int] = []

    async def write(store: PostgresRecords, writer: int) -> None:
        for n in range(10):
            await store.write([memory(f"w{writer}-{n}"), memory(f"b{writer}-{n}", namespace=BEN)])
        finished.append(writer)

    async def follow(store: PostgresRecords) -> None:
        version, is_last = 0, False
        while not is_last:
            is_last = len(finished) == 6
            records, _, version = await store.changes(ANN, after=version)
            seen.extend(record.id for record in records)

    async with Postgres(clean_database) as database, anyio.create_task_group() as group:
        store = PostgresRecords(database)
        group.start_soon(follow, store)
        for writer in range(6):
            group.start_soon(write, store, writer)

    assert sorted(seen) == sorted(f"w{writer}-{n}" for writer in range(6) for n in range(10))


async def test_a_cancelled_write_is_undone_and_its_connection_is_good(clean_database: str) -> None:
    async with (
        Postgres(clean_database, connections=1) as database,
        Postgres(clean_database) as other,
    ):
        store = PostgresRecords(database)
        await store.write([memory("r0")])

        async with anyio.create_task_group() as group:

            async def hold(connection: Connection) -> None:
                await hold_namespace(connection, ANN)
                group.start_soon(store.write, [memory("r1")])
                await somebody_waits(other)
                group.cancel_scope.cancel()

            await other.write(hold)

        assert (await store.changes(ANN, after=0)).version == 1
        await store.write([memory("r2")])
        assert [r.id for r in await store.current(ANN, at=NOON)] == ["r0", "r2"]


async def test_a_word_of_any_length_is_found(clean_database: str) -> None:
    async with Postgres(clean_database) as database:
        store = PostgresRecords(database)
        word = "ab" * 20_000
        await store.write([memory("long", word), memory("short", "ab")])

        assert [hit.record_id for hit in await store.match(ANN, word, limit=9)] == ["long"]


class FarEmbedder(HashingEmbedder):
    """An embedder at an endpoint, as its name says."""

    @property
    def name(self) -> str:
        return "openai:far@http://127.0.0.1"


async def test_a_record_for_no_external_model_is_refused_by_a_bank_with_one(
    fresh_database: FreshDatabase,
) -> None:
    private = msgspec.structs.replace(memory("r1"), consent=Consent(no_external_model=True))
    async with open_postgres_bank(
        fresh_database(), embedder=FarEmbedder(), clock=NoonClock()
    ) as bank:
        with pytest.raises(ValueError, match="may go to no external model"):
            await bank.store.write([private])
