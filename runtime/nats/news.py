"""News of the journals: told to the bus from the outbox, in order, and heard by other processes.

News says that a session has an entry, and nothing of what is in it. It may be lost, told twice or late:
who hears of a session reads its journal.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import msgspec

from assay.errors import BusError
from assay.runtime.nats.connection import BusClosed, Connection, Message
from assay.runtime.nats.streams import subject, token
from assay.stores.protocols import Outbox
from assay.stores.records import SessionId

_BATCH = 256
_IDLE_SECONDS = 1.0


class _News(msgspec.Struct, frozen=True, kw_only=True):
    """A journal has an entry."""

    session: str
    sequence: int


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_News)


async def relay(outbox: Outbox, connection: Connection) -> None:
    """Tell all that is in the outbox and all that comes, until it is cancelled.

    Several may run at once: the stream keeps one message of those told twice.

    Raises:
        StoreError: If the outbox cannot be read.
        BusError: If the connection is closed for good.
    """
    async with outbox.listening() as wait:
        while True:
            if not await _told(outbox, connection):
                await wait(_IDLE_SECONDS)


async def tell(outbox: Outbox, connection: Connection) -> int:
    """Tell the oldest of what is in the outbox, and forget it there; gives how many.

    Raises:
        StoreError: If the outbox cannot be read.
        BusError: If the server stays away; nothing is forgotten then.
    """
    rows = await outbox.read(limit=_BATCH)
    for row in rows:
        await connection.store(
            subject(connection.prefix, "events", row.namespace, row.session),
            _encoder.encode(_News(session=row.session, sequence=row.sequence)),
            message_id=f"{token(row.session)}/{row.sequence}",
        )
    if rows:
        await outbox.trim(rows[-1].cursor)
    return len(rows)


async def _told(outbox: Outbox, connection: Connection) -> int:
    try:
        return await tell(outbox, connection)
    except BusClosed:
        raise
    except BusError:
        return 0  # told when the server is back


@asynccontextmanager
async def hearing(
    connection: Connection, hear: Callable[[SessionId], None]
) -> AsyncGenerator[None]:
    """Hear of every session whose journal gets an entry, as long as the block runs.

    What is told once the block has begun is heard; what was told before it, or while the server was away, is not.

    Args:
        connection: To the server.
        hear: Called with the session's name in the journal; must not block.
    """

    def take(message: Message) -> None:
        hear(SessionId(_decoder.decode(message.data).session))

    async with connection.receiving(f"{connection.prefix}.events.>", take):
        yield
