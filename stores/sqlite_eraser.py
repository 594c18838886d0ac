"""Erasure in SQLite: every row in one transaction, then what lies outside of the rows.

The transaction leaves a note; it is taken away when log and vectors are clean too, so an erasure
that a crash cut short is finished when the bank is opened next.
"""

import os
import sqlite3
from collections.abc import Sequence

import msgspec

from assay.stores.faiss import FaissIndex
from assay.stores.protocols import Erased, Erasure, JournalEntry, ReplacedEntry, turn_source
from assay.stores.records import Namespace, RecordId, SessionId, TurnId
from assay.stores.sqlite import Database
from assay.stores.sqlite_archive import erase_turns
from assay.stores.sqlite_cache import forget_keys, forget_records
from assay.stores.sqlite_journal import replace_entry
from assay.stores.sqlite_records import erase_records
from assay.stores.subject_keys import key_for, owner_named

_ID_BYTES = 16

_ENTRIES = """
SELECT s.id, j.sequence FROM sessions s JOIN journal j ON j.session = s.number
WHERE (substr(s.id, 1, length(:start)) = :start OR s.id = :owner) AND j.key_id IS NOT x''
"""
_NAMESPACES = """
SELECT namespace FROM records UNION SELECT namespace FROM turns UNION SELECT namespace FROM cache
ORDER BY namespace
"""


class SqliteEraser:
    """``Eraser`` over one database and its vectors."""

    def __init__(self, database: Database, index: FaissIndex) -> None:
        self._database = database
        self._index = index

    async def erase(self, erasures: Sequence[Erasure]) -> list[Erased]:
        erased = await self._database.write(
            lambda connection: [erase_rows(connection, erasure) for erasure in erasures]
        )
        await self.finish()
        return erased

    async def finish(self) -> int:
        unfinished = await self._database.read(_unfinished)
        for namespace in unfinished:
            await self._index.purge(namespace)
        if unfinished:
            await self._database.truncate_log()
            await self._database.write(lambda connection: _finished(connection, unfinished))
        return len(unfinished)

    async def namespaces(self) -> list[Namespace]:
        return await self._database.read(
            lambda connection: [Namespace(row[0]) for row in connection.execute(_NAMESPACES)]
        )

    async def secret(self) -> bytes:
        key = await self._database.set_meta_once("receipts", os.urandom(32).hex())
        return bytes.fromhex(key)


# ---- in a thread, in one transaction


def erase_rows(connection: sqlite3.Connection, erasure: Erasure) -> Erased:
    """Erase rows, leave tombstones, and note what is left to do."""
    namespace = erasure.namespace
    if erasure.whole:
        erased = erase_subject(connection, namespace)
    else:
        known = set(erasure.record_ids)
        bodies = _bodies(
            connection, namespace, [i for i in _ids(connection, namespace) if i in known]
        )
        sources = (*erasure.record_ids, *map(turn_source, erasure.turn_ids))
        cache_rows = forget_keys(connection, namespace, erasure.cache_keys)
        cache_rows += forget_records(connection, namespace, sources)
        entries = sum(_replace(connection, entry) for entry in erasure.entries)
        turns = erase_turns(connection, namespace, erasure.turn_ids)
        erase_records(connection, namespace, list(erasure.record_ids))
        erased = Erased(bodies=bodies, turns=turns, entries=entries, cache_rows=cache_rows)
    connection.execute("INSERT INTO unfinished_erasures (namespace) VALUES (?)", (namespace,))
    return erased


def erase_subject(connection: sqlite3.Connection, namespace: Namespace) -> Erased:
    """Erase all of a subject that is in the rows, the key of its journal included."""
    ids = _ids(connection, namespace)
    bodies = _bodies(connection, namespace, ids)
    erase_records(connection, namespace, ids)
    turns = connection.execute("SELECT id FROM turns WHERE namespace = ?", (namespace,)).fetchall()
    erase_turns(connection, namespace, [TurnId(row[0]) for row in turns])
    keys = connection.execute("SELECT key FROM cache WHERE namespace = ?", (namespace,)).fetchall()
    cache_rows = forget_keys(connection, namespace, [row[0] for row in keys])
    entries = _erase_journal(connection, namespace)
    connection.execute(
        "INSERT INTO erased_subjects VALUES (?, ?)", (os.urandom(_ID_BYTES), namespace)
    )
    return Erased(bodies=bodies, turns=len(turns), entries=entries, cache_rows=cache_rows)


def _erase_journal(connection: sqlite3.Connection, namespace: Namespace) -> int:
    owner = owner_named(namespace)
    own = f"{owner}/"
    entries = connection.execute(_ENTRIES, {"owner": owner, "start": own}).fetchall()
    for session, sequence in entries:
        replace_entry(connection, SessionId(session), JournalEntry(sequence, b""), b"")
    # What people said about the records, without any text: it begins anew when the user comes back.
    connection.execute(
        "DELETE FROM journal WHERE session = (SELECT number FROM sessions WHERE id = ?)", (own,)
    )
    connection.execute("DELETE FROM subject_keys WHERE owner = ?", (owner,))
    connection.execute(
        "DELETE FROM erased_entries WHERE substr(session, 1, length(?)) = ?", (own, own)
    )
    return len(entries)


def _replace(connection: sqlite3.Connection, entry: ReplacedEntry) -> bool:
    connection.execute(
        "INSERT INTO erased_entries VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET payload = excluded.payload",
        (entry.session, entry.sequence, entry.payload),
    )
    return put_replacement(connection, entry)


def put_replacement(connection: sqlite3.Connection, entry: ReplacedEntry) -> bool:
    """Put what is left of an entry in its place; tells whether it was there."""
    key = key_for(connection, entry.session)
    payload = key.sealed(entry.session, entry.sequence, entry.payload)
    return replace_entry(connection, entry.session, JournalEntry(entry.sequence, payload), key.id)


def _ids(connection: sqlite3.Connection, namespace: Namespace) -> list[RecordId]:
    rows = connection.execute(
        "SELECT id FROM records WHERE namespace = ? ORDER BY version", (namespace,)
    )
    return [RecordId(row[0]) for row in rows]


def _bodies(
    connection: sqlite3.Connection, namespace: Namespace, ids: Sequence[RecordId]
) -> dict[RecordId, bytes]:
    rows = connection.execute(
        "SELECT r.id, r.body FROM json_each(?) asked "
        "CROSS JOIN records r ON r.namespace = ? AND r.id = asked.value",
        (msgspec.json.encode(ids).decode(), namespace),
    )
    return {RecordId(record_id): body for record_id, body in rows}


def _unfinished(connection: sqlite3.Connection) -> list[Namespace]:
    rows = connection.execute("SELECT DISTINCT namespace FROM unfinished_erasures")
    return [Namespace(row[0]) for row in rows]


def _finished(connection: sqlite3.Connection, namespaces: Sequence[Namespace]) -> None:
    connection.executemany(
        "DELETE FROM unfinished_erasures WHERE namespace = ?", [(n,) for n in namespaces]
    )
