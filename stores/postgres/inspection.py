"""Whether a bank in PostgreSQL is as written; reads every row of it, changes nothing."""

from collections.abc import Callable, Sequence
from typing import Any

from assay.errors import StoreCorrupt
from assay.stores.inspection import BankFile, Inspection, NamespaceCounts
from assay.stores.postgres.backup import TABLES, existing_database
from assay.stores.postgres.connection import Row
from assay.stores.postgres.database import Postgres
from assay.stores.postgres.rows import opened
from assay.stores.records import ArchiveTurn, MemoryRecord, SessionId
from assay.stores.subject_keys import SubjectKey

_LONG_SECONDS = 3600.0
_PAGE_ROWS = 2000
_MOST_FINDINGS = 100

_FORMAT = "SELECT version, current_setting('data_checksums') FROM format"
_SIZES = """
SELECT name, pg_total_relation_size(to_regclass(name)) FROM unnest($1::text[]) AS name
"""
_COUNTS = """
SELECT coalesce(n.name, c.namespace) AS name, coalesce(n.records, 0),
  (SELECT count(*) FROM tombstones t WHERE t.namespace = n.number),
  coalesce(n.turns, 0), coalesce(c.answers, 0),
  CASE WHEN n.embedded >= n.version THEN 'current' WHEN n.embedded > 0 THEN 'behind' ELSE 'absent' END
FROM namespaces n FULL JOIN (
  SELECT namespace, count(*) AS answers FROM cache GROUP BY namespace
) c ON c.namespace = n.name ORDER BY 1
"""
_JOURNAL = "SELECT count(*) FROM journal"
_UNLISTED = {
    "namespaces that count their records wrongly": (
        "SELECT count(*) FROM namespaces n "
        "WHERE records <> (SELECT count(*) FROM records WHERE namespace = n.number)"
    ),
    "namespaces that count their turns wrongly": (
        "SELECT count(*) FROM namespaces n "
        "WHERE turns <> (SELECT count(*) FROM turns WHERE namespace = n.number)"
    ),
    "words of records that are not there": (
        "SELECT count(*) FROM record_postings p WHERE NOT EXISTS "
        "(SELECT FROM records r WHERE r.namespace = p.namespace AND r.version = p.number)"
    ),
    "words of archived turns that are not there": (
        "SELECT count(*) FROM turn_postings p WHERE NOT EXISTS "
        "(SELECT FROM turns t WHERE t.number = p.number)"
    ),
    "journal entries after a gap": (
        "SELECT count(*) FROM (SELECT count(*) AS n, max(sequence) + 1 AS m FROM journal "
        "GROUP BY session) s WHERE n <> m"
    ),
}
# Each gives two numbers by which it goes on, and what the row is made of.
_RECORDS = """
SELECT namespace, version, body FROM records
WHERE (namespace, version) > ($1, $2) ORDER BY namespace, version LIMIT $3
"""
_TURNS = """
SELECT number, 0, body FROM turns WHERE number > $1 AND $2 <= 0 ORDER BY number LIMIT $3
"""
_ENTRIES = """
SELECT j.session, j.sequence, j.payload, j.key_id, s.id, k.id, k.key
FROM journal j JOIN sessions s ON s.number = j.session
LEFT JOIN subject_keys k ON k.owner = split_part(s.id, '/', 1)
WHERE (j.session, j.sequence) > ($1, $2) ORDER BY j.session, j.sequence LIMIT $3
"""


async def inspect_database(url: str) -> Inspection:
    """Look at every row of the bank in a database; it may be in use meanwhile.

    Its pages are checked by the server as they are read, if it was made with checksums.

    Raises:
        NewerFormat: If a newer Assay made it unreadable for this one.
        StoreError: If there is no bank, or the server cannot be used.
    """
    async with existing_database(url) as database:
        damage = [
            *await _miscounted(database),
            *await _damaged(database, "record", _RECORDS, _check_record),
            *await _damaged(database, "archived turn", _TURNS, _check_turn),
            *await _damaged(database, "entry of the journal", _ENTRIES, _check_entry),
        ][:_MOST_FINDINGS]
        [[version, checksums]] = await database.fetch(_FORMAT)
        sizes = await database.fetch(_SIZES, [*TABLES, "leases", "outbox"])
        [[entries]] = await _fetch(database, _JOURNAL)
        return Inspection(
            path=database.name,
            ok=not damage,
            format=version,
            integrity="ok" if checksums == "on" else "not known: the server has no data_checksums",
            commits=None,
            noted_commits=None,
            files=tuple(BankFile(name=name, bytes=size) for name, size in sizes),
            namespaces={
                name: _counted(counts) for name, *counts in await _fetch(database, _COUNTS)
            },
            journal=entries,
            damage=tuple(damage),
        )


def _counted(counts: Sequence[Any]) -> NamespaceCounts:
    records, erased, turns, cache, index = counts
    return NamespaceCounts(records=records, erased=erased, turns=turns, cache=cache, index=index)


async def _fetch(database: Postgres, sql: str, *values: object) -> list[Row]:
    return await database.read(
        lambda connection: connection.fetch(sql, *values, timeout=_LONG_SECONDS)
    )


async def _miscounted(database: Postgres) -> list[str]:
    counted = [(what, (await _fetch(database, sql))[0][0]) for what, sql in _UNLISTED.items()]
    return [f"{count:,} {what}" for what, count in counted if count]


async def _damaged(
    database: Postgres, what: str, sql: str, check: Callable[[Row], None]
) -> list[str]:
    """Which rows cannot be read, by their two numbers."""
    found: list[str] = []
    place = (-1, -1)
    while rows := await _fetch(database, sql, *place, _PAGE_ROWS):
        for row in rows:
            place = (int(row[0]), int(row[1]))
            try:
                check(row)
            except StoreCorrupt as error:
                found.append(f"{what} {place[0]}.{place[1]}: {error}")
    return found


def _check_record(row: Row) -> None:
    opened(MemoryRecord, row[2])


def _check_turn(row: Row) -> None:
    opened(ArchiveTurn, row[2])


def _check_entry(row: Row) -> None:
    _, sequence, payload, key_id, session, known_id, key = row
    if key_id and key_id != known_id:
        raise StoreCorrupt("the key it is encrypted with is not there")
    if key_id:
        SubjectKey(known_id, key).opened(SessionId(session), sequence, payload)
