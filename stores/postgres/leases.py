"""Leases as rows, timed by the server's own clock: the clocks of the hosts do not matter."""

from assay.stores.memory_leases import checked_holding, checked_seconds, lease_lost
from assay.stores.postgres.database import Postgres
from assay.stores.postgres.journal import PostgresJournal
from assay.stores.protocols import Journal, Lease
from assay.stores.records import SessionId

# An append of the old owner holds the row: who takes the session over waits for its commit. The
# condition is looked at again then, by the clock of that moment.
_ACQUIRE = """
INSERT INTO leases AS held VALUES ($1, $2, 1, clock_timestamp() + make_interval(secs => $3))
ON CONFLICT (session) DO UPDATE SET
  revision = held.revision + CASE WHEN held.owner = $2 THEN 0 ELSE 1 END,
  owner = $2,
  expires = clock_timestamp() + make_interval(secs => $3)
WHERE held.owner = $2 OR held.expires <= clock_timestamp()
RETURNING revision
"""
_RENEW = """
UPDATE leases SET expires = clock_timestamp() + make_interval(secs => $4)
WHERE session = $1 AND owner = $2 AND revision = $3 RETURNING 1
"""
_RELEASE = """
UPDATE leases SET expires = clock_timestamp() WHERE session = $1 AND owner = $2 AND revision = $3
"""


class PostgresLeases:
    """``Leases`` over one database.

    A process that stopped in the middle of an append (suspended, cut off) holds up whoever wants
    to take its session over until the server ends that append, ten seconds at most.
    """

    def __init__(self, database: Postgres) -> None:
        self._database = database

    async def acquire(self, session: SessionId, *, owner: str, seconds: float) -> Lease | None:
        checked_holding(session, owner, seconds)
        rows = await self._database.fetch(_ACQUIRE, session, owner, seconds)
        return Lease(session, owner, rows[0][0]) if rows else None

    async def renew(self, lease: Lease, *, seconds: float) -> None:
        checked_seconds(seconds)
        if not await self._database.fetch(_RENEW, *lease, seconds):
            raise lease_lost(lease)

    async def release(self, lease: Lease) -> None:
        await self._database.fetch(_RELEASE, *lease)

    def fenced(self, journal: Journal, lease: Lease) -> Journal:
        if not isinstance(journal, PostgresJournal):
            raise TypeError(
                "only a journal in the database of the leases can be fenced, "
                f"got {type(journal).__name__}"
            )
        return journal.fenced(lease)
