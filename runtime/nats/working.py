"""A worker: takes jobs, tenants in turn, and sees that each is answered or given back."""

from collections.abc import Callable, Sequence
from typing import cast

import anyio
import msgspec
from anyio.abc import TaskGroup

from assay.errors import BusError
from assay.runtime.jobs import Job, JobHandler, JobKind, NotForThisWorker
from assay.runtime.nats.connection import BusClosed, Connection, Message
from assay.runtime.nats.consumers import Consumers, Share, share_of, wake
from assay.runtime.nats.line import Line, Turn
from assay.runtime.nats.messages import decode_job
from assay.runtime.nats.pulling import Puller, open_puller
from assay.runtime.nats.streams import Limits, consumer_name, kind_named, stream_name, token
from assay.runtime.nats.trying import GIVEN_BACK, Try

_SECOND_LOOK_SECONDS = 0.02
_RESCAN_SECONDS = 1.0
_RESCAN_REST = 20
"""A long look, at many tenants, is followed by so many times as long a rest."""

_HAND_BACK_SECONDS = 2.0
_AVOIDED_SECONDS = 2.0
"""So long a worker that refused a job leaves the jobs of that kind and tenant to others."""


class Worker:
    """Does jobs of some kinds.

    Args:
        connection: To the server.
        limits: Of silence and tries.
        kinds: What it can do.
        handler: Does one job.
    """

    def __init__(
        self,
        connection: Connection,
        limits: Limits,
        kinds: Sequence[JobKind],
        handler: JobHandler,
    ) -> None:
        self._connection = connection
        self._limits = limits
        self._kinds = frozenset(kinds)
        self._handler = handler
        self._consumers = Consumers(connection, limits)
        self._line: Line[Share] = Line()
        self._taking = anyio.Lock()
        self._news = anyio.Event()
        self._doubted: set[Share] = set()
        self._avoided: dict[Share, float] = {}
        self._under_way: dict[str, anyio.CancelScope] = {}

    async def run(self, concurrency: int, stopping: anyio.Event) -> None:
        """Do jobs until ``stopping`` is set and those begun are done; on cancel they are given back.

        Raises:
            BusError: If the connection is closed for good.
        """
        prefix = self._connection.prefix
        try:
            async with (
                self._connection.receiving(f"{prefix}.wake.*.*", self._woken),
                self._connection.receiving(f"{prefix}.cancel.*", self._withdrawn),
                open_puller(self._connection, stream_name(prefix, "jobs")) as puller,
                anyio.create_task_group() as helpers,
            ):
                helpers.start_soon(self._rescan)
                helpers.start_soon(self._stop, stopping)
                async with anyio.create_task_group() as slots:
                    for _ in range(concurrency):
                        slots.start_soon(self._slot, puller, stopping, helpers)
                helpers.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            raise _cause_of(group) from group

    async def _slot(self, puller: Puller, stopping: anyio.Event, helpers: TaskGroup) -> None:
        while (message := await self._next(puller, stopping, helpers)) is not None:
            await self._settle(message)

    async def _next(
        self, puller: Puller, stopping: anyio.Event, helpers: TaskGroup
    ) -> Message | None:
        """The next job of whose turn it is; ``None``: no more are taken."""
        async with self._taking:
            while not stopping.is_set():
                turn = self._line.next()
                if turn is None:
                    self._news = anyio.Event()
                    await self._news.wait()
                    continue
                if self._avoided.get(turn.who, 0.0) > anyio.current_time():
                    self._line.leave(turn)
                    continue
                message = await _taken(puller, turn.who)
                if message is not None:
                    return message
                self._miss(turn, helpers)
        return None

    def _miss(self, turn: Turn[Share], helpers: TaskGroup) -> None:
        """Out of the line, but for a second look: a stream has a job a moment before its consumer."""
        self._line.leave(turn)
        if turn.who in self._doubted:
            self._doubted.remove(turn.who)
        else:
            self._doubted.add(turn.who)
            helpers.start_soon(self._second_look, turn.who)

    async def _second_look(self, share: Share) -> None:
        await anyio.sleep(_SECOND_LOOK_SECONDS)
        self._join(share)

    async def _settle(self, message: Message) -> None:
        """Do a job and tell its fate; on cancel it is given back at once."""
        try:
            fate = await self._fate(message)
        except BaseException:
            with anyio.CancelScope(shield=True), anyio.move_on_after(_HAND_BACK_SECONDS):
                await self._hand_back(message)
            raise
        await self._connection.acknowledge(message.reply, fate)

    async def _fate(self, message: Message) -> bytes:
        try:
            job = decode_job(message.data)
        except msgspec.DecodeError:
            return GIVEN_BACK + b' {"delay": 30000000000}'  # for a worker of another version
        scope, name = anyio.CancelScope(), token(job.id)
        self._under_way[name] = scope
        try:
            doing = Try(self._connection, self._limits, job, message.reply, message.attempt, scope)
            return await doing.fate(self._handled)
        finally:
            self._under_way.pop(name, None)

    async def _handled(self, job: Job, send: Callable[[bytes], None]) -> bytes:
        try:
            return await self._handler(job, send)
        except NotForThisWorker:
            self._avoided[share_of(job)] = anyio.current_time() + _AVOIDED_SECONDS
            raise

    async def _hand_back(self, message: Message) -> None:
        await self._connection.acknowledge(message.reply, GIVEN_BACK)
        await wake(self._connection, share_of(decode_job(message.data)))

    async def _rescan(self) -> None:
        """Find what nobody has told of: jobs of a lost worker, of pauses, of a time without a server."""
        while True:
            began = anyio.current_time()
            try:
                for share in await self._consumers.waiting(self._kinds):
                    self._join(share)
            except BusClosed:
                raise
            except BusError:
                pass  # the server stays away; look again when it is back
            took = anyio.current_time() - began
            with anyio.move_on_after(max(_RESCAN_SECONDS, took * _RESCAN_REST)):
                await self._connection.reconnected()

    async def _stop(self, stopping: anyio.Event) -> None:
        await stopping.wait()
        self._news.set()

    def _woken(self, message: Message) -> None:
        *_, name, tenant = message.subject.split(".")
        kind = kind_named(name)
        if kind in self._kinds:
            share = Share(kind, tenant)
            self._doubted.discard(share)
            self._join(share)

    def _join(self, share: Share) -> None:
        self._line.join(share)
        self._news.set()

    def _withdrawn(self, message: Message) -> None:
        scope = self._under_way.get(message.subject.rpartition(".")[2])
        if scope is not None:
            scope.cancel()


async def _taken(puller: Puller, share: Share) -> Message | None:
    with anyio.CancelScope(shield=True):  # a job on its way would be lost for a while
        return await puller.take(consumer_name(share.kind, share.tenant))
    return None


def _cause_of(error: BaseException) -> BaseException:
    """The one error in a group, however deep; the group itself if there are several."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)  # isinstance leaves it open
        return _cause_of(group.exceptions[0]) if len(group.exceptions) == 1 else group
    return error
