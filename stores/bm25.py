"""BM25 over small collections, in memory: what the database's ranking is held against."""

import math
from collections import Counter, defaultdict
from typing import Generic, TypeVar

from assay.stores.records import Namespace
from assay.stores.words import query_words, words

Key = TypeVar("Key", bound=str)

_K1 = 1.2
_B = 0.75
_LEAST_WEIGHT = 1e-6
"""A word in more than half of the texts still counts a little, as in FTS5."""


class Bm25(Generic[Key]):
    """Texts by (namespace, key), ranked by Okapi BM25 (Robertson et al., 1994) with k1 1.2, b 0.75.

    Word statistics are taken over the whole collection, as SQLite's FTS5 does; only texts of the
    namespace asked are ever returned.
    """

    def __init__(self) -> None:
        self._counts: defaultdict[Namespace, dict[Key, Counter[str]]] = defaultdict(dict)
        self._texts_with: Counter[str] = Counter()
        self._lengths = 0
        self._texts = 0

    def add(self, namespace: Namespace, key: Key, text: str) -> None:
        """Take a text in; its key must be new."""
        counts = Counter(words(text))
        self._counts[namespace][key] = counts
        self._texts_with.update(counts.keys())
        self._lengths += _length(counts)
        self._texts += 1

    def remove(self, namespace: Namespace, key: Key) -> None:
        """Take a text out; its key must be there."""
        counts = self._counts[namespace].pop(key)
        self._texts_with.subtract(counts.keys())
        self._lengths -= _length(counts)
        self._texts -= 1

    def best(self, namespace: Namespace, text: str, *, limit: int) -> list[tuple[Key, float]]:
        """The best texts that share a word with ``text`` and their scores; ties in order of adding."""
        asked = query_words(text)
        scored = [
            (key, sum(self._weight(word, counts) for word in asked))
            for key, counts in self._counts[namespace].items()
            if any(word in counts for word in asked)
        ]
        return sorted(scored, key=lambda pair: -pair[1])[:limit]

    def _weight(self, word: str, counts: Counter[str]) -> float:
        if word not in counts:
            return 0.0
        seen = self._texts_with[word]
        rarity = max(_LEAST_WEIGHT, math.log((self._texts - seen + 0.5) / (seen + 0.5)))
        length = _length(counts) * self._texts / self._lengths
        return rarity * counts[word] * (_K1 + 1) / (counts[word] + _K1 * (1 - _B + _B * length))


def _length(counts: Counter[str]) -> int:
    # One more than its words: in the database the namespace is a word of the text too.
    return counts.total() + 1
