"""Hybrid retrieval from SQLite and FAISS in one hop to a thread.

The same result as ``HybridRetriever`` over the same parts. Each hop back to the event loop may
wait for a busy processor longer than both searches take, so all of a retrieval happens in one.
"""

import sqlite3
from datetime import datetime
from typing import NamedTuple

from assay.stores.checks import checked_characters, checked_limit, checked_namespace, in_utc
from assay.stores.faiss import FaissIndex, Shelf
from assay.stores.hybrid import DEEPER, first_depth, fused
from assay.stores.protocols import Embedder, FloatMatrix, Ranked
from assay.stores.records import Candidate, Namespace
from assay.stores.rows import match_expression
from assay.stores.spreading import is_spread, spread
from assay.stores.sqlite import Database
from assay.stores.sqlite_records import current_among, matches, newest_version


class _Question(NamedTuple):
    namespace: Namespace
    vector: FloatMatrix
    expression: str | None
    limit: int
    at: datetime


class EmbeddedRetriever:
    """``Retriever`` over a database and the FAISS indexes derived from it."""

    def __init__(self, *, database: Database, index: FaissIndex, embedder: Embedder) -> None:
        self._database = database
        self._index = index
        self._embedder = embedder

    async def retrieve(
        self, namespace: Namespace, text: str, *, limit: int, at: datetime
    ) -> list[Candidate]:
        checked_namespace(namespace)
        checked_characters("text", text)
        at = in_utc("at", at)
        if checked_limit(limit) == 0:
            return []
        vector = await self._embedder.embed([text], kind="query")
        question = _Question(namespace, vector, match_expression(namespace, text), limit, at)

        async def search(shelf: Shelf) -> list[Candidate] | None:
            return await self._database.read(
                lambda connection: _retrieve(connection, shelf, question)
            )

        return await self._index.with_shelf(namespace, search)


def _retrieve(
    connection: sqlite3.Connection, shelf: Shelf, question: _Question
) -> list[Candidate] | None:
    """The candidates, or ``None`` if the shelf is behind the snapshot that the connection sees."""
    if newest_version(connection, question.namespace) != shelf.version:
        return None
    depth = first_depth(question.limit)
    while True:
        dense = shelf.search(question.vector, depth)
        keyword = matches(connection, question.expression, depth) if question.expression else []
        found = _current(connection, fused(dense, keyword), question)
        if len(found) == question.limit or len(dense) < depth:
            return found
        depth *= DEEPER


def _current(
    connection: sqlite3.Connection, ranking: list[Ranked], question: _Question
) -> list[Candidate]:
    """The first of a ranking that hold, no outside source crowding others out."""
    scores = dict(ranking)
    ids = list(scores)
    limit = question.limit
    found: list[Candidate] = []
    for start in range(0, len(ids), 2 * limit):
        chunk = ids[start : start + 2 * limit]
        records = current_among(connection, question.namespace, chunk, question.at)
        found += [Candidate(record=r, score=scores[r.id]) for r in records]
        if is_spread(found, limit):
            break
    return spread(found, limit)
