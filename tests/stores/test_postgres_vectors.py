"""Vectors in PostgreSQL: recall of large namespaces, several processes, one statement."""

from collections.abc import Sequence
from typing import Literal

import anyio
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.stores.embeddings import HashingEmbedder
from assay.stores.hybrid import HybridRetriever
from assay.stores.postgres.connection import Connection, Row, packed
from assay.stores.postgres.database import Postgres
from assay.stores.postgres.hnsw import build
from assay.stores.postgres.records import PostgresRecords
from assay.stores.postgres.retriever import PostgresRetriever
from assay.stores.postgres.vectors import PostgresIndex
from assay.stores.protocols import FloatMatrix
from assay.stores.records import MemoryRecord, Namespace, RecordId

from .support import ANN, BEN, NOON, memory

pytestmark = pytest.mark.timeout(60)

EMBEDDER = HashingEmbedder(32)
WORDS = ["rex", "carrots", "tea", "paris", "rain", "piano", "cousin", "march", "train"]


def records(n: int, namespace: Namespace, seed: int = 0) -> list[MemoryRecord]:
    rng = np.random.default_rng(seed)
    return [
        memory(f"r{i}", " ".join([*rng.choice(WORDS, 3), f"number{i}"]), namespace=namespace)
        for i in range(n)
    ]


async def queries(n: int) -> list[FloatMatrix]:
    rng = np.random.default_rng(7)
    texts = [" ".join([*rng.choice(WORDS, 2), f"number{i}"]) for i in range(n)]
    return [await EMBEDDER.embed([text], kind="query") for text in texts]


async def recall(index: PostgresIndex, exact: PostgresIndex, limit: int) -> float:
    """Share of the exact hits that an index finds."""
    shares: list[float] = []
    for query in await queries(10):
        expected = {hit.record_id for hit in await exact.search(ANN, query, limit=limit)}
        got = {hit.record_id for hit in await index.search(ANN, query, limit=limit)}
        shares.append(len(got & expected) / len(expected))
    return float(np.mean(shares))


async def test_a_large_namespace_is_searched_by_its_own_index(clean_database: str) -> None:
    async with Postgres(clean_database) as database:
        await PostgresRecords(database).write(records(2_000, ANN))
        async with (
            PostgresIndex(database=database, embedder=EMBEDDER).opened() as exact,
            PostgresIndex(database=database, embedder=EMBEDDER, exact_below=500).opened() as own,
        ):
            # Exact until the index is there, which one of the searches has built.
            [first, *_] = await queries(1)
            while not own.is_approximate(ANN):
                assert await own.search(ANN, first, limit=5) == await exact.search(
                    ANN, first, limit=5
                )

            hits = await own.search(ANN, first, limit=250)
            shallow, deep = await recall(own, exact, 20), await recall(own, exact, 250)

        assert len(hits) == 250  # more than the index looks at without iterating
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert shallow >= 0.95
        assert deep >= 0.9


_FILTERED = """
SELECT v.version FROM vectors v WHERE v.namespace = $2
ORDER BY v.embedding::vector(32) <#> $1::vector(32) LIMIT 20
"""


async def test_one_index_over_all_namespaces_finds_too_few_unless_it_iterates(
    clean_database: str,
) -> None:
    async with Postgres(clean_database) as database:
        store = PostgresRecords(database)
        index = PostgresIndex(database=database, embedder=EMBEDDER)
        await store.write([*records(2_000, BEN), *records(60, ANN, seed=1)])
        await index.catch_up(ANN)
        await index.catch_up(BEN)
        [(number,)] = await database.fetch("SELECT number FROM namespaces WHERE name = $1", ANN)

        async def found(connection: Connection, iterating: str) -> float:
            await connection.execute(f"SET hnsw.iterative_scan = {iterating}")
            lengths = [
                len(await connection.fetch(_FILTERED, packed(query[0]), number))
                for query in await queries(10)
            ]
            return float(np.mean(lengths))

        async with database.apart() as connection:
            await connection.execute(
                "CREATE INDEX everyone ON vectors USING hnsw "
                "((embedding::vector(32)) vector_ip_ops)"
            )
            await connection.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
            await connection.execute("SET enable_sort = off")
            without = await found(connection, "off")
            iterating = await found(connection, "strict_order")
            await connection.execute("DROP INDEX everyone")

        assert without < 10
        assert iterating == 20


