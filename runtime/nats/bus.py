"""The bus of a session over JetStream: what is sent goes out and comes back in the server's order.

Other processes see the session's events while it runs. Entries are numbered: one that the server has
taken twice, or brings late, is dispatched once. While the server is away a sender waits.
"""

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from uuid import uuid4

import anyio
import msgspec

from assay.runtime.bus import CAPACITY, Bus, Handler, Now, Observer
from assay.runtime.events import AnyEvent, decode, encode
from assay.runtime.lane import Entry, Lane, Question
from assay.runtime.nats.connection import Connection, Message
from assay.runtime.nats.streams import subject
from assay.runtime.streams import namespace_in
from assay.stores.records import Namespace, SessionId


class _Carried(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An entry on the bus: an event, a command, or neither to ask what failed."""

    run: str
    number: int
    event: bytes = b""
    command: bytes = b""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Carried)
_commands = msgspec.json.Encoder()


class NatsBus(Bus):
    """Typed publish, subscribe and request of one session, over JetStream.

    Args:
        connection: To the server.
        handler: Carries commands out.
        stream: Name of the session in the journal.
        now: Time of the failures it reports.
        capacity: Entries that may be on their way before whoever sends waits.
    """

    def __init__(
        self,
        connection: Connection,
        handler: Handler,
        *,
        stream: SessionId,
        now: Now,
        capacity: int = CAPACITY,
    ) -> None:
        where = session_subject(connection.prefix, stream)

        @asynccontextmanager
        async def open_lane(capacity: int) -> AsyncGenerator[Lane]:
            lane = _NatsLane(connection, where, capacity)
            async with connection.receiving(where, lane.take):
                yield lane

        super().__init__(handler, now=now, capacity=capacity, open_lane=open_lane)


class _NatsLane:
    """Entries of one run of a bus, out to the stream and back."""

    def __init__(self, connection: Connection, where: str, capacity: int) -> None:
        self._connection = connection
        self._where = where
        self._run = uuid4().hex
        self._room = anyio.Semaphore(capacity)
        self._order = anyio.Lock()
        self._number = 0
        self._out: dict[int, Entry] = {}
        self._back: deque[Entry] = deque()
        self._closed = False
        self._news = anyio.Event()

    async def send(self, entry: Entry) -> None:
        await self._room.acquire()
        number = 0
        try:
            async with self._order:
                self._number = number = self._number + 1
                self._out[number] = entry
                await self._connection.store(
                    self._where, self._carried(number, entry), message_id=f"{self._run}/{number}"
                )
        except BaseException:
            if self._withdrawn(number, entry):
                self._room.release()
            raise

    def take(self, message: Message) -> None:
        """An entry has come back, of this run or of another one."""
        carried = _decoder.decode(message.data)
        if carried.run != self._run:
            return
        entry = self._out.pop(carried.number, None)
        if entry is not None:
            self._back.append(decode(carried.event) if carried.event else entry)
            self._news.set()

    def close(self) -> None:
        self._closed = True
        self._news.set()

    def abandon(self) -> Iterator[Entry]:
        yield from (*self._back, *self._out.values())

    def __aiter__(self) -> AsyncIterator[Entry]:
        return self

    async def __anext__(self) -> Entry:
        while not self._back:
            if self._closed and not self._out:
                raise StopAsyncIteration
            self._news = anyio.Event()
            await self._news.wait()
        self._room.release()
        return self._back.popleft()

    def _carried(self, number: int, entry: Entry) -> bytes:
        event = command = b""
        if not isinstance(entry, Question):
            event = encode(entry)
        elif entry.command is not None:
            command = _commands.encode(entry.command)
        return _encoder.encode(_Carried(run=self._run, number=number, event=event, command=command))

    def _withdrawn(self, number: int, entry: Entry) -> bool:
        """Keep an entry whose sending failed from the dispatcher, if it has not come back and begun."""
        if number == 0 or self._out.pop(number, None) is not None:
            return True
        if isinstance(entry, Question) and entry in self._back:
            self._back.remove(entry)
            return True
        return False


@asynccontextmanager
async def observing(
    connection: Connection, stream: SessionId, *kinds: type[AnyEvent], capacity: int = CAPACITY
) -> AsyncGenerator[Observer]:
    """The live events of a session that runs in another process; what came before is in the journal.

    Args:
        connection: To the server.
        stream: Name of the session in the journal.
        kinds: Kinds of event wanted; none: all.
        capacity: Events it holds; it drops its oldest when full.
    """
    observer = Observer(kinds, capacity)

    def take(message: Message) -> None:
        carried = _decoder.decode(message.data)
        if carried.event:
            observer.offer(decode(carried.event))

    async with connection.receiving(session_subject(connection.prefix, stream), take):
        try:
            yield observer
        finally:
            observer.close()


def session_subject(prefix: str, stream: SessionId) -> str:
    """Where the entries of a session travel."""
    return subject(prefix, "session", namespace_in(stream) or Namespace(""), stream)
