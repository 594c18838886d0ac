"""Taking single messages of the consumers of a stream, now or not at all."""

from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import msgspec

from assay.runtime.nats.connection import Connection, Message

_ANSWER_SECONDS = 2.0
_AT_ONCE = msgspec.json.encode({"batch": 1, "no_wait": True})


class Puller:
    """Asks one consumer at a time; used inside ``open_puller``."""

    def __init__(self, connection: Connection, stream: str) -> None:
        self._connection = connection
        self._stream = stream
        self._inbox = connection.new_inbox()
        self._came: deque[Message] = deque()
        self._news = anyio.Event()

    @property
    def inbox(self) -> str:
        """Where consumers send to."""
        return self._inbox

    def receive(self, message: Message) -> None:
        """A consumer has answered, late perhaps."""
        self._came.append(message)
        self._news.set()

    async def take(self, consumer: str) -> Message | None:
        """A waiting message of a consumer; ``None``: none waits, or the server is away.

        It is told its fate through its ``reply``, or it comes again. One that came too late for the
        question before is taken first.
        """
        self._news = anyio.Event()
        if not self._came:
            await self._ask(consumer)
        message = self._came.popleft() if self._came else None
        return message if message is not None and message.reply else None

    async def _ask(self, consumer: str) -> None:
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{consumer}"
        with self._connection.until_lost(), anyio.move_on_after(_ANSWER_SECONDS):
            await self._connection.publish(subject, _AT_ONCE, reply=self._inbox)
            await self._news.wait()


@asynccontextmanager
async def open_puller(connection: Connection, stream: str) -> AsyncGenerator[Puller]:
    """A puller from a stream, for the length of the block."""
    puller = Puller(connection, stream)
    async with connection.receiving(puller.inbox, puller.receive):
        yield puller
