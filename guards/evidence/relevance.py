"""Likeness of question, records and turns: by meaning where there is an embedder, else by words."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from assay.guards.evidence.text import stems
from assay.stores.protocols import Embedder

Likeness: TypeAlias = npt.NDArray[np.float64]
"""Shape ``(n_queries, n_texts)``; cosine-like, higher is closer, at most 1."""


class Likenesses(NamedTuple):
    """How alike the texts of one case are.

    Attributes:
        relevance: Shape ``(n,)``: the question to each record.
        between: Shape ``(n, n)``: each record to each record; symmetric.
        bearing: Shape ``(1 + n, t)``: the question, then each record, to each turn.
    """

    relevance: Likeness
    between: Likeness
    bearing: Likeness


class Measure(Protocol):
    """Measures likeness; deterministic, and the order of records or turns does not matter."""

    async def __call__(
        self, question: str, records: Sequence[str], turns: Sequence[str]
    ) -> Likenesses:
        """The likenesses of one case."""
        ...


class EmbeddedMeasure:
    """Likeness by cosine of an embedder's vectors.

    Args:
        embedder: The question is embedded as a query, turns as passages, records as both.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    async def __call__(
        self, question: str, records: Sequence[str], turns: Sequence[str]
    ) -> Likenesses:
        asked = np.asarray(await self._embedder.embed([question, *records], kind="query"), float)
        given = np.asarray(await self._embedder.embed([*records, *turns], kind="passage"), float)
        n = len(records)
        return Likenesses(
            relevance=asked[0] @ given[:n].T,
            between=given[:n] @ given[:n].T,
            bearing=asked @ given[n:].T,
        )


class WordMeasure:
    """Likeness by shared words alone, where no embedder is at hand."""

    async def __call__(
        self, question: str, records: Sequence[str], turns: Sequence[str]
    ) -> Likenesses:
        n = len(records)
        every = shared_words([question, *records], [*records, *turns])
        between = every[1:, :n]
        return Likenesses(every[0, :n], (between + between.T) / 2, every[:, n:])


def shared_words(queries: Sequence[str], texts: Sequence[str]) -> Likeness:
    """Cosine of TF-IDF vectors over stemmed content words; the texts are the collection.

    Returns:
        Shape ``(len(queries), len(texts))``, in [0, 1]; 0 where either has no content word.
    """
    collections = [Counter(stems(text)) for text in texts]
    weight = _rarity(collections)
    given = [_weighted(collection, weight) for collection in collections]
    asked = [_weighted(Counter(stems(query)), weight) for query in queries]
    result = np.zeros((len(queries), len(texts)))
    for row, query in enumerate(asked):
        for column, text in enumerate(given):
            result[row, column] = _cosine(query, text)
    return result


class _Weighted(NamedTuple):
    weights: dict[str, float]
    norm: float


def _rarity(collections: Sequence[Counter[str]]) -> dict[str, float]:
    seen = Counter(word for collection in collections for word in collection)
    total = len(collections)
    return {word: math.log(1 + total / count) for word, count in seen.items()}


def _weighted(counts: Counter[str], rarity: dict[str, float]) -> _Weighted:
    unseen = math.log(2 + len(rarity))
    weights = {word: n * rarity.get(word, unseen) for word, n in counts.items()}
    return _Weighted(weights, math.sqrt(math.fsum(w * w for w in weights.values())))


def _cosine(a: _Weighted, b: _Weighted) -> float:
    norms = a.norm * b.norm
    if norms == 0.0:
        return 0.0
    shared = a.weights.keys() & b.weights.keys()
    # fsum is exact, so the order of a set does not reach the last bit.
    return min(1.0, math.fsum(a.weights[w] * b.weights[w] for w in shared) / norms)
