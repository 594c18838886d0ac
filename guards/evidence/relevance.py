"""Which candidates bear on the question: likeness of texts by meaning or by words."""

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from assay.guards.evidence.text import stems

Likeness: TypeAlias = npt.NDArray[np.float64]
"""Shape ``(n_queries, n_texts)``; cosine-like, higher is closer, at most 1."""

Similarity: TypeAlias = Callable[[Sequence[str], Sequence[str]], Awaitable[Likeness]]
"""Likeness of each query to each text, by meaning; deterministic."""


async def word_similarity(queries: Sequence[str], texts: Sequence[str]) -> Likeness:
    """Likeness by shared words alone, where no embedder is at hand."""
    return shared_words(queries, texts)


def shared_words(queries: Sequence[str], texts: Sequence[str]) -> Likeness:
    """Cosine of TF-IDF vectors over stemmed content words; the texts are the collection.

    Returns:
        Shape ``(len(queries), len(texts))``, in [0, 1]; 0 where either has no content word.
    """
    collections = [Counter(stems(text)) for text in texts]
    weight = _rarity(collections)
    result = np.zeros((len(queries), len(texts)))
    for row, query in enumerate(queries):
        asked = Counter(stems(query))
        for column, collection in enumerate(collections):
            result[row, column] = _cosine(asked, collection, weight)
    return result


def _rarity(collections: Sequence[Counter[str]]) -> dict[str, float]:
    seen = Counter(word for collection in collections for word in collection)
    total = len(collections)
    return {word: math.log(1 + total / count) for word, count in seen.items()}


def _cosine(a: Counter[str], b: Counter[str], weight: dict[str, float]) -> float:
    default = math.log(1 + 1 + len(weight))
    norms = math.sqrt(_square(a, weight, default) * _square(b, weight, default))
    if norms == 0.0:
        return 0.0
    shared = sorted(a.keys() & b.keys())
    return min(1.0, math.fsum(a[w] * b[w] * weight.get(w, default) ** 2 for w in shared) / norms)


def _square(counts: Counter[str], weight: dict[str, float], default: float) -> float:
    return math.fsum((n * weight.get(w, default)) ** 2 for w, n in sorted(counts.items()))
