"""What every ``VectorIndex`` promises, and FAISS against the numpy oracle."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from assay.stores.embeddings import HashingEmbedder
from assay.stores.exact import ExactIndex
from assay.stores.faiss import FaissIndex
from assay.stores.memory import InMemoryStore
from assay.stores.postgres.database import Postgres
from assay.stores.postgres.records import PostgresRecords
from assay.stores.postgres.vectors import PostgresIndex
from assay.stores.protocols import MemoryStore, VectorIndex
from assay.stores.records import RecordId

from .support import ANN, BEN, memory

Indexed: TypeAlias = tuple[MemoryStore, VectorIndex]
"""A store and the index that follows it."""

OpenIndex: TypeAlias = Callable[[], AbstractAsyncContextManager[Indexed]]

EMBEDDER = HashingEmbedder(32)
WORDS = ["rex", "carrots", "tea", "paris", "rain", "piano", "cousin", "march", "blue", "train"]


@asynccontextmanager
async def numpy_index() -> AsyncGenerator[Indexed]:
    store = InMemoryStore()
    yield store, ExactIndex(store=store, embedder=EMBEDDER)


@asynccontextmanager
async def faiss_index(folder: Path) -> AsyncGenerator[Indexed]:
    store = InMemoryStore()
    yield store, FaissIndex(store=store, embedder=EMBEDDER, folder=folder, bank="b")


@asynccontextmanager
async def postgres_index(url: str) -> AsyncGenerator[Indexed]:
    async with (
        Postgres(url) as database,
        PostgresIndex(database=database, embedder=EMBEDDER).opened() as index,
    ):
        yield PostgresRecords(database), index


@pytest.fixture(params=["numpy", "faiss", "postgres"])
def open_index(request: pytest.FixtureRequest, tmp_path: Path) -> OpenIndex:
    if request.param == "numpy":
        return numpy_index
    if request.param == "faiss":
        return lambda: faiss_index(tmp_path)
    url: str = request.getfixturevalue("clean_database")
    return lambda: postgres_index(url)


async def found(index: VectorIndex, text: str, limit: int = 9) -> list[str]:
    query = await EMBEDDER.embed([text], kind="query")
    return [hit.record_id for hit in await index.search(ANN, query, limit=limit)]


async def test_the_nearest_comes_first_with_its_cosine(open_index: OpenIndex) -> None:
    async with open_index() as (store, index):
        await store.write([memory("tea", "green tea"), memory("rex", "rex barks")])
        query = await EMBEDDER.embed(["rex barks"], kind="query")

        hits = await index.search(ANN, query, limit=9)

    assert [hit.record_id for hit in hits] == ["rex", "tea"]
    assert hits[0].score == pytest.approx(1.0, abs=1e-6)


async def test_an_empty_namespace_gives_nothing(open_index: OpenIndex) -> None:
    async with open_index() as (_, index):
        assert await found(index, "rex") == []


async def test_a_limit_above_the_bank_gives_all(open_index: OpenIndex) -> None:
    async with open_index() as (store, index):
        await store.write([memory("r1", "tea"), memory("r2", "rain")])

        assert sorted(await found(index, "tea", limit=10_000)) == ["r1", "r2"]
        assert await found(index, "tea", limit=1) == ["r1"]
        assert await found(index, "tea", limit=0) == []


async def test_a_search_sees_every_write_and_erasure_before_it(open_index: OpenIndex) -> None:
    async with open_index() as (store, index):
        await store.write([memory("r1", "tea"), memory("r2", "rain"), memory("b", namespace=BEN)])
        first = await found(index, "tea")
        await store.erase(ANN, [RecordId("r1")])
        await store.write([memory("r3", "tea time")])

        assert first == ["r1", "r2"]
        assert await found(index, "tea") == ["r3", "r2"]


@pytest.mark.parametrize(
    "query",
    [
        np.zeros((1, 31), dtype=np.float32),
        np.zeros((2, 32), dtype=np.float32),
        np.full((1, 32), np.nan, dtype=np.float32),
    ],
)
async def test_a_query_that_is_no_vector_is_refused(
    open_index: OpenIndex, query: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]"
) -> None:
    async with open_index() as (_, index):
        with pytest.raises(ValueError, match="query"):
            await index.search(ANN, query, limit=1)


@pytest.mark.parametrize("seed", range(5))
async def test_an_index_agrees_with_numpy_through_a_random_history(
    open_index: OpenIndex, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    async with open_index() as (store, index):
        exact = ExactIndex(store=store, embedder=EMBEDDER)
        for step in range(12):
            await store.write(
                [
                    memory(f"{step}-{n}", " ".join([*rng.choice(WORDS, 4), f"number{step}x{n}"]))
                    for n in range(rng.integers(0, 40))
                ]
            )
            everything = [r.id for r in (await store.changes(ANN, after=0)).records]
            await store.erase(ANN, [i for i in everything if rng.random() < 0.2])
            query = await EMBEDDER.embed([" ".join(rng.choice(WORDS, 3))], kind="query")

            expected = await exact.search(ANN, query, limit=7)
            got = await index.search(ANN, query, limit=7)

            assert [h.score for h in got] == pytest.approx([h.score for h in expected], abs=1e-5)
            assert {h.record_id for h in got} >= {
                h.record_id for h in expected if h.score > expected[-1].score + 1e-5
            }
