"""Memory records and their full-text index in SQLite."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import TypeAlias

import msgspec

from assay.errors import ConflictingWrite, RecordNotFound
from assay.stores.checks import (
    checked_characters,
    checked_limit,
    checked_namespace,
    checked_record,
    in_utc,
    superseded_from,
)
from assay.stores.protocols import Changes, Ranked
from assay.stores.records import MemoryRecord, Namespace, RecordId
from assay.stores.rows import (
    encoded,
    indexed_words,
    match_expression,
    microseconds,
    one_int,
    opened,
    owner_token,
    seal,
)
from assay.stores.sqlite import Database

_Prepared: TypeAlias = tuple[MemoryRecord, bytes, bytes, str]
"""A record, its body, its seal and its words: all that can be computed before the transaction."""

_NEWEST = """
SELECT max(
  coalesce((SELECT max(version) FROM records), 0),
  coalesce((SELECT max(version) FROM tombstones), 0)
)
"""
_NEWEST_IN_NAMESPACE = """
SELECT max(
  coalesce((SELECT max(version) FROM records WHERE namespace = ?), 0),
  coalesce((SELECT max(version) FROM tombstones WHERE namespace = ?), 0)
)
"""
_LOOK = """
SELECT
  max(
    coalesce((SELECT max(version) FROM records), 0),
    coalesce((SELECT max(version) FROM tombstones), 0)
  ),
  EXISTS (SELECT 1 FROM tombstones WHERE namespace = ? AND id = ?),
  known.body,
  known.seal
FROM (SELECT 1) LEFT JOIN records known ON known.namespace = ? AND known.id = ?
"""
_CURRENT = """
SELECT r.body, r.seal FROM records r
LEFT JOIN superseded s ON s.namespace = r.namespace AND s.id = r.id
WHERE r.namespace = :namespace AND (s.since IS NULL OR :at < s.since)
AND (r.valid_from IS NULL OR r.valid_from <= :at) AND (r.valid_to IS NULL OR :at < r.valid_to)
ORDER BY r.version
"""
_CURRENT_AMONG = """
SELECT r.body, r.seal FROM json_each(:ids) asked
CROSS JOIN records r ON r.namespace = :namespace AND r.id = asked.value
LEFT JOIN superseded s ON s.namespace = r.namespace AND s.id = r.id
WHERE (s.since IS NULL OR :at < s.since)
AND (r.valid_from IS NULL OR r.valid_from <= :at) AND (r.valid_to IS NULL OR :at < r.valid_to)
ORDER BY asked.key
"""
# Not `ORDER BY rank`: it keeps the places of every match and takes half as long again.
_MATCH = """
SELECT r.id, -best.score FROM (
  SELECT rowid, bm25(records_words, 0.0, 1.0) AS score FROM records_words
  WHERE records_words MATCH ? ORDER BY score, rowid LIMIT ?
) best CROSS JOIN records r ON r.version = best.rowid ORDER BY best.score, best.rowid
"""


class SqliteRecords:
    """``MemoryStore``, ``KeywordIndex`` and ``CurrentRecords`` over one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def write(self, records: Sequence[MemoryRecord]) -> None:
        prepared = [_prepared(checked_record(record)) for record in records]
        if prepared:
            await self._database.write(lambda connection: _write(connection, prepared))

    async def get(self, namespace: Namespace, record_ids: Sequence[RecordId]) -> list[MemoryRecord]:
        checked_namespace(namespace)
        return await self._database.read(
            lambda connection: [_get(connection, namespace, i) for i in record_ids]
        )

    async def current(self, namespace: Namespace, *, at: datetime) -> list[MemoryRecord]:
        checked_namespace(namespace)
        values = {"namespace": namespace, "at": microseconds(in_utc("at", at))}
        return await self._database.read(
            lambda connection: _opened(namespace, connection.execute(_CURRENT, values))
        )

    async def current_among(
        self, namespace: Namespace, record_ids: Sequence[RecordId], *, at: datetime
    ) -> list[MemoryRecord]:
        """Those of these records that are there and hold at ``at``, in the order asked."""
        checked_namespace(namespace)
        time = in_utc("at", at)
        return await self._database.read(
            lambda connection: current_among(connection, namespace, record_ids, time)
        )

    async def changes(self, namespace: Namespace, *, after: int) -> Changes:
        checked_namespace(namespace)
        return await self._database.read(lambda connection: _changes(connection, namespace, after))

    async def erase(self, namespace: Namespace, record_ids: Sequence[RecordId]) -> int:
        checked_namespace(namespace)
        distinct = list(dict.fromkeys(record_ids))
        erased = await self._database.write(
            lambda connection: erase_records(connection, namespace, distinct)
        )
        if erased:
            await self._database.truncate_log()
        return erased

    async def match(self, namespace: Namespace, text: str, *, limit: int) -> list[Ranked]:
        checked_namespace(namespace)
        checked_characters("text", text)
        expression = match_expression(namespace, text)
        if checked_limit(limit) == 0 or expression is None:
            return []

        return await self._database.read(lambda connection: matches(connection, expression, limit))


# ---- in a thread, on one connection


