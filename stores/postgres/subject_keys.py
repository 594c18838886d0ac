"""The keys of subjects in PostgreSQL, and what keeps appending and erasing apart."""

from collections.abc import Iterable

from assay.stores.postgres.connection import Connection
from assay.stores.records import SessionId
from assay.stores.subject_keys import SubjectKey, new_key, owner_of

# Both last until the transaction ends: appending to the streams of one subject goes on side by
# side, one stream at a time; erasing waits for those under way and keeps new ones waiting.
_HOLD_STREAM = """
SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 2)),
       pg_advisory_xact_lock(hashtextextended($2, 1))
"""
_HOLD_SUBJECT = "SELECT pg_advisory_xact_lock(hashtextextended($1, 2))"


async def hold_stream(connection: Connection, session: SessionId) -> None:
    """Be the only one to append to a stream, and keep its subject from being erased meanwhile."""
    await connection.execute(_HOLD_STREAM, owner_of(session), session)


async def hold_subjects(connection: Connection, owners: Iterable[str]) -> None:
    """Keep everybody from appending to the streams of subjects; without a deadlock."""
    for owner in sorted(set(owners)):
        await connection.execute(_HOLD_SUBJECT, owner)


async def key_for(connection: Connection, session: SessionId) -> SubjectKey:
    """The key of a stream's owner, made if there is none; in a transaction that holds either."""
    made = new_key()
    owner = owner_of(session)
    await connection.execute(
        "INSERT INTO subject_keys VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", owner, *made
    )
    # Not the one just made: another stream's first entry may have been faster.
    row = await connection.fetchrow("SELECT id, key FROM subject_keys WHERE owner = $1", owner)
    return SubjectKey(*row)
