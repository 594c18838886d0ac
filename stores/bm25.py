"""BM25 over small collections, in memory: what the database's ranking is held against."""

import math
from collections import Counter, defaultdict
from typing import Generic, NamedTuple, TypeVar

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
        self._texts_of: defaultdict[Namespace, dict[Key, _Text]] = defaultdict(dict)
        self._postings: defaultdict[Namespace, defaultdict[str, dict[Key, int]]]
        self._postings = defaultdict(lambda: defaultdict(dict))
        self._texts_with: Counter[str] = Counter()
        self._lengths = 0
        self._texts = 0
        self._added = 0

    def add(self, namespace: Namespace, key: Key, text: str) -> None:
        """Take a text in; its key must be new."""
        counts = Counter(words(text))
        for word, count in counts.items():
            self._postings[namespace][word][key] = count
        self._texts_of[namespace][key] = _Text(self._added, _length(counts), tuple(counts))
        self._texts_with.update(counts.keys())
        self._lengths += _length(counts)
        self._texts += 1
        self._added += 1

    def remove(self, namespace: Namespace, key: Key) -> None:
        """Take a text out; its key must be there."""
        text = self._texts_of[namespace].pop(key)
        for word in text.words:
            del self._postings[namespace][word][key]
        self._texts_with.subtract(text.words)
        self._lengths -= text.length
        self._texts -= 1

    def best(self, namespace: Namespace, text: str, *, limit: int) -> list[tuple[Key, float]]:
        """The best texts that share a word with ``text`` and their scores; ties in order of adding."""
        texts, postings = self._texts_of[namespace], self._postings[namespace]
        scores: dict[Key, float] = {}
        for word in query_words(text):
            posting = postings.get(word)
            rarity = self._rarity(word) if posting else 0.0
            for key, count in posting.items() if posting else ():
                weight = rarity * count * (_K1 + 1) / (count + self._drag(texts[key].length))
                scores[key] = scores.get(key, 0.0) + weight
        ranked = sorted(scores.items(), key=lambda pair: (-pair[1], texts[pair[0]].place))
        return ranked[:limit]

    def _rarity(self, word: str) -> float:
        seen = self._texts_with[word]
        return max(_LEAST_WEIGHT, math.log((self._texts - seen + 0.5) / (seen + 0.5)))

    def _drag(self, length: int) -> float:
        return _K1 * (1 - _B + _B * length * self._texts / self._lengths)


class _Text(NamedTuple):
    place: int
    length: int
    words: tuple[str, ...]


def _length(counts: Counter[str]) -> int:
    # One more than its words: in the database the namespace is a word of the text too.
    return counts.total() + 1
