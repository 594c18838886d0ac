"""What a database is like as a place for a bank, for whoever sets one up."""

from datetime import UTC, datetime
from typing import NamedTuple

from assay.stores.postgres.database import Postgres
from assay.stores.protocols import Clock

_LOOK = """
SELECT current_setting('server_version'), clock_timestamp(),
  (SELECT extversion FROM pg_extension WHERE extname = 'vector')
"""


class Database(NamedTuple):
    """A database that can hold a bank.

    Attributes:
        place: Its URL without the password.
        server: Version of PostgreSQL.
        pgvector: Version of the extension.
        embedder: Name of the embedder the bank is bound to; empty: it is new.
        ahead: Seconds this machine's clock is ahead of the database's; leases go by the database's.
    """

    place: str
    server: str
    pgvector: str
    embedder: str
    ahead: float


async def look_at(url: str, *, clock: Clock) -> Database:
    """Open the bank of a database, and look.

    Raises:
        ConfigError: If it is no URL of PostgreSQL.
        StoreError: If it cannot be used; the message says what to do.
    """
    async with Postgres(url) as database:
        before = clock.now()
        [row] = await database.fetch(_LOOK)
        after = clock.now()
        embedder = await database.meta("embedder")
        server, there, pgvector = row
    return Database(
        place=database.name,
        server=str(server),
        pgvector=str(pgvector),
        embedder=embedder or "",
        ahead=_ahead(before, there, after),
    )


def _ahead(before: datetime, there: datetime, after: datetime) -> float:
    """Seconds between two clocks, the other one looked at in between."""
    here = before + (after - before) / 2
    return (here - there.astimezone(UTC)).total_seconds()
