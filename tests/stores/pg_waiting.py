"""Waiting for what another connection does, without a pause of any length."""

from assay.stores.postgres.database import Postgres

_WAITING = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0
"""


async def somebody_waits(database: Postgres) -> None:
    """Returns as soon as a connection of this database waits for another one's lock."""
    while (await database.fetch(_WAITING))[0][0] == 0:
        pass
