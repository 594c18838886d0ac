"""The row of a namespace: who writes to a namespace holds it, so writers go one after another."""

from assay.stores.postgres.connection import Connection
from assay.stores.records import Namespace

_HOLD = "SELECT number FROM namespaces WHERE name = $1 FOR NO KEY UPDATE"
_MAKE = "INSERT INTO namespaces (name) VALUES ($1) ON CONFLICT DO NOTHING"


async def hold_namespace(connection: Connection, namespace: Namespace) -> int:
    """The namespace's number, made if it is new; nobody else writes to it until the commit.

    Who holds several takes them in the order of their names.
    """
    number: int | None = await connection.fetchval(_HOLD, namespace)
    if number is None:
        await connection.execute(_MAKE, namespace)
        number = await connection.fetchval(_HOLD, namespace)
        assert number is not None  # noqa: S101  # it was just made, and none is ever removed
    return number
