"""What was appended, in an order to which nothing is ever added before what was read.

Rows are not committed in the order of their numbers: who remembers the highest number seen misses
those committed later under a lower one. Each row carries its transaction's number, and is read
only when every transaction up to that number has ended (``pg_snapshot_xmin``).
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from assay.errors import StoreError
from assay.stores.checks import checked_limit
from assay.stores.postgres.connection import Connection
from assay.stores.postgres.database import Postgres
from assay.stores.protocols import Appended, Wait
from assay.stores.records import Namespace, SessionId
from assay.stores.subject_keys import namespace_of

KEPT = 100_000
"""How many rows stay when nobody reads them: a bank may have no bus."""

_TRIM_EVERY = 10_000

_CHANNEL = "assay_appended"

# A notification makes commits wait for one another, so there is one only when all was told before:
# a reader that is behind looks again by itself, and without a reader there is none.
ANNOUNCING = """
announced AS (
  INSERT INTO outbox (session, sequence, namespace)
  SELECT $1, appended, $3 FROM unnest($2::bigint[]) AS appended RETURNING number
)
SELECT max(number), CASE
  WHEN (SELECT number FROM outbox ORDER BY number LIMIT 1) IS NULL THEN pg_notify($4, '')
END FROM announced
"""
"""The end of a statement that appends: gives the newest row's number; ``announcement`` its values."""

_FORGET = "DELETE FROM outbox WHERE number <= $1"
_READ = """
SELECT session, sequence, namespace, transaction::text, number FROM outbox
WHERE (transaction, number) > ($1::text::xid8, $2)
  AND transaction < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY transaction, number LIMIT $3
"""
_TRIM = """
WITH gone AS (
  DELETE FROM outbox WHERE (transaction, number) <= ($1::text::xid8, $2) RETURNING 1
)
SELECT count(*) FROM gone
"""


class PostgresOutbox:
    """``Outbox`` over one database."""

    def __init__(self, database: Postgres) -> None:
        self._database = database

    async def read(self, *, after: str = "", limit: int) -> list[Appended]:
        rows = await self._database.fetch(_READ, *_place(after), checked_limit(limit))
        return [
            Appended(SessionId(session), sequence, Namespace(namespace), f"{transaction}.{number}")
            for session, sequence, namespace, transaction, number in rows
        ]

    async def trim(self, cursor: str) -> int:
        place = _place(cursor)
        gone: int = await self._database.write(
            lambda connection: connection.fetchval(_TRIM, *place)
        )
        return gone

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[Wait]:
        ear = _Ear()
        async with self._database.apart() as connection:

            async def wait(seconds: float) -> None:
                if connection.is_closed():
                    raise StoreError(f"the bank {self._database.name} was away; listen again")
                with anyio.move_on_after(seconds):
                    await ear.wait()

            await connection.add_listener(_CHANNEL, ear.hear)
            yield wait


def announcement(
    session: SessionId, sequences: list[int]
) -> tuple[SessionId, list[int], Namespace, str]:
    """The first four values of a statement with ``ANNOUNCING``."""
    return session, sequences, namespace_of(session), _CHANNEL


async def forget_old(connection: Connection, newest: int, count: int) -> None:
    """Now and then, drop what nobody has read for long.

    Args:
        connection: In the transaction that appends.
        newest: Number of the newest row.
        count: How many rows were added with it.
    """
    if newest % _TRIM_EVERY < count:
        await connection.execute(_FORGET, newest - KEPT)


class _Ear:
    """Remembers that something was heard until it is asked; one listener."""

    def __init__(self) -> None:
        self._heard = anyio.Event()

    def hear(self, *_: object) -> None:
        self._heard.set()

    async def wait(self) -> None:
        await self._heard.wait()
        self._heard = anyio.Event()


def _place(cursor: str) -> tuple[str, int]:
    """The transaction and the row a cursor stands for.

    Raises:
        ValueError: If it is none.
    """
    transaction, _, number = (cursor or "0.0").partition(".")
    if not (transaction.isdecimal() and number.isdecimal()):
        raise ValueError(f"cursor must come from a row of the outbox, got {cursor!r}")
    return transaction, int(number)
