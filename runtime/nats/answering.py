"""Commands of a session carried out by another process: asked for here, answered where there is a handler."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import uuid4

import anyio
import msgspec
from anyio.abc import TaskGroup

from assay.runtime.bus import Handler, Now, failed_with
from assay.runtime.commands import AnyCommand
from assay.runtime.events import AnyEvent, decode, encode
from assay.runtime.nats.connection import Connection, Message
from assay.runtime.nats.streams import token
from assay.stores.records import SessionId

_ALIVE = b""
_ENDED = b"ended"
_BEAT_SECONDS = 1.0
_SILENCE_SECONDS = 4.0
_NOBODY_SECONDS = 0.2
_END_SECONDS = 5.0


class _Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A command on its way; ``id`` is the same when it is asked for again."""

    id: str
    command: AnyCommand


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Asked)


class Elsewhere:
    """A ``Handler`` whose commands are carried out by whoever is ``answering`` for the session.

    It waits for one, and asks again when one falls silent, so a command may be carried out twice. On cancel
    the handler there is cancelled and has ended, or has lost its connection, before this returns.

    Args:
        connection: To the server.
        stream: Name of the session in the journal.
    """

    def __init__(self, connection: Connection, stream: SessionId) -> None:
        self._connection = connection
        self._where = _subject(connection, stream)

    async def __call__(self, command: AnyCommand) -> AnyEvent:
        asking = _Asking()
        asked, inbox = _Asked(id=uuid4().hex, command=command), self._connection.new_inbox()
        async with self._connection.receiving(inbox, asking.take):
            try:
                while asking.event is None:
                    await self._connection.publish(self._where, _encoder.encode(asked), reply=inbox)
                    await asking.quiet()
            except BaseException:
                await self._cancel(asked, asking)
                raise
        return asking.event

    async def _cancel(self, asked: _Asked, asking: "_Asking") -> None:
        with anyio.CancelScope(shield=True), anyio.move_on_after(_END_SECONDS):
            await self._connection.publish(f"{self._connection.prefix}.cancel.{asked.id}")
            if asking.begun:
                await asking.ended.wait()


class _Asking:
    """What has come back for one command."""

    def __init__(self) -> None:
        self.event: AnyEvent | None = None
        self.begun = False
        self.nobody = False
        self.ended = anyio.Event()
        self._news = anyio.Event()

    def take(self, message: Message) -> None:
        self.nobody = "Status" in message.headers  # the server says that nobody listens
        self.begun = self.begun or not self.nobody
        if message.data not in (_ALIVE, _ENDED):
            self.event = decode(message.data)
        if message.data != _ALIVE:
            self.ended.set()
        self._news.set()

    async def quiet(self) -> None:
        """Return when there is an answer, or no sign of life for a while."""
        while self.event is None:
            self._news = anyio.Event()
            with anyio.move_on_after(_SILENCE_SECONDS) as silence:
                await self._news.wait()
            if self.nobody:
                await anyio.sleep(_NOBODY_SECONDS)
            if silence.cancelled_caught or self.nobody:
                return


@asynccontextmanager
async def answering(
    connection: Connection, handler: Handler, *, stream: SessionId, now: Now
) -> AsyncGenerator[None]:
    """Carry out the commands of a session that other processes ask for, as long as the block runs.

    Several may answer for one session; each command goes to one of them.

    Args:
        connection: To the server.
        handler: Carries commands out; what it raises is answered as ``CommandFailed``.
        stream: Name of the session in the journal.
        now: Time of the failures it reports.
    """
    async with anyio.create_task_group() as group:
        answers = _Answers(connection, handler, now, group)
        async with (
            connection.receiving(_subject(connection, stream), answers.take, group="answering"),
            connection.receiving(f"{connection.prefix}.cancel.*", answers.cancel),
        ):
            yield
        group.cancel_scope.cancel()


class _Answers:
    """The commands under way here."""

    def __init__(
        self, connection: Connection, handler: Handler, now: Now, group: TaskGroup
    ) -> None:
        self._connection = connection
        self._handler = handler
        self._now = now
        self._group = group
        self._under_way: dict[str, anyio.CancelScope] = {}

    def take(self, message: Message) -> None:
        """Begin a command, unless it is only asked for again."""
        asked = _decoder.decode(message.data)
        if asked.id not in self._under_way:
            self._under_way[asked.id] = anyio.CancelScope()
            self._group.start_soon(self._answer, asked, message.reply)

    def cancel(self, message: Message) -> None:
        """Nobody waits for a command any more."""
        scope = self._under_way.get(message.subject.rpartition(".")[2])
        if scope is not None:
            scope.cancel()

    async def _answer(self, asked: _Asked, reply: str) -> None:
        answer = _ENDED
        async with anyio.create_task_group() as group:
            group.start_soon(self._beat, reply)
            with self._under_way[asked.id]:
                answer = encode(await self._event(asked.command))
            group.cancel_scope.cancel()
        await self._connection.publish(reply, answer)
        del self._under_way[asked.id]

    async def _event(self, command: AnyCommand) -> AnyEvent:
        try:
            return await self._handler(command)
        except Exception as error:  # noqa: BLE001  # a failing handler is an event
            return failed_with(command, error, at=self._now())

    async def _beat(self, reply: str) -> None:
        while True:
            await self._connection.publish(reply, _ALIVE)
            await anyio.sleep(_BEAT_SECONDS)


def _subject(connection: Connection, stream: SessionId) -> str:
    return f"{connection.prefix}.commands.{token(stream)}"
