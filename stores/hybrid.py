"""Dense and keyword search together, fused by rank; and search of the archive for evidence."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import numpy as np
import numpy.typing as npt

from assay.stores.checks import checked_characters, checked_limit, checked_namespace, in_utc
from assay.stores.concurrent import both
from assay.stores.protocols import Archive, Embedder, KeywordIndex, Ranked, VectorIndex
from assay.stores.records import ArchiveTurn, Candidate, MemoryRecord, Namespace, RecordId
from assay.stores.spreading import is_spread, spread

_RANK_OFFSET = 60
"""Reciprocal rank fusion's constant (Cormack, Clarke and Büttcher, 2009)."""

_BEST_SUM = 2 / (_RANK_OFFSET + 1)
"""First in both lists; scores are divided by it, so they lie in (0, 1]."""

_LEAST_DEPTH = 50
_DEPTH_PER_CANDIDATE = 4

DEEPER = 4
"""By how much the lists grow when too few of their records hold."""


class CurrentRecords(Protocol):
    """Tells which of some records hold at a time."""

    async def current_among(
        self, namespace: Namespace, record_ids: Sequence[RecordId], *, at: datetime
    ) -> list[MemoryRecord]:
        """Those of these records that are there and hold at ``at``, in the order asked."""
        ...


class HybridRetriever:
    """Candidates by cosine and by BM25, fused by reciprocal rank (``Retriever``).

    Both searches rank every record of the namespace, superseded and expired ones included; those
    are dropped after fusion, deeper lists being fetched until ``limit`` current ones are found or
    the bank has no more. No outside source takes more than half of the places while others are
    there (``spread``). A score is the sum of ``1 / (60 + rank)`` over both lists, divided by its
    maximum: in (0, 1], 1 for the record that is first in both.
    """

    def __init__(
        self,
        *,
        records: CurrentRecords,
        keywords: KeywordIndex,
        vectors: VectorIndex,
        embedder: Embedder,
    ) -> None:
        self._records = records
        self._keywords = keywords
        self._vectors = vectors
        self._embedder = embedder

    async def retrieve(
        self, namespace: Namespace, text: str, *, limit: int, at: datetime
    ) -> list[Candidate]:
        checked_namespace(namespace)
        checked_characters("text", text)
        at = in_utc("at", at)
        if checked_limit(limit) == 0:
            return []
        depth = first_depth(limit)
        while True:
            dense, keyword = await self._search(namespace, text, depth)
            found = await self._current(namespace, fused(dense, keyword), limit, at)
            if len(found) == limit or len(dense) < depth:
                return found
            depth *= DEEPER

    async def _search(
        self, namespace: Namespace, text: str, depth: int
    ) -> tuple[list[Ranked], list[Ranked]]:
        async def dense() -> list[Ranked]:
            vector = await self._embedder.embed([text], kind="query")
            return await self._vectors.search(namespace, vector, limit=depth)

        async def keyword() -> list[Ranked]:
            return await self._keywords.match(namespace, text, limit=depth)

        return await both(dense, keyword)

    async def _current(
        self, namespace: Namespace, ranking: Sequence[Ranked], limit: int, at: datetime
    ) -> list[Candidate]:
        """The first ``limit`` that hold at ``at``, no outside source crowding others out."""
        scores = dict(ranking)
        ids = list(scores)
        found: list[Candidate] = []
        # Mostly the first few hold: fetching all of a deep list would cost more than both searches.
        for start in range(0, len(ids), 2 * limit):
            chunk = ids[start : start + 2 * limit]
            records = await self._records.current_among(namespace, chunk, at=at)
            found += [Candidate(record=r, score=scores[r.id]) for r in records]
            if is_spread(found, limit):
                break
        return spread(found, limit)


def first_depth(limit: int) -> int:
    """How deep both lists are at first, for ``limit`` candidates."""
    return max(_LEAST_DEPTH, _DEPTH_PER_CANDIDATE * limit)


def fused(*rankings: Sequence[Ranked]) -> list[Ranked]:
    """One ranking out of two, best first; ties in order of first appearance.

    Args:
        rankings: Best first; their scores are not compared, only their ranks.

    Returns:
        Every record of either, scores in (0, 1].
    """
    sums: dict[RecordId, float] = {}
    for ranking in rankings:
        for rank, (record_id, _) in enumerate(ranking, start=1):
            sums[record_id] = sums.get(record_id, 0.0) + 1 / (_RANK_OFFSET + rank)
    best_first = sorted(sums.items(), key=lambda pair: -pair[1])
    return [Ranked(record_id, min(1.0, total / _BEST_SUM)) for record_id, total in best_first]


_LEAST_SHORTLIST = 16


class EvidenceSearch:
    """Archived turns that bear on a text: a BM25 shortlist, re-ranked by cosine.

    Args:
        archive: The turns.
        embedder: Compares the text (as a query) with ``speaker: text`` of each turn (as a passage).
        namespace: Whose turns; no others are ever seen.
    """

    def __init__(self, archive: Archive, embedder: Embedder, namespace: Namespace) -> None:
        self._archive = archive
        self._embedder = embedder
        self._namespace = checked_namespace(namespace)

    async def __call__(self, texts: Sequence[str], *, limit: int) -> list[list[ArchiveTurn]]:
        """For each text the best ``limit`` turns, best first; fewer if fewer share a word with it.

        One search of the archive and two calls of the embedder, however many texts.
        """
        if checked_limit(limit) == 0 or not texts:
            return [[] for _ in texts]
        shortlist = max(_LEAST_SHORTLIST, _DEPTH_PER_CANDIDATE * limit)
        found = await self._archive.search(self._namespace, texts, limit=shortlist)
        turns = list({turn.id: turn for hits in found for turn in hits}.values())
        if not turns:
            return found
        queries = await self._embedder.embed(texts, kind="query")
        spoken = [f"{turn.speaker}: {turn.text}" for turn in turns]
        likeness = (await self._embedder.embed(spoken, kind="passage")) @ queries.T
        place = {turn.id: i for i, turn in enumerate(turns)}
        return [
            [hits[i] for i in _best(likeness[[place[turn.id] for turn in hits], column], limit)]
            for column, hits in enumerate(found)
        ]


def _best(scores: npt.NDArray[np.float32], limit: int) -> list[int]:
    order = np.argsort(-scores, kind="stable")[:limit]
    return [int(i) for i in order]
