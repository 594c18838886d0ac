"""The evaluation cache in PostgreSQL, shared by every process of a bank."""

from collections.abc import AsyncIterator, Sequence

import msgspec

from assay.stores.checks import checked_characters, checked_namespace, checked_text
from assay.stores.postgres.connection import Connection
from assay.stores.postgres.database import Postgres
from assay.stores.postgres.rows import possible
from assay.stores.protocols import CacheRow
from assay.stores.records import Namespace, RecordId

_PAGE_ROWS = 256

_GET = "SELECT key, value FROM cache WHERE namespace = $1 AND key = ANY($2)"
_PAGE = """
SELECT number, key, value, request, record_ids FROM cache
WHERE namespace = $1 AND number > $2 ORDER BY number LIMIT $3
"""
# Numbered in the order given, inserted in the order of the keys: two callers that put the same
# rows wait for each other in one direction only.
_PUT = """
WITH given AS MATERIALIZED (
  SELECT nextval(pg_get_serial_sequence('cache', 'number')) AS number, one.*
  FROM unnest($2::text[], $3::bytea[], $4::bytea[], $5::text[])
    AS one (key, value, request, record_ids)
), put AS (
  INSERT INTO cache (number, namespace, key, value, request, record_ids)
  SELECT number, $1, key, value, request, record_ids FROM given ORDER BY key, number
  ON CONFLICT DO NOTHING RETURNING number, record_ids
)
INSERT INTO cache_records
SELECT DISTINCT $1, record_id, number
FROM put, json_array_elements_text(record_ids::json) AS record_id
"""
_FORGET_RECORDS = """
DELETE FROM cache WHERE number IN (
  SELECT cache_number FROM cache_records WHERE namespace = $1 AND record_id = ANY($2)
)
"""
_FORGET_KEYS = "DELETE FROM cache WHERE namespace = $1 AND key = ANY($2)"
_FORGET_ALL = "DELETE FROM cache WHERE namespace = $1"


class PostgresCache:
    """``Cache`` over one database."""

    def __init__(self, database: Postgres) -> None:
        self._database = database

    async def get(self, namespace: Namespace, keys: Sequence[str]) -> dict[str, bytes]:
        rows = await self._database.fetch(_GET, checked_namespace(namespace), possible(keys))
        return {key: value for key, value in rows}  # noqa: C416  # a row is no pair to dict()

    async def put(self, namespace: Namespace, rows: Sequence[CacheRow]) -> None:
        checked_namespace(namespace)
        for row in rows:
            _checked(row)
        if rows:
            # One statement is a transaction of its own.
            await self._database.read(lambda connection: _put(connection, namespace, rows))

    async def rows(self, namespace: Namespace) -> AsyncIterator[CacheRow]:
        checked_namespace(namespace)
        last = 0
        while page := await self._database.fetch(_PAGE, namespace, last, _PAGE_ROWS):
            for number, key, value, request, record_ids in page:
                last = number
                yield CacheRow(key, value, request, _ids(record_ids))

    async def forget(self, namespace: Namespace, record_ids: Sequence[RecordId]) -> int:
        checked_namespace(namespace)
        return await self._database.write(
            lambda connection: forget_records(connection, namespace, record_ids)
        )


async def forget_keys(connection: Connection, namespace: Namespace, keys: Sequence[str]) -> int:
    """Drop rows by key; gives how many were there."""
    return _count(await connection.execute(_FORGET_KEYS, namespace, possible(keys)))


async def forget_records(
    connection: Connection, namespace: Namespace, record_ids: Sequence[RecordId]
) -> int:
    """Drop every row that lists one of these; gives how many."""
    return _count(await connection.execute(_FORGET_RECORDS, namespace, possible(record_ids)))


async def forget_all(connection: Connection, namespace: Namespace) -> int:
    """Drop every row of a namespace; gives how many."""
    return _count(await connection.execute(_FORGET_ALL, namespace))


def _checked(row: CacheRow) -> None:
    checked_text("cache key", row.key)
    for record_id in row.record_ids:
        checked_characters("a record id of a cached answer", record_id)


async def _put(connection: Connection, namespace: Namespace, rows: Sequence[CacheRow]) -> None:
    keys, values, requests, record_ids = zip(*rows, strict=True)
    listed = [msgspec.json.encode(ids).decode() for ids in record_ids]
    await connection.execute(_PUT, namespace, keys, values, requests, listed)


def _ids(record_ids: str) -> tuple[RecordId, ...]:
    return tuple(map(RecordId, msgspec.json.decode(record_ids, type=tuple[str, ...])))


def _count(tag: str) -> int:
    """The rows a statement touched, from the tag that the server gave."""
    return int(tag.rpartition(" ")[2])
