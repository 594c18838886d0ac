"""Exact search with numpy: the oracle of the vector indexes, and what an in-memory bank uses."""

from collections import defaultdict

import anyio
import numpy as np

from assay.stores.catchup import Delta, delta
from assay.stores.checks import checked_limit, checked_namespace
from assay.stores.protocols import Embedder, FloatMatrix, MemoryStore, Ranked
from assay.stores.records import Namespace, RecordId


class _Shelf:
    """The vectors of one namespace, in order of writing."""

    def __init__(self, dimension: int) -> None:
        self.version = 0
        self.ids: list[RecordId] = []
        self.vectors: FloatMatrix = np.zeros((0, dimension), dtype=np.float32)
        self.catching_up = anyio.Lock()

    def apply(self, change: Delta) -> None:
        erased = set(change.erased)
        ids = [*self.ids, *change.ids]
        vectors = np.concatenate([self.vectors, change.vectors])
        kept = [row for row, record_id in enumerate(ids) if record_id not in erased]
        self.ids = [ids[row] for row in kept]
        self.vectors = vectors[kept]
        self.version = change.version


class ExactIndex:
    """Cosine against every vector of a namespace (``VectorIndex``); kept in memory only."""

    def __init__(self, *, store: MemoryStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._shelves: defaultdict[Namespace, _Shelf] = defaultdict(
            lambda: _Shelf(embedder.dimension)
        )

    async def search(
        self, namespace: Namespace, vector: FloatMatrix, *, limit: int
    ) -> list[Ranked]:
        checked_namespace(namespace)
        checked_limit(limit)
        query = checked_query(vector, self._embedder.dimension)
        shelf = self._shelves[namespace]
        async with shelf.catching_up:
            shelf.apply(await delta(self._store, self._embedder, namespace, shelf.version))
        scores = shelf.vectors @ query[0]
        # Stable, so that equal scores stand in order of writing, as in a flat index.
        order = np.argsort(-scores, kind="stable")[:limit]
        return [Ranked(shelf.ids[row], float(scores[row])) for row in order]


def checked_query(vector: FloatMatrix, dimension: int) -> FloatMatrix:
    """The query itself, if it is one row of the right length and finite.

    Raises:
        ValueError: If it is not; NaN would make every comparison false and return anything.
    """
    if vector.shape != (1, dimension):
        raise ValueError(f"a query has shape (1, {dimension}), got {vector.shape}")
    if not np.isfinite(vector).all():
        raise ValueError("a query vector must be finite")
    return np.ascontiguousarray(vector, dtype=np.float32)
