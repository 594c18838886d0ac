"""Durable events in SQLite."""

import sqlite3
from collections.abc import Sequence
from typing import TypeAlias

from assay.errors import ConflictingWrite, ErasedInput
from assay.stores.checks import checked_text
from assay.stores.protocols import JournalEntry
from assay.stores.records import SessionId
from assay.stores.rows import check_seal, one_int, seal
from assay.stores.sqlite import Database
from assay.stores.subject_keys import SubjectKey, key_for, subject_key

_Row: TypeAlias = tuple[int, bytes, bytes, bytes | None]
"""Sequence, payload, seal and id of the key."""

_SESSIONS = """
SELECT id FROM sessions s WHERE NOT EXISTS (
  SELECT 1 FROM journal j WHERE j.session = s.number AND j.sequence = 0 AND j.key_id = x''
) ORDER BY number
"""


class SqliteJournal:
    """``Journal`` over one database; payloads are encrypted with the key of their subject."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, session: SessionId, entries: Sequence[JournalEntry]) -> None:
        checked_text("session", session)
        if entries:
            await self._database.write(lambda connection: _append(connection, session, entries))

    async def read(self, session: SessionId, *, after: int = -1) -> list[JournalEntry]:
        checked_text("session", session)

        def work(connection: sqlite3.Connection) -> list[JournalEntry]:
            rows = connection.execute(
                "SELECT sequence, payload, seal, key_id FROM journal WHERE sequence > ? "
                "AND session = (SELECT number FROM sessions WHERE id = ?) ORDER BY sequence",
                (after, session),
            )
            entries = rows.fetchall()
            key = subject_key(connection, session)
            return [_opened(session, key, row) for row in entries]

        return await self._database.read(work)

    async def sessions(self) -> list[SessionId]:
        return await self._database.read(
            lambda connection: [SessionId(row[0]) for row in connection.execute(_SESSIONS)]
        )


def _opened(session: SessionId, key: SubjectKey | None, row: _Row) -> JournalEntry:
    sequence, payload, sealed, key_id = row
    check_seal(sealed, session, str(sequence), payload)
    if key_id is None:
        return JournalEntry(sequence, payload)
    if key is None or key.id != key_id:
        raise ErasedInput(f"erased input: entry {sequence} of session {session!r}; begin a new one")
    return JournalEntry(sequence, key.opened(session, sequence, payload))


def replace_entry(
    connection: sqlite3.Connection, session: SessionId, entry: JournalEntry, key_id: bytes | None
) -> bool:
    """Put other content in the place of an entry; tells whether it was there.

    Args:
        connection: In a transaction.
        session: The entry's session.
        entry: What is to stand there, as it is stored.
        key_id: Of the key it is encrypted with; empty: nothing is left of it.
    """
    sealed = seal(session, str(entry.sequence), entry.payload)
    return bool(
        connection.execute(
            "UPDATE journal SET payload = ?, seal = ?, key_id = ? WHERE sequence = ? "
            "AND session = (SELECT number FROM sessions WHERE id = ?)",
            (entry.payload, sealed, key_id, entry.sequence, session),
        ).rowcount
    )


def _append(
    connection: sqlite3.Connection, session: SessionId, entries: Sequence[JournalEntry]
) -> None:
    connection.execute("INSERT OR IGNORE INTO sessions (id) VALUES (?)", (session,))
    number = one_int(connection, "SELECT number FROM sessions WHERE id = ?", (session,))
    _refuse_erased(connection, session, number)
    length = one_int(
        connection, "SELECT max(sequence) + 1 FROM journal WHERE session = ?", (number,)
    )
    key = key_for(connection, session)
    for entry in entries:
        if entry.sequence == length:
            payload = key.sealed(session, *entry)
            sealed = seal(session, str(entry.sequence), payload)
            connection.execute(
                "INSERT INTO journal (session, sequence, payload, seal, key_id) "
                "VALUES (?, ?, ?, ?, ?)",
                (number, entry.sequence, payload, sealed, key.id),
            )
            length += 1
        elif not 0 <= entry.sequence < length:
            raise ConflictingWrite(
                f"session {session!r} expects entry {length} next, got {entry.sequence}"
            )
        else:
            _check_same(connection, session, number, key, entry)


def _refuse_erased(connection: sqlite3.Connection, session: SessionId, number: int) -> None:
    if connection.execute(
        "SELECT 1 FROM journal WHERE session = ? AND sequence = 0 AND key_id = x''", (number,)
    ).fetchone():
        raise ErasedInput(f"erased input: session {session!r} was erased; begin a new one")


def _check_same(
    connection: sqlite3.Connection,
    session: SessionId,
    number: int,
    key: SubjectKey,
    entry: JournalEntry,
) -> None:
    row = connection.execute(
        "SELECT sequence, payload, seal, key_id FROM journal WHERE session = ? AND sequence = ?",
        (number, entry.sequence),
    ).fetchone()
    if _opened(session, key, row).payload != entry.payload:
        raise ConflictingWrite(
            f"entry {entry.sequence} of session {session!r} exists with other content"
        )
