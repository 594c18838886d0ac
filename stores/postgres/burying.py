"""What a bank has erased, taken over into another content: it stays erased, and may not come back."""

from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from assay.stores.postgres.archive import erase_turns
from assay.stores.postgres.cache import forget_records
from assay.stores.postgres.connection import Connection, Row
from assay.stores.postgres.eraser import erase_all, note_replacement, put_replacement
from assay.stores.postgres.namespaces import hold
from assay.stores.postgres.records import erase_records
from assay.stores.protocols import Erasure, ReplacedEntry, turn_source
from assay.stores.records import Namespace, RecordId, SessionId, TurnId

_TOMBSTONES = """
SELECT n.name, t.id FROM tombstones t JOIN namespaces n ON n.number = t.namespace ORDER BY 1
"""
_TURNS = """
SELECT n.name, t.id FROM erased_turns t JOIN namespaces n ON n.number = t.namespace ORDER BY 1
"""
_ENTRIES = "SELECT session, sequence, payload FROM erased_entries"
_SUBJECTS = "SELECT id, namespace FROM erased_subjects ORDER BY namespace"

# One that is not there leaves its tombstone too: it may not come back either.
_BURY = """
WITH missing AS (
  SELECT a.id, row_number() OVER (ORDER BY a.place) AS place
  FROM unnest($3::text[]) WITH ORDINALITY AS a (id, place)
  WHERE NOT EXISTS (SELECT FROM tombstones t WHERE t.namespace = $1 AND t.id = a.id)
), buried AS (
  INSERT INTO tombstones SELECT $1, $2 + place, id FROM missing
)
UPDATE namespaces SET version = $2 + (SELECT count(*) FROM missing) WHERE number = $1
"""
_RENUMBER = "DELETE FROM erased_subjects WHERE NOT id = ANY($1::bytea[])"
_NOTE = "INSERT INTO erased_subjects SELECT * FROM unnest($1::bytea[], $2::text[])"
_IS_THERE = """
SELECT 1 FROM journal
WHERE session = (SELECT number FROM sessions WHERE id = $1) AND sequence = $2 AND key_id <> ''
"""


class Buried(NamedTuple):
    """Everything that a bank remembers to have erased, as rows; of ids, not of texts."""

    subjects: list[Row]
    records: list[Row]
    turns: list[Row]
    entries: list[Row]


async def buried(connection: Connection) -> Buried:
    """What this bank has erased."""
    return Buried(
        subjects=await connection.fetch(_SUBJECTS),
        records=await connection.fetch(_TOMBSTONES),
        turns=await connection.fetch(_TURNS),
        entries=await connection.fetch(_ENTRIES),
    )


async def bury(connection: Connection, gone: Buried) -> None:
    """Erase it in the bank as it is now, in the open transaction."""
    await _bury_subjects(connection, gone.subjects)
    for name, rows in groupby(gone.records, key=itemgetter(0)):
        await _bury_records(connection, Namespace(name), [RecordId(row[1]) for row in rows])
    for name, rows in groupby(gone.turns, key=itemgetter(0)):
        turns = [TurnId(row[1]) for row in rows]
        await erase_turns(connection, Namespace(name), turns)
        await forget_records(connection, Namespace(name), list(map(turn_source, turns)))
    for session, sequence, payload in gone.entries:
        await _bury_entry(connection, ReplacedEntry(SessionId(session), sequence, payload))


async def _bury_subjects(connection: Connection, subjects: list[Row]) -> None:
    known = {row[0] for row in await connection.fetch(_SUBJECTS)}
    later = {number: Namespace(name) for number, name in subjects if number not in known}
    erasures = [Erasure(namespace=name, whole=True) for name in sorted(set(later.values()))]
    await erase_all(connection, erasures)
    # Under the numbers they were erased with: a copy taken after that erasure is then left alone.
    await connection.execute(_RENUMBER, list(known))
    await connection.execute(_NOTE, list(later), list(later.values()))


async def _bury_records(
    connection: Connection, namespace: Namespace, records: list[RecordId]
) -> None:
    await forget_records(connection, namespace, records)
    await erase_records(connection, namespace, records)
    held = (await hold(connection, [namespace]))[namespace]
    await connection.execute(_BURY, held.number, held.version, records)


async def _bury_entry(connection: Connection, entry: ReplacedEntry) -> None:
    await note_replacement(connection, entry)
    if await connection.fetchval(_IS_THERE, entry.session, entry.sequence) is not None:
        await put_replacement(connection, entry)
