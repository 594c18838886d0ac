"""The evaluation cache in SQLite."""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from typing import TypeAlias

import msgspec

from assay.stores.checks import checked_namespace, checked_text
from assay.stores.protocols import CacheRow
from assay.stores.records import Namespace, RecordId
from assay.stores.rows import check_seal, seal
from assay.stores.sqlite import Database

_PAGE_ROWS = 256

_Row: TypeAlias = tuple[str, bytes, bytes, str, bytes]

_GET = """
SELECT c.key, c.value, c.request, c.record_ids, c.seal FROM json_each(:keys) asked
CROSS JOIN cache c ON c.namespace = :namespace AND c.key = asked.value
"""
_PAGE = """
SELECT number, key, value, request, record_ids, seal FROM cache
WHERE namespace = ? AND number > ? ORDER BY number LIMIT ?
"""
_NUMBERS = """
SELECT c.number FROM json_each(:keys) asked
CROSS JOIN cache c ON c.namespace = :namespace AND c.key = asked.value
"""
_FORGOTTEN = """
SELECT DISTINCT r.cache_number FROM json_each(:ids) asked
CROSS JOIN cache_records r ON r.namespace = :namespace AND r.record_id = asked.value
"""


class SqliteCache:
    """``Cache`` over one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, namespace: Namespace, keys: Sequence[str]) -> dict[str, bytes]:
        checked_namespace(namespace)
        values = {"namespace": namespace, "keys": _json(keys)}

        def work(connection: sqlite3.Connection) -> dict[str, bytes]:
            rows = (_opened(namespace, row) for row in connection.execute(_GET, values))
            return {row.key: row.value for row in rows}

        return await self._database.read(work)

    async def put(self, namespace: Namespace, rows: Sequence[CacheRow]) -> None:
        checked_namespace(namespace)
        for row in rows:
            checked_text("cache key", row.key)
        if rows:
            await self._database.write(lambda connection: _put(connection, namespace, rows))

    async def rows(self, namespace: Namespace) -> AsyncIterator[CacheRow]:
        checked_namespace(namespace)
        last = 0
        while page := await self._page(namespace, last):
            for number, row in page:
                last = number
                yield row

    async def _page(self, namespace: Namespace, after: int) -> list[tuple[int, CacheRow]]:
        def work(connection: sqlite3.Connection) -> list[tuple[int, CacheRow]]:
            rows = connection.execute(_PAGE, (namespace, after, _PAGE_ROWS))
            return [(row[0], _opened(namespace, row[1:])) for row in rows]

        return await self._database.read(work)

    async def forget(self, namespace: Namespace, record_ids: Sequence[RecordId]) -> int:
        checked_namespace(namespace)
        forgotten = await self._database.write(
            lambda connection: forget_records(connection, namespace, record_ids)
        )
        if forgotten:
            await self._database.truncate_log()
        return forgotten


def _json(texts: Sequence[str]) -> str:
    return msgspec.json.encode(texts).decode()


def _opened(namespace: Namespace, row: _Row) -> CacheRow:
    key, value, request, record_ids, sealed = row
    check_seal(sealed, namespace, key, value, request, record_ids)
    ids = msgspec.json.decode(record_ids, type=tuple[str, ...])
    return CacheRow(key, value, request, tuple(map(RecordId, ids)))


def _put(connection: sqlite3.Connection, namespace: Namespace, rows: Sequence[CacheRow]) -> None:
    for row in rows:
        ids = _json(row.record_ids)
        sealed = seal(namespace, row.key, row.value, row.request, ids)
        inserted = connection.execute(
            "INSERT INTO cache (namespace, key, value, request, record_ids, seal) "
            "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING number",
            (namespace, row.key, row.value, row.request, ids, sealed),
        ).fetchone()
        if inserted is not None:
            connection.executemany(
                "INSERT OR IGNORE INTO cache_records VALUES (?, ?, ?)",
                [(namespace, record_id, inserted[0]) for record_id in row.record_ids],
            )


def forget_keys(connection: sqlite3.Connection, namespace: Namespace, keys: Sequence[str]) -> int:
    """Drop rows by key; gives how many were there."""
    values = {"namespace": namespace, "keys": _json(keys)}
    return _drop(connection, connection.execute(_NUMBERS, values).fetchall())


def forget_records(
    connection: sqlite3.Connection, namespace: Namespace, record_ids: Sequence[RecordId]
) -> int:
    """Drop every row that lists one of these; gives how many."""
    values = {"namespace": namespace, "ids": _json(record_ids)}
    return _drop(connection, connection.execute(_FORGOTTEN, values).fetchall())


def _drop(connection: sqlite3.Connection, numbers: Sequence[tuple[int]]) -> int:
    connection.executemany("DELETE FROM cache_records WHERE cache_number = ?", numbers)
    connection.executemany("DELETE FROM cache WHERE number = ?", numbers)
    return len(numbers)
