"""The past turns and their words in PostgreSQL."""

from collections.abc import Sequence

from assay.errors import ConflictingWrite
from assay.stores.checks import (
    checked_characters,
    checked_limit,
    checked_namespace,
    checked_turn,
)
from assay.stores.postgres.connection import Connection, Row
from assay.stores.postgres.database import Postgres
from assay.stores.postgres.namespaces import hold
from assay.stores.postgres.postings import Postings, Text, asked
from assay.stores.postgres.rows import opened
from assay.stores.records import ArchiveTurn, Namespace, SessionId, TurnId
from assay.stores.rows import encoded, microseconds

TURN_POSTINGS = Postings("turn_postings", "turns", "turn_words")

_RECENT = """
SELECT t.body FROM turns t JOIN namespaces n ON n.number = t.namespace
WHERE n.name = $1 AND t.session = $2 ORDER BY t.position DESC, t.number DESC LIMIT $3
"""
_ALL = """
SELECT t.body FROM turns t JOIN namespaces n ON n.number = t.namespace
WHERE n.name = $1 ORDER BY t.at, t.position, t.number
"""
_SEARCH = f"""
WITH {TURN_POSTINGS.ranking()}
SELECT best.question, t.body FROM best JOIN turns t ON t.number = best.number
WHERE best.rank <= $4 ORDER BY best.question, best.rank
"""  # noqa: S608  # our own names
_KNOWN = "SELECT id, body FROM turns WHERE namespace = $1 AND id = ANY($2)"
_IS_ERASED = "SELECT id FROM erased_turns WHERE namespace = $1 AND id = ANY($2) LIMIT 1"
_INSERT = """
INSERT INTO turns (namespace, id, session, position, at, body)
SELECT $1, * FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bytea[])
RETURNING number
"""
_DELETE = "DELETE FROM turns WHERE namespace = $1 AND id = ANY($2) RETURNING number, body"
_BURY = """
INSERT INTO erased_turns SELECT $1, * FROM unnest($2::text[]) ON CONFLICT DO NOTHING
"""


class PostgresArchive:
    """``Archive`` over one database."""

    def __init__(self, database: Postgres) -> None:
        self._database = database

    async def append(self, turns: Sequence[ArchiveTurn]) -> None:
        checked = [checked_turn(turn) for turn in turns]
        if checked:
            await self._database.write(lambda connection: _append(connection, checked))

    async def recent(
        self, namespace: Namespace, session: SessionId, *, limit: int
    ) -> list[ArchiveTurn]:
        checked_characters("session", session)
        checked_namespace(namespace)
        rows = await self._database.fetch(_RECENT, namespace, session, checked_limit(limit))
        return _turns(rows)[::-1]

    async def search(
        self, namespace: Namespace, texts: Sequence[str], *, limit: int
    ) -> list[list[ArchiveTurn]]:
        checked_namespace(namespace)
        questions = asked([checked_characters("text", text) for text in texts])
        found: list[list[ArchiveTurn]] = [[] for _ in texts]
        if checked_limit(limit) and questions.words:
            for question, body in await self._database.fetch(_SEARCH, namespace, *questions, limit):
                found[int(question)].append(opened(ArchiveTurn, body))
        return found

    async def all(self, namespace: Namespace) -> list[ArchiveTurn]:
        return _turns(await self._database.fetch(_ALL, checked_namespace(namespace)))


async def erase_turns(
    connection: Connection, namespace: Namespace, turn_ids: Sequence[TurnId]
) -> int:
    """Remove turns and their words and leave tombstones; gives how many were there."""
    if not turn_ids:
        return 0
    number = (await hold(connection, [namespace]))[namespace].number
    gone = await connection.fetch(_DELETE, number, turn_ids)
    texts = [_text(row_number, opened(ArchiveTurn, body)) for row_number, body in gone]
    await TURN_POSTINGS.remove(connection, number, texts)
    await connection.execute(_BURY, number, turn_ids)
    return len(gone)


async def _append(connection: Connection, turns: Sequence[ArchiveTurn]) -> None:
    of_namespace: dict[Namespace, list[ArchiveTurn]] = {}
    for turn in turns:
        of_namespace.setdefault(turn.namespace, []).append(turn)
    held = await hold(connection, of_namespace)
    for namespace, written in of_namespace.items():
        await _append_to(connection, held[namespace].number, written)


async def _append_to(connection: Connection, number: int, turns: Sequence[ArchiveTurn]) -> None:
    ids = [turn.id for turn in turns]
    erased = await connection.fetchval(_IS_ERASED, number, ids)
    if erased is not None:
        raise ConflictingWrite(f"turn {erased!r} was erased and may not come back")
    known = {
        row[0]: opened(ArchiveTurn, row[1]) for row in await connection.fetch(_KNOWN, number, ids)
    }
    new = _new_turns(known, turns)
    if new:
        columns = zip(*map(_row, new), strict=True)
        rows = await connection.fetch(_INSERT, number, *map(list, columns))
        texts = [_text(row[0], turn) for row, turn in zip(rows, new, strict=True)]
        await TURN_POSTINGS.add(connection, number, texts)


def _new_turns(known: dict[str, ArchiveTurn], turns: Sequence[ArchiveTurn]) -> list[ArchiveTurn]:
    """Those to be inserted, after a look at those that are there or come twice."""
    new: dict[str, ArchiveTurn] = {}
    for turn in turns:
        standing = known.get(turn.id) or new.setdefault(turn.id, turn)
        if standing != turn:
            raise ConflictingWrite(f"turn {turn.id!r} exists with other content")
    return list(new.values())


def _row(turn: ArchiveTurn) -> tuple[object, ...]:
    return turn.id, turn.session, turn.position, microseconds(turn.at), encoded(turn)


def _text(number: int, turn: ArchiveTurn) -> Text:
    return Text(number, f"{turn.speaker} {turn.text}")


def _turns(rows: Sequence[Row]) -> list[ArchiveTurn]:
    return [opened(ArchiveTurn, row[0]) for row in rows]
