"""What every ``VectorIndex`` promises, and FAISS against the numpy oracle."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from assay.stores.embeddings import HashingEmbedder
from assay.stores.exact import ExactIndex
from assay.stores.faiss import FaissIndex
from assay.stores.memory import InMemoryStore
from assay.stores.protocols import VectorIndex
from assay.stores.records import RecordId

from .support import ANN, BEN, memory

OpenIndex: TypeAlias = Callable[[InMemoryStore], VectorIndex]

EMBEDDER = HashingEmbedder(32)
WORDS = ["rex", "carrots", "tea", "paris", "rain", "piano", "cousin", "march", "blue", "train"]


@pytest.fixture(params=["numpy", "faiss"])
def open_index(request: pytest.FixtureRequest, tmp_path: Path) -> OpenIndex:
    def opened(store: InMemoryStore) -> VectorIndex:
        if request.param == "numpy":
            return ExactIndex(store=store, embedder=EMBEDDER)
        return FaissIndex(store=store, embedder=EMBEDDER, folder=tmp_path, bank="b")

    return opened


async def found(index: VectorIndex, text: str, limit: int = 9) -> list[str]:
    query = await EMBEDDER.embed([text], kind="query")
    return [hit.record_id for hit in await index.search(ANN, query, limit=limit)]


async def test_the_nearest_comes_first_with_its_cosine(open_index: OpenIndex) -> None:
    store = InMemoryStore()
    await store.write([memory("tea", "green tea"), memory("rex", "rex barks")])
    query = await EMBEDDER.embed(["rex barks"], kind="query")

    hits = await open_index(store).search(ANN, query, limit=9)

    assert [hit.record_id for hit in hits] == ["rex", "tea"]
    assert hits[0].score == pytest.approx(1.0, abs=1e-6)


async def test_an_empty_namespace_gives_nothing(open_index: OpenIndex) -> None:
    assert await found(open_index(InMemoryStore()), "rex") == []


async def test_a_limit_above_the_bank_gives_all(open_index: OpenIndex) -> None:
    store = InMemoryStore()
    await store.write([memory("r1", "tea"), memory("r2", "rain")])
    index = open_index(store)

    assert sorted(await found(index, "tea", limit=10_000)) == ["r1", "r2"]
    assert await found(index, "tea", limit=1) == ["r1"]
    assert await found(index, "tea", limit=0) == []


async def test_a_search_sees_every_write_and_erasure_before_it(open_index: OpenIndex) -> None:
    store = InMemoryStore()
    index = open_index(store)
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
    with pytest.raises(ValueError, match="query"):
        await open_index(InMemoryStore()).search(ANN, query, limit=1)


@pytest.mark.parametrize("seed", range(5))
async def test_faiss_agrees_with_numpy_through_a_random_history(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    store = InMemoryStore()
    exact = ExactIndex(store=store, embedder=EMBEDDER)
    flat = FaissIndex(store=store, embedder=EMBEDDER, folder=tmp_path, bank="b")
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
        got = await flat.search(ANN, query, limit=7)

        assert [h.score for h in got] == pytest.approx([h.score for h in expected], abs=1e-5)
        assert {h.record_id for h in got} >= {
            h.record_id for h in expected if h.score > expected[-1].score + 1e-5
        }
