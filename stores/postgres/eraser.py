"""Erasure in PostgreSQL: every row of every place in one transaction; vectors go with their records.

From the commit on no statement finds what was erased. Its bytes leave the server's files later, with
vacuum and the recycling of its log: who may read those files is up to the server's owner.
"""

import os
from collections.abc import Sequence

from assay.stores.postgres.archive import erase_turns
from assay.stores.postgres.cache import forget_all, forget_keys, forget_records
from assay.stores.postgres.connection import Connection
from assay.stores.postgres.database import Postgres
from assay.stores.postgres.journal import replace_entry
from assay.stores.postgres.namespaces import hold
from assay.stores.postgres.records import erase_records
from assay.stores.postgres.subject_keys import hold_subjects, key_for
from assay.stores.protocols import Erased, Erasure, JournalEntry, ReplacedEntry, turn_source
from assay.stores.records import Namespace, RecordId, TurnId
from assay.stores.subject_keys import owner_named

_ID_BYTES = 16

_NAMESPACES = """
SELECT name FROM namespaces WHERE records > 0 OR turns > 0
UNION SELECT DISTINCT namespace FROM cache ORDER BY 1
"""
_RECORDS = """
SELECT r.id FROM records r JOIN namespaces n ON n.number = r.namespace
WHERE n.name = $1 ORDER BY r.version
"""
_TURNS = """
SELECT t.id FROM turns t JOIN namespaces n ON n.number = t.namespace WHERE n.name = $1
"""
_ERASE_ENTRIES = """
UPDATE journal j SET payload = '', key_id = '' FROM sessions s
WHERE s.number = j.session AND (s.id = $1 OR starts_with(s.id, $1 || '/')) AND j.key_id <> ''
RETURNING 1
"""
# What people said about the records, without any text: it begins anew when the user comes back.
_ERASE_REVIEWS = (
    "DELETE FROM journal WHERE session = (SELECT number FROM sessions WHERE id = $1 || '/')"
)
_ERASE_KEY = "DELETE FROM subject_keys WHERE owner = $1"
_ERASE_REPLACEMENTS = "DELETE FROM erased_entries WHERE starts_with(session, $1 || '/')"
_ERASE_NEWS = "DELETE FROM outbox WHERE namespace = $1"
_NOTE = "INSERT INTO erased_subjects VALUES ($1, $2)"
_NOTE_REPLACEMENT = """
INSERT INTO erased_entries VALUES ($1, $2, $3)
ON CONFLICT (session, sequence) DO UPDATE SET payload = excluded.payload
"""


class PostgresEraser:
    """``Eraser`` over one database."""

    def __init__(self, database: Postgres) -> None:
        self._database = database

    async def erase(self, erasures: Sequence[Erasure]) -> list[Erased]:
        return await self._database.write(lambda connection: erase_all(connection, erasures))

    async def finish(self) -> int:
        return 0

    async def namespaces(self) -> list[Namespace]:
        return [Namespace(row[0]) for row in await self._database.fetch(_NAMESPACES)]

    async def secret(self) -> bytes:
        return bytes.fromhex(await self._database.set_meta_once("receipts", os.urandom(32).hex()))


# ---- on one connection, in a transaction


async def erase_all(connection: Connection, erasures: Sequence[Erasure]) -> list[Erased]:
    """Erase rows and leave tombstones; nobody appends to these subjects meanwhile."""
    namespaces = [erasure.namespace for erasure in erasures]
    await hold_subjects(connection, map(owner_named, namespaces))
    await hold(connection, namespaces)
    return [await _erase(connection, erasure) for erasure in erasures]


async def note_replacement(connection: Connection, entry: ReplacedEntry) -> None:
    """Remember what is left of an entry, so that a restored backup is mended too."""
    await connection.execute(_NOTE_REPLACEMENT, *entry)


async def put_replacement(connection: Connection, entry: ReplacedEntry) -> bool:
    """Put what is left of an entry in its place; tells whether it was there."""
    key = await key_for(connection, entry.session)
    payload = key.sealed(*entry)
    return await replace_entry(
        connection, entry.session, JournalEntry(entry.sequence, payload), key.id
    )


async def _erase(connection: Connection, erasure: Erasure) -> Erased:
    namespace = erasure.namespace
    if erasure.whole:
        return await _erase_subject(connection, namespace)
    sources = (*erasure.record_ids, *map(turn_source, erasure.turn_ids))
    cache_rows = await forget_keys(connection, namespace, erasure.cache_keys)
    cache_rows += await forget_records(connection, namespace, sources)
    for entry in erasure.entries:
        await note_replacement(connection, entry)
    entries = [await put_replacement(connection, entry) for entry in erasure.entries]
    turns = await erase_turns(connection, namespace, erasure.turn_ids)
    bodies = await erase_records(connection, namespace, erasure.record_ids)
    return Erased(bodies=bodies, turns=turns, entries=sum(entries), cache_rows=cache_rows)


async def _erase_subject(connection: Connection, namespace: Namespace) -> Erased:
    records = [RecordId(row[0]) for row in await connection.fetch(_RECORDS, namespace)]
    turns = [TurnId(row[0]) for row in await connection.fetch(_TURNS, namespace)]
    erased = Erased(
        bodies=await erase_records(connection, namespace, records),
        turns=await erase_turns(connection, namespace, turns),
        entries=await _erase_journal(connection, namespace),
        cache_rows=await forget_all(connection, namespace),
    )
    await connection.execute(_NOTE, os.urandom(_ID_BYTES), namespace)
    return erased


async def _erase_journal(connection: Connection, namespace: Namespace) -> int:
    owner = owner_named(namespace)
    entries = await connection.fetch(_ERASE_ENTRIES, owner)
    for statement in (_ERASE_REVIEWS, _ERASE_KEY, _ERASE_REPLACEMENTS):
        await connection.execute(statement, owner)
    await connection.execute(_ERASE_NEWS, namespace)
    return len(entries)
