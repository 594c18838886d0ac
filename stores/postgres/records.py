"""Memory records and their words in PostgreSQL."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from assay.errors import ConflictingWrite, RecordNotFound
from assay.stores.checks import (
    checked_characters,
    checked_limit,
    checked_namespace,
    checked_record,
    in_utc,
    refuse_external,
    superseded_from,
)
from assay.stores.postgres.connection import Connection
from assay.stores.postgres.database import Postgres
from assay.stores.postgres.namespaces import Held, hold
from assay.stores.postgres.postings import Postings, Text, asked
from assay.stores.postgres.rows import opened, optional_microseconds, possible
from assay.stores.protocols import Changes, Ranked
from assay.stores.records import MemoryRecord, Namespace, RecordId
from assay.stores.rows import encoded, microseconds

RECORD_POSTINGS = Postings("record_postings", "records", "record_words")

_MOST_AT_ONCE = 1_000
"""Records inserted by one statement."""

HOLDS = """
(s.since IS NULL OR {at} < s.since)
AND (r.valid_from IS NULL OR r.valid_from <= {at}) AND (r.valid_to IS NULL OR {at} < r.valid_to)
"""
"""Whether the record ``r``, superseded as ``s`` says, holds at the value ``at``."""

_GET = """
SELECT r.id, r.body FROM namespaces n JOIN records r ON r.namespace = n.number
WHERE n.name = $1 AND r.id = ANY($2::text[])
"""
_CURRENT = f"""
SELECT r.body FROM namespaces n JOIN records r ON r.namespace = n.number
LEFT JOIN superseded s ON s.namespace = r.namespace AND s.id = r.id
WHERE n.name = $1 AND {HOLDS.format(at="$2")} ORDER BY r.version
"""  # noqa: S608 - our own words
_CURRENT_AMONG = f"""
SELECT r.body FROM namespaces n CROSS JOIN unnest($3::text[]) WITH ORDINALITY AS a (id, place)
JOIN records r ON r.namespace = n.number AND r.id = a.id
LEFT JOIN superseded s ON s.namespace = r.namespace AND s.id = r.id
WHERE n.name = $1 AND {HOLDS.format(at="$2")} ORDER BY a.place
"""  # noqa: S608 - our own words
_CHANGES = """
SELECT r.version, r.body, NULL FROM namespaces n JOIN records r ON r.namespace = n.number
WHERE n.name = $1 AND r.version > $2
UNION ALL
SELECT t.version, NULL, t.id FROM namespaces n JOIN tombstones t ON t.namespace = n.number
WHERE n.name = $1 AND t.version > $2
ORDER BY 1
"""
_MATCH = f"""
WITH {RECORD_POSTINGS.ranking()}
SELECT r.id, best.score FROM best JOIN namespaces n ON n.name = $1
JOIN records r ON r.namespace = n.number AND r.version = best.number
WHERE best.rank <= $4 ORDER BY best.rank
"""  # noqa: S608 - our own words

_KNOWN = """
SELECT a.place, r.body
FROM unnest($1::integer[], $2::text[]) WITH ORDINALITY AS a (namespace, id, place)
LEFT JOIN tombstones t ON t.namespace = a.namespace AND t.id = a.id
LEFT JOIN records r ON r.namespace = a.namespace AND r.id = a.id
WHERE t.id IS NOT NULL OR r.id IS NOT NULL ORDER BY a.place
"""
_INSERT = """
WITH new AS (
  INSERT INTO records SELECT *
  FROM unnest($1::integer[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bytea[])
)
UPDATE namespaces SET version = newest.version
FROM (SELECT a.number, max(a.version) AS version
  FROM unnest($1::integer[], $2::bigint[]) AS a (number, version) GROUP BY a.number) newest
WHERE namespaces.number = newest.number
"""
_SUPERSEDE = """
INSERT INTO superseded
SELECT namespace, id, min(since)
FROM unnest($1::integer[], $2::text[], $3::bigint[]) AS a (namespace, id, since)
GROUP BY namespace, id
ON CONFLICT (namespace, id) DO UPDATE SET since = least(superseded.since, excluded.since)
"""
_REMOVE = """
DELETE FROM records WHERE namespace = $1 AND id = ANY($2::text[]) RETURNING version, id, body
"""
_BURY = """
WITH buried AS (
  INSERT INTO tombstones SELECT $1, $2 + a.place, a.id
  FROM unnest($3::text[]) WITH ORDINALITY AS a (id, place)
)
UPDATE namespaces SET version = $2 + cardinality($3::text[]),
  -- nothing new to embed: an index that had caught up still has
  embedded = CASE WHEN embedded = version THEN $2 + cardinality($3::text[]) ELSE embedded END
WHERE number = $1
"""


class PostgresRecords:
    """``MemoryStore``, ``KeywordIndex`` and ``CurrentRecords`` over one database.

    Args:
        database: Open.
        embedder: Name of the bank's embedder, to refuse records that may not be sent to it.
    """

    def __init__(self, database: Postgres, *, embedder: str = "") -> None:
        self._database = database
        self._embedder = embedder

    async def write(self, records: Sequence[MemoryRecord]) -> None:
        checked = [checked_record(record) for record in records]
        refuse_external(checked, self._embedder)
        if checked:
            await self._database.write(lambda connection: _write(connection, checked))

    async def get(self, namespace: Namespace, record_ids: Sequence[RecordId]) -> list[MemoryRecord]:
        rows = await self._database.fetch(_GET, checked_namespace(namespace), possible(record_ids))
        bodies = {record_id: body for record_id, body in rows}  # noqa: C416 - rows are no tuples
        for record_id in record_ids:
            if record_id not in bodies:
                raise RecordNotFound(record_id, namespace)
        return [opened(MemoryRecord, bodies[record_id]) for record_id in record_ids]

    async def current(self, namespace: Namespace, *, at: datetime) -> list[MemoryRecord]:
        checked_namespace(namespace)
        rows = await self._database.fetch(_CURRENT, namespace, microseconds(in_utc("at", at)))
        return [opened(MemoryRecord, body) for (body,) in rows]

    async def current_among(
        self, namespace: Namespace, record_ids: Sequence[RecordId], *, at: datetime
    ) -> list[MemoryRecord]:
        """Those of these records that are there and hold at ``at``, in the order asked."""
        checked_namespace(namespace)
        time = microseconds(in_utc("at", at))
        rows = await self._database.fetch(_CURRENT_AMONG, namespace, time, possible(record_ids))
        return [opened(MemoryRecord, body) for (body,) in rows]

    async def changes(self, namespace: Namespace, *, after: int) -> Changes:
        rows = await self._database.fetch(_CHANGES, checked_namespace(namespace), after)
        return Changes(
            records=[opened(MemoryRecord, body) for _, body, _ in rows if body is not None],
            erased=[RecordId(erased) for _, _, erased in rows if erased is not None],
            version=max([after, *(version for version, _, _ in rows)]),
        )

    async def erase(self, namespace: Namespace, record_ids: Sequence[RecordId]) -> int:
        checked_namespace(namespace)
        erased = await self._database.write(
            lambda connection: erase_records(connection, namespace, record_ids)
        )
        return len(erased)

    async def match(self, namespace: Namespace, text: str, *, limit: int) -> list[Ranked]:
        checked_namespace(namespace)
        question = asked([checked_characters("text", text)])
        if checked_limit(limit) == 0 or not question.words:
            return []
        rows = await self._database.fetch(_MATCH, namespace, *question, limit)
        return [Ranked(RecordId(record_id), score) for record_id, score in rows]


# ---- on one connection, in a transaction


async def erase_records(
    connection: Connection, namespace: Namespace, record_ids: Sequence[RecordId]
) -> dict[RecordId, bytes]:
    """Remove records, their words and vectors, and leave tombstones.

    Returns:
        The bodies of those that were there, in order of writing.
    """
    held = (await hold(connection, [namespace]))[namespace]
    rows = await connection.fetch(_REMOVE, held.number, possible(record_ids))
    removed = sorted(rows, key=lambda row: int(row[0]))
    if removed:
        there = {record_id for _, record_id, _ in removed}
        in_turn = [record_id for record_id in dict.fromkeys(record_ids) if record_id in there]
        texts = [Text(number, opened(MemoryRecord, body).text) for number, _, body in removed]
        await RECORD_POSTINGS.remove(connection, held.number, texts)
        await connection.execute(_BURY, held.number, held.version, in_turn)
    return {RecordId(record_id): body for _, record_id, body in removed}


class _Numbered(NamedTuple):
    """A new record with the place it gets."""

    owner: int
    version: int
    record: MemoryRecord


async def _write(connection: Connection, records: Sequence[MemoryRecord]) -> None:
    held = await hold(connection, (record.namespace for record in records))
    new = await _new(connection, held, records)
    # A batch of any size is one transaction, but no statement of it may take too long.
    for start in range(0, len(new), _MOST_AT_ONCE):
        await _insert(connection, new[start : start + _MOST_AT_ONCE])


async def _new(
    connection: Connection, held: dict[Namespace, Held], records: Sequence[MemoryRecord]
) -> list[_Numbered]:
    """The records that are not there yet, each with its version.

    Raises:
        ConflictingWrite: If an id exists with other content, or was erased.
    """
    owners = [held[record.namespace].number for record in records]
    rows = await connection.fetch(_KNOWN, owners, [record.id for record in records])
    bodies: dict[int, bytes | None] = {int(place) - 1: body for place, body in rows}
    known: dict[tuple[Namespace, RecordId], MemoryRecord] = {}
    versions = Counter({namespace: row.version for namespace, row in held.items()})
    new: list[_Numbered] = []
    for place, record in enumerate(records):
        key = record.namespace, record.id
        if place in bodies:
            known[key] = _standing(record.id, bodies[place])
        elif key not in known:
            known[key] = record
            versions[record.namespace] += 1
            new.append(_Numbered(owners[place], versions[record.namespace], record))
        # Compared as values: a later release may write more fields for the same record.
        if known[key] != record:
            raise ConflictingWrite(f"record {record.id!r} exists with other content")
    return new


def _standing(record_id: RecordId, body: bytes | None) -> MemoryRecord:
    if body is None:
        raise ConflictingWrite(f"record {record_id!r} was erased and may not come back")
    return opened(MemoryRecord, body)


async def _insert(connection: Connection, new: Sequence[_Numbered]) -> None:
    columns = [
        (
            owner,
            version,
            record.id,
            optional_microseconds(record.valid_from),
            optional_microseconds(record.valid_to),
            encoded(record),
        )
        for owner, version, record in new
    ]
    await connection.execute(_INSERT, *map(list, zip(*columns, strict=True)))
    successors = [
        (owner, record.supersedes, microseconds(superseded_from(record)))
        for owner, _, record in new
        if record.supersedes is not None
    ]
    if successors:
        await connection.execute(_SUPERSEDE, *map(list, zip(*successors, strict=True)))
    for owner, group in groupby(sorted(new), key=attrgetter("owner")):
        texts = [Text(version, record.text) for _, version, record in group]
        await RECORD_POSTINGS.add(connection, owner, texts)