async def test_an_index_that_was_cut_short_is_built_again(clean_database: str) -> None:
    async with Postgres(clean_database) as database:
        await PostgresRecords(database).write(records(50, ANN))
        await PostgresIndex(database=database, embedder=EMBEDDER).catch_up(ANN)
        [(number,)] = await database.fetch("SELECT number FROM namespaces")
        async with database.apart() as connection:
            await build(connection, number, EMBEDDER.dimension)
            await connection.execute(
                "UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass($1)",
                f"vectors_of_{number}",
            )

        async with database.apart() as connection:
            await build(connection, number, EMBEDDER.dimension)

        rows = await database.fetch(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)",
            f"vectors_of_{number}",
        )
        assert [row[0] for row in rows] == [True]
        await database.fetch(f"DROP INDEX vectors_of_{number}")


class ErasingEmbedder(HashingEmbedder):
    """Another process erases a record just while its text is embedded."""

    def __init__(self, store: PostgresRecords) -> None:
        super().__init__(32)
        self._store = store

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["query", "passage"]
    ) -> FloatMatrix:
        if kind == "passage":
            await self._store.erase(ANN, [RecordId("r1")])
        return await super().embed(texts, kind=kind)


async def test_what_is_erased_while_it_is_embedded_gets_no_vector(clean_database: str) -> None:
    async with Postgres(clean_database) as database:
        store = PostgresRecords(database)
        index = PostgresIndex(database=database, embedder=ErasingEmbedder(store))
        await store.write(records(3, ANN))
        [query] = await queries(1)

        hits = await index.search(ANN, query, limit=9)

        assert sorted(hit.record_id for hit in hits) == ["r0", "r2"]
        assert len(await database.fetch("SELECT FROM vectors")) == 2


class CountingEmbedder(HashingEmbedder):
    """Counts the texts it embeds as passages."""

    passages = 0

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["query", "passage"]
    ) -> FloatMatrix:
        self.passages += len(texts) if kind == "passage" else 0
        return await super().embed(texts, kind=kind)


async def test_a_record_is_embedded_once_for_all_processes(clean_database: str) -> None:
    embedder = CountingEmbedder(32)
    [query] = await queries(1)
    async with Postgres(clean_database) as here, Postgres(clean_database) as there:
        await PostgresRecords(here).write(records(150, ANN))
        near, far = (PostgresIndex(database=d, embedder=embedder) for d in (here, there))

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(near.catch_up, ANN)
        hits = await far.search(ANN, query, limit=3)

    assert len(hits) == 3
    assert embedder.passages == 150


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
async def test_retrieval_in_one_statement_agrees_with_the_parts(
    clean_database: str, seed: int, limit: int
) -> None:
    rng = np.random.default_rng(seed)
    namespace = Namespace(f"seed {seed}")
    written = [
        memory(
            f"r{n}",
            " ".join([*rng.choice(WORDS, rng.integers(1, 6)), f"n{n}"]),
            namespace=namespace,
            valid_to=NOON if rng.random() < 0.6 else None,
            supersedes=f"r{n + 3}" if rng.random() < 0.1 else None,
        )
        for n in range(120)
    ]
    question = " ".join(rng.choice(WORDS, 3))
    async with Postgres(clean_database) as database:
        store = PostgresRecords(database)
        await store.write(written)
        index = PostgresIndex(database=database, embedder=EMBEDDER)
        in_one = PostgresRetriever(index=index, embedder=EMBEDDER)
        in_parts = HybridRetriever(records=store, keywords=store, vectors=index, embedder=EMBEDDER)

        got = await in_one.retrieve(namespace, question, limit=limit, at=NOON)

        assert got == await in_parts.retrieve(namespace, question, limit=limit, at=NOON)
        assert len(got) == min(limit, len(await store.current(namespace, at=NOON)))


class CountingPostgres(Postgres):
    """Counts statements that are transactions of their own."""

    statements = 0

    async def fetch(self, sql: str, *values: object) -> list[Row]:
        self.statements += 1
        return await super().fetch(sql, *values)


async def test_a_retrieval_costs_two_statements_and_one_more_after_a_write(
    clean_database: str,
) -> None:
    async with CountingPostgres(clean_database) as database:
        store = PostgresRecords(database)
        index = PostgresIndex(database=database, embedder=EMBEDDER)
        retriever = PostgresRetriever(index=index, embedder=EMBEDDER)
        await store.write(records(30, ANN))

        await retriever.retrieve(ANN, "tea in march", limit=8, at=NOON)
        after_a_write = database.statements
        await retriever.retrieve(ANN, "rain in paris", limit=8, at=NOON)

        assert after_a_write == 3
        assert database.statements - after_a_write == 2


async def test_a_large_namespace_is_searched_exactly_where_nothing_builds(
    clean_database: str,
) -> None:
    async with Postgres(clean_database) as database:
        await PostgresRecords(database).write(records(30, ANN))
        index = PostgresIndex(database=database, embedder=EMBEDDER, exact_below=10)
        [query] = await queries(1)

        hits = await index.search(ANN, query, limit=99)

        assert len(hits) == 30
        assert not index.is_approximate(ANN)
