"""Vectors of records in pgvector: exact search of a namespace, approximate of a large one."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import anyio

from assay.stores.catchup import EMBED_BATCH
from assay.stores.checks import checked_limit, checked_namespace
from assay.stores.exact import checked_query
from assay.stores.postgres.connection import Row, packed
from assay.stores.postgres.database import Postgres
from assay.stores.postgres.hnsw import HnswIndexes
from assay.stores.postgres.rows import opened
from assay.stores.protocols import Embedder, FloatMatrix, Ranked
from assay.stores.records import MemoryRecord, Namespace, RecordId

EXACT_BELOW = 20_000
"""A namespace with no more records is searched exactly: as fast, and nothing is missed."""

_ANY_NUMBER = 2**62

STATE = "n.number, n.records > $3, n.embedded < n.version"
"""What each statement given to ``PostgresIndex.searched`` tells first, of ``namespaces n``."""

_SEARCH = """
SELECT {state}, found.id, found.score FROM namespaces n LEFT JOIN LATERAL (
  SELECT r.id, -near.distance AS score, near.version FROM ({nearest}) near
  JOIN records r ON r.namespace = n.number AND r.version = near.version
) found ON true
WHERE n.name = $1 ORDER BY found.score DESC, found.version
"""
_NEAREST = """
SELECT v.version, v.embedding <#> $2 AS distance FROM namespaces o
JOIN vectors v ON v.namespace = o.number
WHERE o.name = $1 AND o.records <= $3 ORDER BY distance, v.version LIMIT $4
"""
_NEAREST_IN_LARGE = """
SELECT v.version, v.embedding::vector({dimension}) <#> $2::vector({dimension}) AS distance
FROM vectors v WHERE v.namespace = {number}
ORDER BY v.embedding::vector({dimension}) <#> $2::vector({dimension}) LIMIT $4
"""
_WAITING = """
SELECT n.number, n.version, r.version, r.body FROM namespaces n LEFT JOIN LATERAL (
  SELECT version, body FROM records
  WHERE namespace = n.number AND version > n.embedded ORDER BY version LIMIT $2
) r ON true
WHERE n.name = $1 AND n.embedded < n.version ORDER BY r.version
"""
# The namespace is held before the records are: what is erased meanwhile gets no vector.
_ADD = """
WITH held AS (
  SELECT number FROM namespaces WHERE number = $1 FOR NO KEY UPDATE
), there AS (
  SELECT r.namespace, r.version, a.embedding FROM held
  JOIN records r ON r.namespace = held.number
  JOIN unnest($2::bigint[], $3::vector[]) AS a (version, embedding) ON a.version = r.version
  FOR KEY SHARE OF r
), added AS (
  INSERT INTO vectors SELECT * FROM there ON CONFLICT DO NOTHING RETURNING 1
)
UPDATE namespaces SET embedded = greatest(embedded, $4) FROM (SELECT count(*) FROM added) done
WHERE number = $1
"""


class Query(NamedTuple):
    """What a statement is to find, as its first four values.

    Attributes:
        namespace: ``$1``.
        vector: ``$2``, as pgvector takes it.
        below: ``$3``: how many records a namespace may have to be searched exactly.
        limit: ``$4``.
    """

    namespace: Namespace
    vector: bytes
    below: int
    limit: int


class PostgresIndex:
    """Cosine over the vectors of a namespace (``VectorIndex``); an async context manager.

    Vectors are made when they are needed: each search first embeds what was written since, by
    whichever process. They are rows, so erasing a record erases its vector in the same transaction.

    Args:
        database: Open.
        embedder: The one the bank is bound to.
        exact_below: Most records of a namespace that is searched exactly.
    """

    def __init__(
        self, *, database: Postgres, embedder: Embedder, exact_below: int = EXACT_BELOW
    ) -> None:
        self._database = database
        self._embedder = embedder
        self._exact_below = exact_below
        self._large = HnswIndexes(database, embedder.dimension)
        self._catching_up: dict[Namespace, anyio.Lock] = {}

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator["PostgresIndex"]:
        """The index with its task that builds what large namespaces need."""
        async with self._large:
            yield self

    async def search(
        self, namespace: Namespace, vector: FloatMatrix, *, limit: int
    ) -> list[Ranked]:
        checked_namespace(namespace)
        query = checked_query(vector, self._embedder.dimension)
        if checked_limit(limit) == 0:
            return []
        rows = await self.searched(
            namespace,
            query,
            lambda nearest: _SEARCH.format(state=STATE, nearest=nearest),
            limit=limit,
        )
        return [Ranked(RecordId(record_id), score) for *_, record_id, score in rows if record_id]

    def is_approximate(self, namespace: Namespace) -> bool:
        """Whether a namespace is searched by an index of its own, which may miss a little."""
        return self._large.number(namespace) is not None

    async def searched(
        self,
        namespace: Namespace,
        vector: FloatMatrix,
        statement: Callable[[str], str],
        *more: object,
        limit: int,
    ) -> list[Row]:
        """The rows of a statement that sees every acknowledged write.

        Args:
            namespace: Whose.
            vector: The query, shape ``(1, dimension)``.
            statement: Makes SQL that begins with ``STATE``, given a ``SELECT`` of ``(version,
                distance)`` that takes the four values of ``Query``, nearest first.
            more: Values from ``$5`` on.
            limit: How many of the nearest.
        """
        packed_vector = packed(vector[0])
        # Mostly something was written since the last search, which would be done in vain.
        await self.catch_up(namespace)
        while True:
            number = self._large.number(namespace)
            is_settled = self._large.is_settled(namespace)
            below = _ANY_NUMBER if is_settled else self._exact_below
            query = Query(namespace, packed_vector, below, limit)
            sql = statement(self._nearest(number))
            rows = await self._database.fetch(sql, *query, *more)
            if not rows:
                return []
            owner, is_large, is_behind, *_ = rows[0]
            if is_behind:
                await self.catch_up(namespace)
            elif is_large:
                await self._large.want(namespace, owner)
            else:
                return rows

    async def catch_up(self, namespace: Namespace) -> None:
        """Give every record of a namespace its vector.

        Raises:
            ModelError: If the embedder cannot embed; what is embedded by then is kept.
        """
        async with self._alone(namespace):
            is_behind = True
            while is_behind:
                waiting = await self._database.fetch(_WAITING, namespace, EMBED_BATCH)
                is_behind = len(waiting) == EMBED_BATCH
                if waiting:
                    await self._embed(waiting)

    async def _embed(self, waiting: list[Row]) -> None:
        number, newest = waiting[0][0], waiting[0][1]
        found = [(version, body) for _, _, version, body in waiting if body is not None]
        if len(found) == EMBED_BATCH:
            newest = found[-1][0]
        vectors = await self._packed([opened(MemoryRecord, body).text for _, body in found])
        versions = [version for version, _ in found]
        await self._database.fetch(_ADD, number, versions, vectors, newest)

    async def _packed(self, texts: list[str]) -> list[bytes]:
        if not texts:
            return []
        return [packed(vector) for vector in await self._embedder.embed(texts, kind="passage")]

    @asynccontextmanager
    async def _alone(self, namespace: Namespace) -> AsyncGenerator[None]:
        """One at a time in this process: two would embed the same texts."""
        lock = self._catching_up.setdefault(namespace, anyio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.statistics().tasks_waiting:
                self._catching_up.pop(namespace, None)

    def _nearest(self, number: int | None) -> str:
        if number is None:
            return _NEAREST
        return _NEAREST_IN_LARGE.format(number=number, dimension=self._embedder.dimension)
