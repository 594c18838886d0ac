"""News of the journals: told to the bus from the outbox, in order, and watched from other processes.

News says that a session has an entry, and nothing of what is in it. It may be lost, told twice or late:
who watches goes by the newest, and reads the journal.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import msgspec

from assay.errors import BusError
from assay.runtime.nats.connection import BusClosed, Connection, Message
from assay.runtime.nats.streams import stream_name, subject, token
from assay.runtime.streams import namespace_in
from assay.stores.protocols import Outbox
from assay.stores.records import Namespace, SessionId

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
            news_subject(connection.prefix, row.session, row.namespace),
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


class Watch:
    """The numbers of a session's journal entries as they come; iterate to wait for the next one."""

    def __init__(self, after: int) -> None:
        self._given = after
        self._newest = after
        self._failure: BusError | None = None
        self._news = anyio.Event()

    def note(self, message: bytes) -> None:
        """Some process has told of an entry; of those before it, too."""
        self._newest = max(self._newest, _decoder.decode(message).sequence)
        self._news.set()

    def fail(self, error: BusError) -> None:
        """No more will come."""
        self._failure = error
        self._news.set()

    def __aiter__(self) -> AsyncIterator[int]:
        return self

    async def __anext__(self) -> int:
        while self._given >= self._newest:
            if self._failure is not None:
                raise self._failure
            self._news = anyio.Event()
            await self._news.wait()
        self._given += 1
        return self._given


@asynccontextmanager
async def watching(
    connection: Connection, stream: SessionId, *, after: int = -1
) -> AsyncGenerator[Watch]:
    """The journal entries of a session, by number, each once and in order, as other processes write them.

    Args:
        connection: To the server.
        stream: Name of the session in the journal.
        after: Number of the last entry that is known already; -1: none is.
    """
    watch = Watch(after)
    where = news_subject(connection.prefix, stream, namespace_in(stream) or Namespace(""))

    def take(message: Message) -> None:
        watch.note(message.data)

    async with connection.receiving(where, take), anyio.create_task_group() as group:
        group.start_soon(_catch_up, connection, where, watch)
        yield watch
        group.cancel_scope.cancel()


@asynccontextmanager
async def hearing(
    connection: Connection, hear: Callable[[SessionId], None]
) -> AsyncGenerator[None]:
    """Hear of every session whose journal gets an entry, as long as the block runs.

    Args:
        connection: To the server.
        hear: Called with the session's name in the journal; must not block.
    """

    def take(message: Message) -> None:
        hear(SessionId(_decoder.decode(message.data).session))

    async with connection.receiving(f"{connection.prefix}.events.>", take):
        yield


async def _catch_up(connection: Connection, where: str, watch: Watch) -> None:
    """What was told before, and while the server was away."""
    name = stream_name(connection.prefix, "events")
    while True:
        try:
            kept = await connection.found(
                "look for news", lambda js: js.get_last_msg(name, where, direct=True)
            )
        except BusClosed as error:
            return watch.fail(error)
        except BusError:
            kept = None  # the server stays away; look again when it is back
        if kept is not None and kept.data:
            watch.note(kept.data)
        await connection.reconnected()


def news_subject(prefix: str, stream: SessionId, namespace: Namespace) -> str:
    """Where the news of a session goes."""
    return subject(prefix, "events", namespace, stream)
