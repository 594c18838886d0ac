"""Waiting for what another connection does, without a pause of any length."""

import anyio

from assay.stores.postgres.database import Postgres
from assay.stores.postgres.outbox import PostgresOutbox
from assay.stores.protocols import Appended

_WAITING = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0
"""


async def somebody_waits(database: Postgres) -> None:
    """Returns as soon as a connection of this database waits for another one's lock."""
    while (await database.fetch(_WAITING))[0][0] == 0:
        pass


async def told(database: Postgres, count: int) -> list[Appended]:
    """The rows of an outbox, as soon as so many can be read: any transaction of the server may delay them."""
    with anyio.fail_after(10):
        while len(rows := await PostgresOutbox(database).read(limit=100_000)) < count:
            pass
    return rows
