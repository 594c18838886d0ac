"""Durable events in PostgreSQL; what was appended stands in the outbox, in the same transaction.

Who appends takes the stream before its first write, so a transaction's number (``xid8``) is drawn
while it holds the stream: the numbers of one stream are in the order of its entries.
"""

from collections.abc import Sequence
from typing import NamedTuple

from assay.errors import ConflictingWrite, ErasedInput
from assay.stores.checks import checked_text
from assay.stores.memory_leases import lease_lost
from assay.stores.postgres.connection import Connection
from assay.stores.postgres.database import Postgres
from assay.stores.postgres.outbox import ANNOUNCING, announcement, forget_old
from assay.stores.postgres.subject_keys import hold_stream, key_for
from assay.stores.protocols import JournalEntry, Lease
from assay.stores.records import SessionId
from assay.stores.subject_keys import SubjectKey, owner_of

# The lease's row is locked: the session changes hands before or after this transaction, not within.
_STREAM = """
SELECT s.number,
  (SELECT coalesce(max(sequence) + 1, 0) FROM journal WHERE session = s.number),
  EXISTS (SELECT FROM journal WHERE session = s.number AND sequence = 0 AND key_id = ''),
  k.id, k.key,
  (SELECT revision FROM (
    SELECT revision FROM leases WHERE session = $3 AND owner = $4 AND revision = $5 FOR SHARE
  ) held)
FROM (VALUES (1)) one LEFT JOIN sessions s ON s.id = $1 LEFT JOIN subject_keys k ON k.owner = $2
"""
_NEW_SESSION = "INSERT INTO sessions (id) VALUES ($1) RETURNING number"
_READ = """
SELECT j.sequence, j.payload, j.key_id, k.id, k.key
FROM sessions s JOIN journal j ON j.session = s.number LEFT JOIN subject_keys k ON k.owner = $2
WHERE s.id = $1 AND j.sequence > $3 ORDER BY j.sequence
"""
_TAKEN = "SELECT sequence, payload, key_id FROM journal WHERE session = $1 AND sequence = ANY($2)"
_INSERT = f"""
WITH written AS (
  INSERT INTO journal (session, sequence, payload, key_id)
  SELECT $5, given.sequence, given.payload, $7
  FROM unnest($2::bigint[], $6::bytea[]) AS given (sequence, payload)
), {ANNOUNCING}
"""  # noqa: S608  # our own words
_SESSIONS = """
SELECT id FROM sessions s WHERE NOT EXISTS (
  SELECT FROM journal WHERE session = s.number AND sequence = 0 AND key_id = ''
) ORDER BY number
"""
_REPLACE = """
UPDATE journal SET payload = $3, key_id = $4
WHERE sequence = $2 AND session = (SELECT number FROM sessions WHERE id = $1) RETURNING 1
"""


class PostgresJournal:
    """``Journal`` over one database; payloads are encrypted with the key of their subject.

    Args:
        database: Where.
        fence: Append only while this lease is in the hands of its owner.
    """

    def __init__(self, database: Postgres, *, fence: Lease | None = None) -> None:
        self._database = database
        self._fence = fence

    async def append(self, session: SessionId, entries: Sequence[JournalEntry]) -> None:
        checked_text("session", session)
        if entries:
            await self._database.write(
                lambda connection: append_entries(connection, session, entries, self._fence)
            )

    async def read(self, session: SessionId, *, after: int = -1) -> list[JournalEntry]:
        checked_text("session", session)
        rows = await self._database.read(
            lambda connection: connection.fetch(_READ, session, owner_of(session), after)
        )
        return [
            _opened(session, None if key is None else SubjectKey(known_id, key), *row)
            for *row, known_id, key in rows
        ]

    async def sessions(self) -> list[SessionId]:
        rows = await self._database.read(lambda connection: connection.fetch(_SESSIONS))
        return [SessionId(row[0]) for row in rows]

    def fenced(self, lease: Lease) -> "PostgresJournal":
        """This journal for as long as the lease is in the hands of its owner."""
        return PostgresJournal(self._database, fence=lease)


async def replace_entry(
    connection: Connection, session: SessionId, entry: JournalEntry, key_id: bytes
) -> bool:
    """Put other content in the place of an entry; tells whether it was there.

    Args:
        connection: In a transaction.
        session: The entry's session.
        entry: What is to stand there, as it is stored.
        key_id: Of the key it is encrypted with; empty: nothing is left of it.
    """
    found = await connection.fetchval(_REPLACE, session, entry.sequence, entry.payload, key_id)
    return found is not None


class _Stream(NamedTuple):
    number: int
    length: int
    key: SubjectKey


async def append_entries(
    connection: Connection, session: SessionId, entries: Sequence[JournalEntry], fence: Lease | None
) -> None:
    """Append in the open transaction, which holds the stream, and the lease, until it ends.

    Raises:
        ConflictingWrite: As ``Journal.append`` does.
        ErasedInput: If the stream was erased.
        LeaseLost: If the session changed hands.
    """
    await hold_stream(connection, session)
    stream = await _stream(connection, session, fence)
    standing = await _standing(connection, session, stream, entries)
    new = _new_entries(session, standing, stream.length, entries)
    if new:
        sequences = [entry.sequence for entry in new]
        payloads = [stream.key.sealed(session, *entry) for entry in new]
        told = announcement(session, sequences)
        newest = await connection.fetchval(_INSERT, *told, stream.number, payloads, stream.key.id)
        await forget_old(connection, newest, len(new))


async def _stream(connection: Connection, session: SessionId, fence: Lease | None) -> _Stream:
    row = await connection.fetchrow(
        _STREAM, session, owner_of(session), *(fence or (None, None, None))
    )
    number, length, is_erased, key_id, key, revision = row
    if fence is not None and revision is None:
        raise lease_lost(fence)
    if is_erased:
        raise ErasedInput(f"erased input: session {session!r} was erased; begin a new one")
    if number is None:
        number = await connection.fetchval(_NEW_SESSION, session)
    known = await key_for(connection, session) if key is None else SubjectKey(key_id, key)
    return _Stream(number, length or 0, known)


async def _standing(
    connection: Connection, session: SessionId, stream: _Stream, entries: Sequence[JournalEntry]
) -> dict[int, JournalEntry]:
    """Those of the entries' numbers that are taken, by number."""
    taken = [entry.sequence for entry in entries if 0 <= entry.sequence < stream.length]
    rows = await connection.fetch(_TAKEN, stream.number, taken) if taken else []
    return {row[0]: _opened(session, stream.key, *row) for row in rows}


def _new_entries(
    session: SessionId,
    standing: dict[int, JournalEntry],
    length: int,
    entries: Sequence[JournalEntry],
) -> list[JournalEntry]:
    """Those to be appended to a stream of this length, after a look at all of them."""
    new: list[JournalEntry] = []
    for entry in entries:
        expected = length + len(new)
        if entry.sequence == expected:
            new.append(entry)
        elif not 0 <= entry.sequence < expected:
            raise ConflictingWrite(
                f"session {session!r} expects entry {expected} next, got {entry.sequence}"
            )
        elif entry != (standing.get(entry.sequence) or new[entry.sequence - length]):
            raise ConflictingWrite(
                f"entry {entry.sequence} of session {session!r} exists with other content"
            )
    return new


def _opened(
    session: SessionId, key: SubjectKey | None, sequence: int, payload: bytes, key_id: bytes
) -> JournalEntry:
    if key is None or key.id != key_id:
        raise ErasedInput(f"erased input: entry {sequence} of session {session!r}; begin a new one")
    return JournalEntry(sequence, key.opened(session, sequence, payload))