def matches(connection: sqlite3.Connection, expression: str, limit: int) -> list[Ranked]:
    """The best matches of an expression made by ``match_expression``."""
    rows = connection.execute(_MATCH, (expression, limit))
    return [Ranked(RecordId(record_id), score) for record_id, score in rows]


def current_among(
    connection: sqlite3.Connection,
    namespace: Namespace,
    record_ids: Sequence[RecordId],
    time: datetime,
) -> list[MemoryRecord]:
    """Those of these records that are there and hold at ``time``, in the order asked."""
    ids = msgspec.json.encode(record_ids).decode()
    values = {"namespace": namespace, "at": microseconds(time), "ids": ids}
    return _opened(namespace, connection.execute(_CURRENT_AMONG, values))


def newest_version(connection: sqlite3.Connection, namespace: Namespace) -> int:
    """The version of the last write or erasure in a namespace; 0 if there was none."""
    return one_int(connection, _NEWEST_IN_NAMESPACE, (namespace, namespace))


def _opened(namespace: Namespace, rows: sqlite3.Cursor) -> list[MemoryRecord]:
    return [opened(MemoryRecord, namespace, body, sealed) for body, sealed in rows]


def _prepared(record: MemoryRecord) -> _Prepared:
    body = encoded(record)
    return record, body, seal(record.namespace, body), indexed_words(record.text)


def _write(connection: sqlite3.Connection, batch: Sequence[_Prepared]) -> None:
    for prepared in batch:
        record, body, _, _ = prepared
        key = record.namespace, record.id
        newest, is_erased, known, sealed = connection.execute(_LOOK, (*key, *key)).fetchone()
        if is_erased:
            raise ConflictingWrite(f"record {record.id!r} was erased and may not come back")
        if known is None:
            _insert(connection, newest + 1, prepared)
        # Compared as values: a later release may write more fields for the same record.
        elif known != body and opened(MemoryRecord, record.namespace, known, sealed) != record:
            raise ConflictingWrite(f"record {record.id!r} exists with other content")


def _insert(connection: sqlite3.Connection, version: int, prepared: _Prepared) -> None:
    record, body, sealed, words = prepared
    valid_from, valid_to = (
        None if time is None else microseconds(time)
        for time in (record.valid_from, record.valid_to)
    )
    connection.execute(
        "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?)",
        (version, record.namespace, record.id, valid_from, valid_to, body, sealed),
    )
    connection.execute(
        "INSERT INTO records_words (rowid, owner, words) VALUES (?, ?, ?)",
        (version, owner_token(record.namespace), words),
    )
    if record.supersedes is not None:
        connection.execute(
            "INSERT INTO superseded VALUES (?, ?, ?) "
            "ON CONFLICT DO UPDATE SET since = min(since, excluded.since)",
            (record.namespace, record.supersedes, microseconds(superseded_from(record))),
        )


def _get(connection: sqlite3.Connection, namespace: Namespace, record_id: RecordId) -> MemoryRecord:
    row = connection.execute(
        "SELECT body, seal FROM records WHERE namespace = ? AND id = ?", (namespace, record_id)
    ).fetchone()
    if row is None:
        raise RecordNotFound(record_id, namespace)
    return opened(MemoryRecord, namespace, *row)


def _changes(connection: sqlite3.Connection, namespace: Namespace, after: int) -> Changes:
    written = connection.execute(
        "SELECT version, body, seal FROM records WHERE namespace = ? AND version > ? "
        "ORDER BY version",
        (namespace, after),
    ).fetchall()
    erased = connection.execute(
        "SELECT version, id FROM tombstones WHERE namespace = ? AND version > ? ORDER BY version",
        (namespace, after),
    ).fetchall()
    records = [opened(MemoryRecord, namespace, body, sealed) for _, body, sealed in written]
    last = [rows[-1][0] for rows in (written, erased) if rows]
    return Changes(records, [RecordId(i) for _, i in erased], max([after, *last]))


def erase_records(
    connection: sqlite3.Connection, namespace: Namespace, record_ids: Sequence[RecordId]
) -> int:
    """Remove records and their words and leave tombstones; gives how many were there."""
    version = one_int(connection, _NEWEST)
    there = [record_id for record_id in record_ids if _remove(connection, namespace, record_id)]
    for number, record_id in enumerate(there, start=version + 1):
        connection.execute(
            "INSERT INTO tombstones VALUES (?, ?, ?)", (number, namespace, record_id)
        )
    if there:
        # Deleting from a full-text index only marks; merging it into one segment drops the words.
        connection.execute("INSERT INTO records_words (records_words) VALUES ('optimize')")
    return len(there)


def _remove(connection: sqlite3.Connection, namespace: Namespace, record_id: RecordId) -> bool:
    row = connection.execute(
        "DELETE FROM records WHERE namespace = ? AND id = ? RETURNING version, body, seal",
        (namespace, record_id),
    ).fetchone()
    if row is None:
        return False
    version, body, sealed = row
    record = opened(MemoryRecord, namespace, body, sealed)
    connection.execute(
        "INSERT INTO records_words (records_words, rowid, owner, words) VALUES ('delete', ?, ?, ?)",
        (version, owner_token(namespace), indexed_words(record.text)),
    )
    return True
