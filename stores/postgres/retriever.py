"""Hybrid retrieval from PostgreSQL in one statement.

The same result as ``HybridRetriever`` over the same parts, on one snapshot and in one round trip.
"""

from collections.abc import Sequence
from datetime import datetime

from assay.stores.checks import checked_characters, checked_limit, checked_namespace, in_utc
from assay.stores.hybrid import DEEPER, first_depth, fused
from assay.stores.postgres.connection import Row
from assay.stores.postgres.postings import asked
from assay.stores.postgres.records import HOLDS, RECORD_POSTINGS
from assay.stores.postgres.rows import opened
from assay.stores.postgres.vectors import STATE, PostgresIndex
from assay.stores.protocols import Embedder, Ranked
from assay.stores.records import Candidate, MemoryRecord, Namespace, RecordId
from assay.stores.rows import microseconds
from assay.stores.spreading import spread


def _statement(nearest: str) -> str:
    """Both searches, and the records they found: the body only of those that hold."""
    return f"""
WITH {RECORD_POSTINGS.ranking(questions="$5", words="$6")},
near AS MATERIALIZED ({nearest}),
dense AS (SELECT version, row_number() OVER (ORDER BY distance, version) AS rank FROM near),
keyword AS (SELECT number AS version, rank FROM best WHERE rank <= $4),
places AS (
  SELECT version, dense.rank AS dense, keyword.rank AS keyword
  FROM dense FULL JOIN keyword USING (version)
)
SELECT {STATE}, found.id, found.dense, found.keyword, found.body
FROM namespaces n LEFT JOIN LATERAL (
  SELECT r.id, places.dense, places.keyword,
    CASE WHEN {HOLDS.format(at="$7")} THEN r.body END AS body
  FROM places JOIN records r ON r.namespace = n.number AND r.version = places.version
  LEFT JOIN superseded s ON s.namespace = r.namespace AND s.id = r.id
) found ON true
WHERE n.name = $1
"""  # noqa: S608 - our own words


class PostgresRetriever:
    """``Retriever`` over a database."""

    def __init__(self, *, index: PostgresIndex, embedder: Embedder) -> None:
        self._index = index
        self._embedder = embedder

    async def retrieve(
        self, namespace: Namespace, text: str, *, limit: int, at: datetime
    ) -> list[Candidate]:
        checked_namespace(namespace)
        question = asked([checked_characters("text", text)])
        time = microseconds(in_utc("at", at))
        if checked_limit(limit) == 0:
            return []
        vector = await self._embedder.embed([text], kind="query")
        depth = first_depth(limit)
        while True:
            rows = await self._index.searched(
                namespace, vector, _statement, *question, time, limit=depth
            )
            found = spread(_holding(rows), limit)
            if len(found) == limit or sum(row["dense"] is not None for row in rows) < depth:
                return found
            depth *= DEEPER


def _holding(rows: Sequence[Row]) -> list[Candidate]:
    """Those that hold, best first."""
    bodies = {RecordId(row["id"]): row["body"] for row in rows if row["id"] is not None}
    return [
        Candidate(record=opened(MemoryRecord, bodies[record_id]), score=score)
        for record_id, score in fused(_ranking(rows, "dense"), _ranking(rows, "keyword"))
        if bodies[record_id] is not None
    ]


def _ranking(rows: Sequence[Row], of: str) -> list[Ranked]:
    ranks = sorted((int(row[of]), RecordId(row["id"])) for row in rows if row[of] is not None)
    return [Ranked(record_id, -rank) for rank, record_id in ranks]
