"""Durable events in SQLite."""

import sqlite3
from collections.abc import Sequence

from assay.errors import ConflictingWrite
from assay.stores.checks import checked_text
from assay.stores.protocols import JournalEntry
from assay.stores.records import SessionId
from assay.stores.rows import check_seal, one_int, seal
from assay.stores.sqlite import Database


class SqliteJournal:
    """``Journal`` over one database."""

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
                "SELECT sequence, payload, seal FROM journal WHERE sequence > ? "
                "AND session = (SELECT number FROM sessions WHERE id = ?) ORDER BY sequence",
                (after, session),
            )
            return [_opened(session, *row) for row in rows]

        return await self._database.read(work)

    async def sessions(self) -> list[SessionId]:
        return await self._database.read(
            lambda connection: [
                SessionId(row[0])
                for row in connection.execute("SELECT id FROM sessions ORDER BY number")
            ]
        )


def _opened(session: SessionId, sequence: int, payload: bytes, sealed: bytes) -> JournalEntry:
    check_seal(sealed, session, str(sequence), payload)
    return JournalEntry(sequence, payload)


def _append(
    connection: sqlite3.Connection, session: SessionId, entries: Sequence[JournalEntry]
) -> None:
    connection.execute("INSERT OR IGNORE INTO sessions (id) VALUES (?)", (session,))
    number = one_int(connection, "SELECT number FROM sessions WHERE id = ?", (session,))
    length = one_int(
        connection, "SELECT max(sequence) + 1 FROM journal WHERE session = ?", (number,)
    )
    for entry in entries:
        if entry.sequence == length:
            sealed = seal(session, str(entry.sequence), entry.payload)
            connection.execute("INSERT INTO journal VALUES (?, ?, ?, ?)", (number, *entry, sealed))
            length += 1
        elif not 0 <= entry.sequence < length:
            raise ConflictingWrite(
                f"session {session!r} expects entry {length} next, got {entry.sequence}"
            )
        else:
            _check_same(connection, session, number, entry)


def _check_same(
    connection: sqlite3.Connection, session: SessionId, number: int, entry: JournalEntry
) -> None:
    row = connection.execute(
        "SELECT payload FROM journal WHERE session = ? AND sequence = ?", (number, entry.sequence)
    ).fetchone()
    if row[0] != entry.payload:
        raise ConflictingWrite(
            f"entry {entry.sequence} of session {session!r} exists with other content"
        )
