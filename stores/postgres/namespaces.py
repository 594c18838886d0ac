"""The row of a namespace: its number, its counters, and the lock under which it is written to."""

from collections.abc import Iterable
from typing import NamedTuple

from assay.stores.postgres.connection import Connection
from assay.stores.records import Namespace

_HOLD = """
SELECT name, number, version FROM namespaces WHERE name = ANY($1::text[])
ORDER BY name FOR NO KEY UPDATE
"""
_MAKE = "INSERT INTO namespaces (name) SELECT unnest($1::text[]) ORDER BY 1 ON CONFLICT DO NOTHING"


class Held(NamedTuple):
    """A namespace whose row this transaction holds.

    Attributes:
        number: What stands for its name in other tables.
        version: Of the last write or erasure of a record in it; 0 if there was none.
    """

    number: int
    version: int


async def hold(connection: Connection, namespaces: Iterable[Namespace]) -> dict[Namespace, Held]:
    """Take the rows of namespaces, made if missing, until the transaction ends.

    Whoever else writes to one of them waits, and sees what is written here.
    """
    names = sorted(set(namespaces))
    held = await _hold(connection, names)
    if len(held) < len(names):
        await connection.execute(_MAKE, [name for name in names if name not in held])
        held = await _hold(connection, names)
    return held


async def hold_namespace(connection: Connection, namespace: Namespace) -> int:
    """The namespace's number, held as by ``hold``; who holds several takes them in order of name."""
    return (await hold(connection, [namespace]))[namespace].number


async def _hold(connection: Connection, names: list[Namespace]) -> dict[Namespace, Held]:
    rows = await connection.fetch(_HOLD, names)
    return {Namespace(name): Held(number, version) for name, number, version in rows}
