"""Turns that run wherever somebody has time for them; asked for, and watched, as if they ran here."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from assay.errors import BusError, TurnError
from assay.guards.protocols import DeltaSink
from assay.runtime.bus import CAPACITY, Bus, EventHandler, Observer
from assay.runtime.commands import AnyCommand
from assay.runtime.distributed.wire import (
    Begun,
    Declined,
    Delta,
    Failed,
    Happened,
    Outfit,
    TurnJob,
    encode,
    error_in,
    turn_answer,
    turn_piece,
)
from assay.runtime.events import AnyEvent
from assay.runtime.handlers import Answerer
from assay.runtime.jobs import Job, JobQueue, Piece
from assay.runtime.limits import tenant_user_of
from assay.runtime.local_turns import LocalTurns
from assay.runtime.reducer import State
from assay.runtime.reply import Reply
from assay.runtime.requests import Resume, TurnRequest
from assay.runtime.task_groups import tasks_beside
from assay.stores.protocols import Clock
from assay.stores.records import Namespace, SessionId


class RemoteTurns:
    """The turns of one session, handed out as jobs.

    A turn with an ``answerer`` runs here: what answers is in this process. How the session stands is
    read from the journal, which this process has open too.

    Args:
        local: The session's turns in this process.
        queue: Where jobs wait.
        namespace: Whose session.
        session_id: Which one.
        outfit: What turns are made with here; they are taken by no worker that has another.
        new_id: Names jobs and requests.
        clock: Time of failures.
        seconds: Deadline of a turn from when a worker has begun it.
        queue_seconds: Until when a worker must have begun it.
    """

    def __init__(  # noqa: PLR0913  # one name per collaborator
        self,
        local: LocalTurns,
        queue: JobQueue,
        *,
        namespace: Namespace,
        session_id: SessionId,
        outfit: Outfit,
        new_id: Callable[[], str],
        clock: Clock,
        seconds: float,
        queue_seconds: float,
    ) -> None:
        self._local = local
        self._queue = queue
        self._namespace = namespace
        self._id = session_id
        self._outfit = outfit
        self._new_id = new_id
        self._seconds = seconds
        self._queue_seconds = queue_seconds
        self._bus = Bus(_nobody_asks, now=clock.now)
        self._lock = anyio.Lock()

    async def take(
        self,
        request: TurnRequest,
        *,
        sink: DeltaSink | None = None,
        answerer: Answerer | None = None,
    ) -> Reply | None:
        """Have it done elsewhere; raises what was raised there.

        Raises:
            JobFailed: If it was tried too often.
            BusError: If nobody began it, or did it, in time.
        """
        async with self._lock, self._bus.running():
            if answerer is None:
                reply = await self._handed_out(request, sink)
            else:
                reply = await self._local.take(
                    request, sink=sink, answerer=answerer, watch=self._bus.publish
                )
            failed = await self._bus.settled()
        if failed is not None:
            raise TurnError(f"an observer failed after the turn: {failed.kind}: {failed.message}")
        return reply

    async def state(self) -> State:
        """From the journal, when no turn that this process asked for is under way."""
        async with self._lock:
            return await self._local.state()

    def subscribe(self, take: EventHandler, *kinds: type[AnyEvent]) -> AbstractContextManager[None]:
        """Hand on the events of the turns asked for here, in order; a slow one does not slow the turn."""
        return self._bus.subscribe(take, *kinds)

    def observe(self, *kinds: type[AnyEvent], capacity: int) -> AbstractContextManager[Observer]:
        """The events of the turns asked for here."""
        return self._bus.observe(*kinds, capacity=capacity)

    async def _handed_out(self, request: TurnRequest, sink: DeltaSink | None) -> Reply | None:
        shown = _Shown(sink)
        events, arrived = anyio.create_memory_object_stream[AnyEvent](CAPACITY)
        with arrived:
            async with tasks_beside() as group:
                group.start_soon(self._publish, arrived)
                with events:  # its end ends the task
                    reply = await self._answered(request, _Pieces(shown, events))
        if reply is not None:
            shown.finish(reply.text)
        return reply

    async def _answered(self, request: TurnRequest, pieces: "_Pieces") -> Reply | None:
        job = Job(
            id=self._new_id(),
            kind="turn",
            tenant=tenant_user_of(self._namespace).tenant,
            namespace=self._namespace,
            payload=encode(
                TurnJob(
                    namespace=self._namespace,
                    session=self._id,
                    request=self._named(request),
                    outfit=self._outfit,
                )
            ),
        )
        answer = turn_answer(await self._done(job, pieces))
        if isinstance(answer, Failed):
            raise error_in(answer)
        return answer.reply

    async def _done(self, job: Job, pieces: "_Pieces") -> bytes:
        with anyio.move_on_after(self._queue_seconds) as pieces.waiting:
            deadline = self._queue_seconds + self._seconds
            return await self._queue.submit(job, deadline=deadline, sink=pieces)
        why = pieces.declined or "start more of `assay worker`, or raise turn.queue_seconds"
        raise BusError(f"no worker began the turn within {self._queue_seconds:g} s; {why}")

    def _named(self, request: TurnRequest) -> TurnRequest:
        """With a name: a job may be done twice, a turn not."""
        if isinstance(request, Resume) or request.request:
            return request
        return msgspec.structs.replace(request, request=self._new_id())

    async def _publish(self, arrived: MemoryObjectReceiveStream[AnyEvent]) -> None:
        async for event in arrived:
            await self._bus.publish(event)


class _Shown:
    """Passes the pieces of a reply on, each once, whatever came twice or not at all."""

    def __init__(self, sink: DeltaSink | None) -> None:
        self._sink = sink
        self._passed = 0

    def take(self, delta: Delta) -> None:
        if delta.at <= self._passed:
            self._pass_on(delta.text[self._passed - delta.at :])

    def finish(self, text: str) -> None:
        """What of the whole reply was not passed on yet."""
        self._pass_on(text[self._passed :])

    def _pass_on(self, text: str) -> None:
        if text and self._sink is not None:
            self._sink(text)
        self._passed += len(text)


class _Pieces:
    """Takes the pieces of a turn apart; an event that has no room is lost, as pieces may be.

    Attributes:
        waiting: Waits for a worker; has no end any more once one has begun.
        declined: Why the last worker that gave the turn back did so; empty: none did.
    """

    def __init__(self, shown: _Shown, events: MemoryObjectSendStream[AnyEvent]) -> None:
        self.waiting = anyio.CancelScope()
        self.declined = ""
        self._shown = shown
        self._events = events

    def __call__(self, piece: Piece) -> None:
        said = turn_piece(piece.data)
        if isinstance(said, Declined):
            self.declined = said.reason
            return
        self.waiting.deadline = math.inf  # the sign of having begun may be lost, as any piece
        match said:
            case Begun():
                return
            case Delta() as delta:
                self._shown.take(delta)
            case Happened(event=event):
                try:
                    self._events.send_nowait(event)
                except anyio.WouldBlock:
                    return


async def _nobody_asks(command: AnyCommand) -> AnyEvent:
    raise AssertionError("unreachable")
