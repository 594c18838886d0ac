"""The past turns and their full-text index in SQLite."""

import sqlite3
from collections.abc import Sequence
from typing import TypeAlias

from assay.errors import ConflictingWrite
from assay.stores.checks import (
    checked_characters,
    checked_limit,
    checked_namespace,
    checked_turn,
)
from assay.stores.records import ArchiveTurn, Namespace, SessionId, TurnId
from assay.stores.rows import (
    encoded,
    indexed_words,
    match_expression,
    microseconds,
    opened,
    owner_token,
    seal,
)
from assay.stores.sqlite import Database

_Prepared: TypeAlias = tuple[ArchiveTurn, bytes, bytes, str]

_RECENT = """
SELECT body, seal FROM turns WHERE namespace = ? AND session = ?
ORDER BY position DESC, number DESC LIMIT ?
"""
# Not `ORDER BY rank`: it keeps the places of every match and takes half as long again.
_SEARCH = """
SELECT t.body, t.seal FROM (
  SELECT rowid, bm25(turns_words, 0.0, 1.0) AS score FROM turns_words
  WHERE turns_words MATCH ? ORDER BY score, rowid LIMIT ?
) best CROSS JOIN turns t ON t.number = best.rowid ORDER BY best.score, best.rowid
"""
_ALL = "SELECT body, seal FROM turns WHERE namespace = ? ORDER BY at, position, number"


class SqliteArchive:
    """``Archive`` over one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, turns: Sequence[ArchiveTurn]) -> None:
        prepared = [_prepared(checked_turn(turn)) for turn in turns]
        if prepared:
            await self._database.write(lambda connection: _append(connection, prepared))

    async def recent(
        self, namespace: Namespace, session: SessionId, *, limit: int
    ) -> list[ArchiveTurn]:
        checked_characters("session", session)
        newest_first = await self._turns(namespace, _RECENT, session, checked_limit(limit))
        return newest_first[::-1]

    async def search(
        self, namespace: Namespace, texts: Sequence[str], *, limit: int
    ) -> list[list[ArchiveTurn]]:
        checked_namespace(namespace)
        expressions = [match_expression(namespace, checked_characters("text", t)) for t in texts]
        if checked_limit(limit) == 0 or not any(expressions):
            return [[] for _ in texts]

        def work(connection: sqlite3.Connection) -> list[list[ArchiveTurn]]:
            opening = _Opening(namespace)
            return [
                opening.turns(connection.execute(_SEARCH, (expression, limit)))
                if expression
                else []
                for expression in expressions
            ]

        return await self._database.read(work)

    async def all(self, namespace: Namespace) -> list[ArchiveTurn]:
        return await self._turns(namespace, _ALL)

    async def _turns(self, namespace: Namespace, sql: str, *values: object) -> list[ArchiveTurn]:
        checked_namespace(namespace)

        def work(connection: sqlite3.Connection) -> list[ArchiveTurn]:
            return _opened(namespace, connection.execute(sql, (namespace, *values)))

        return await self._database.read(work)


def _opened(namespace: Namespace, rows: sqlite3.Cursor) -> list[ArchiveTurn]:
    return _Opening(namespace).turns(rows)


class _Opening:
    """Rows to turns; a row that several searches of one batch find is opened once."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self._turns: dict[bytes, ArchiveTurn] = {}

    def turns(self, rows: sqlite3.Cursor) -> list[ArchiveTurn]:
        return [self._turn(body, sealed) for body, sealed in rows]

    def _turn(self, body: bytes, sealed: bytes) -> ArchiveTurn:
        turn = self._turns.get(sealed)
        if turn is None:
            turn = self._turns[sealed] = opened(ArchiveTurn, self._namespace, body, sealed)
        return turn


def _prepared(turn: ArchiveTurn) -> _Prepared:
    body = encoded(turn)
    return turn, body, seal(turn.namespace, body), indexed_words(f"{turn.speaker} {turn.text}")


def _append(connection: sqlite3.Connection, batch: Sequence[_Prepared]) -> None:
    for turn, body, sealed, words in batch:
        known = connection.execute(
            "SELECT body, seal FROM turns WHERE namespace = ? AND id = ?", (turn.namespace, turn.id)
        ).fetchone()
        if known is None:
            _refuse_erased(connection, turn)
            _insert(connection, turn, body, sealed, words)
        elif known[0] != body and opened(ArchiveTurn, turn.namespace, *known) != turn:
            raise ConflictingWrite(f"turn {turn.id!r} exists with other content")


def erase_turns(
    connection: sqlite3.Connection, namespace: Namespace, turn_ids: Sequence[TurnId]
) -> int:
    """Remove turns and their words and leave tombstones; gives how many were there."""
    there = sum(_remove(connection, namespace, turn_id) for turn_id in turn_ids)
    connection.executemany(
        "INSERT OR IGNORE INTO erased_turns VALUES (?, ?)",
        [(namespace, turn_id) for turn_id in turn_ids],
    )
    if there:
        # As with records: deleting only marks, merging drops the words.
        connection.execute("INSERT INTO turns_words (turns_words) VALUES ('optimize')")
    return there


def _remove(connection: sqlite3.Connection, namespace: Namespace, turn_id: TurnId) -> bool:
    row = connection.execute(
        "DELETE FROM turns WHERE namespace = ? AND id = ? RETURNING number, body, seal",
        (namespace, turn_id),
    ).fetchone()
    if row is None:
        return False
    number, body, sealed = row
    turn = opened(ArchiveTurn, namespace, body, sealed)
    connection.execute(
        "INSERT INTO turns_words (turns_words, rowid, owner, words) VALUES ('delete', ?, ?, ?)",
        (number, owner_token(namespace), indexed_words(f"{turn.speaker} {turn.text}")),
    )
    return True


def _refuse_erased(connection: sqlite3.Connection, turn: ArchiveTurn) -> None:
    if connection.execute(
        "SELECT 1 FROM erased_turns WHERE namespace = ? AND id = ?", (turn.namespace, turn.id)
    ).fetchone():
        raise ConflictingWrite(f"turn {turn.id!r} was erased and may not come back")


def _insert(
    connection: sqlite3.Connection, turn: ArchiveTurn, body: bytes, sealed: bytes, words: str
) -> None:
    number = connection.execute(
        "INSERT INTO turns (namespace, id, session, position, at, body, seal) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            turn.namespace,
            turn.id,
            turn.session,
            turn.position,
            microseconds(turn.at),
            body,
            sealed,
        ),
    ).lastrowid
    connection.execute(
        "INSERT INTO turns_words (rowid, owner, words) VALUES (?, ?, ?)",
        (number, owner_token(turn.namespace), words),
    )
