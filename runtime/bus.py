"""One bounded lane and one dispatcher per session: events for whoever watches, commands answered.

Order: what is published and requested is dispatched in that order, one at a time.
Back-pressure: the session's own lane waits when it is full and never drops; an ``Observer`` has a
queue of its own and drops its oldest events, visibly; a subscribed function runs in the dispatcher
and so holds the stream up while it runs.
Failure: a handler that raises becomes a ``CommandFailed``, which answers the request; a subscribed
function that raises becomes one too, which observers see and which answers the next request.
"""

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from datetime import datetime
from typing import Protocol, TypeAlias

import anyio
from anyio.lowlevel import checkpoint

from assay.errors import TurnError
from assay.runtime.commands import AnyCommand, command_name
from assay.runtime.events import AnyEvent, CommandFailed
from assay.runtime.lane import Lane, OpenLane, Question, memory_lane
from assay.stores.records import SessionId

CAPACITY = 64
"""Entries a lane or an observer's queue holds unless told otherwise."""

Handler: TypeAlias = Callable[[AnyCommand], Awaitable[AnyEvent]]
"""Carries a command out; may run twice for one command."""

EventHandler: TypeAlias = Callable[[AnyEvent], Awaitable[None] | None]
"""Takes an event in the dispatcher: a plain function, or an async one."""

Now: TypeAlias = Callable[[], datetime]


class Observer:
    """Events of a session for one who watches at their own pace.

    Iterate to receive; iteration ends when the subscription has ended and the queue is empty.

    Attributes:
        dropped: Events lost because the queue was full, oldest first.
    """

    def __init__(self, kinds: tuple[type[AnyEvent], ...], capacity: int) -> None:
        self.dropped = 0
        self._kinds = kinds
        self._capacity = capacity
        self._queue: deque[AnyEvent] = deque()
        self._closed = False
        self._news = anyio.Event()

    def offer(self, event: AnyEvent) -> None:
        """Queue an event if it is of a watched kind; never waits."""
        if self._kinds and not isinstance(event, self._kinds):
            return
        if len(self._queue) == self._capacity:
            self._queue.popleft()
            self.dropped += 1
        self._queue.append(event)
        self._news.set()

    def close(self) -> None:
        """No more events will come."""
        self._closed = True
        self._news.set()

    def __aiter__(self) -> AsyncIterator[AnyEvent]:
        return self

    async def __anext__(self) -> AnyEvent:
        while not self._queue:
            if self._closed:
                raise StopAsyncIteration
            self._news = anyio.Event()
            await self._news.wait()
        return self._queue.popleft()


class SessionBus(Protocol):
    """What a session needs of its bus."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Dispatch as long as the block runs; what is on the lane at its end is still handled.

        On cancel what is on the lane is not handled, and who awaits an answer gets ``TurnError``.
        """
        ...

    def subscribe(self, take: EventHandler, *kinds: type[AnyEvent]) -> AbstractContextManager[None]:
        """Have events handed to ``take`` in the dispatcher, in order, none dropped.

        Args:
            take: Called for each event before the next one is dispatched.
            kinds: Kinds of event wanted; none: all.
        """
        ...

    def observe(
        self, *kinds: type[AnyEvent], capacity: int = CAPACITY
    ) -> AbstractContextManager[Observer]:
        """A queue of events that drops its oldest when full, and counts them.

        Args:
            kinds: Kinds of event wanted; none: all.
            capacity: Events it holds.

        Raises:
            ValueError: If ``capacity`` is below 1.
        """
        ...

    async def publish(self, event: AnyEvent) -> None:
        """Hand an event to the dispatcher; waits while the lane is full.

        Raises:
            TurnError: If the bus is not running.
        """
        ...

    async def request(self, command: AnyCommand) -> AnyEvent:
        """Have a command carried out; gives its event, ``CommandFailed`` if it failed.

        On cancel the handler is cancelled and has ended before this returns.

        Raises:
            TurnError: If the bus is not running, or stops before the command was carried out.
        """
        ...

    async def settled(self) -> CommandFailed | None:
        """Wait until all published before is handled; gives what a subscriber failed with, if any."""
        ...


class MakeBus(Protocol):
    """Makes the bus of a session."""

    def __call__(self, handler: Handler, *, stream: SessionId) -> SessionBus:
        """The bus of the session that the journal knows as ``stream``; ``handler`` carries commands out."""
        ...


class Bus:
    """Typed publish, subscribe and request of one session.

    Args:
        handler: Carries commands out.
        now: Time of the failures it reports.
        capacity: Entries the lane holds before whoever sends waits.
        open_lane: What entries travel on; in this process unless told otherwise.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        now: Now,
        capacity: int = CAPACITY,
        open_lane: OpenLane | None = None,
    ) -> None:
        self._handler = handler
        self._now = now
        self._capacity = capacity
        self._open_lane = open_lane or memory_lane
        self._lane: Lane | None = None
        self._subscribed: list[tuple[EventHandler, tuple[type[AnyEvent], ...]]] = []
        self._observers: list[Observer] = []
        self._targets: dict[type[AnyEvent], tuple[EventHandler, ...]] = {}
        self._failed: CommandFailed | None = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        failure: Exception | None = None
        async with self._open_lane(self._capacity) as lane, anyio.create_task_group() as group:
            group.start_soon(self._dispatch, lane)
            self._lane = lane
            try:
                yield
            except Exception as error:  # noqa: BLE001  # raised below as itself, not in a group
                failure = error
            finally:
                self._lane = None
                lane.close()
        if failure is not None:
            raise failure

    @contextmanager
    def subscribe(self, take: EventHandler, *kinds: type[AnyEvent]) -> Generator[None]:
        entry = (take, kinds)
        self._subscribed.append(entry)
        self._targets.clear()
        try:
            yield
        finally:
            self._subscribed.remove(entry)
            self._targets.clear()

    @contextmanager
    def observe(self, *kinds: type[AnyEvent], capacity: int = CAPACITY) -> Generator[Observer]:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, got {capacity!r}")
        observer = Observer(kinds, capacity)
        self._observers.append(observer)
        try:
            yield observer
        finally:
            self._observers.remove(observer)
            observer.close()

    async def publish(self, event: AnyEvent) -> None:
        await self._running_lane().send(event)

    async def request(self, command: AnyCommand) -> AnyEvent:
        answer = await self._ask(Question(command))
        if answer is None:
            # A cancelled turn stops its dispatcher first: it ends cancelled, too.
            await checkpoint()
            raise TurnError("the session was closed before its command was carried out")
        return answer

    async def settled(self) -> CommandFailed | None:
        answer = await self._ask(Question(None))
        return answer if isinstance(answer, CommandFailed) else None

    def _running_lane(self) -> Lane:
        if self._lane is None:
            raise TurnError("the bus is not running; publish inside `async with bus.running()`")
        return self._lane

    async def _ask(self, question: Question) -> AnyEvent | None:
        lane, sent = self._running_lane(), False
        try:
            await lane.send(question)
            sent = True
            await question.done.wait()
        except BaseException:
            question.scope.cancel()
            if sent or question.begun:
                with anyio.CancelScope(
                    shield=True
                ):  # the dispatcher always answers, at its end too
                    await question.done.wait()
            raise
        return question.answer

    async def _dispatch(self, lane: Lane) -> None:
        try:
            async for entry in lane:
                if isinstance(entry, Question):
                    await self._respond(entry)
                else:
                    await self._show(entry)
        finally:
            for entry in lane.abandon():  # wake up whoever awaits an answer that will not come
                if isinstance(entry, Question):
                    entry.done.set()

    async def _respond(self, question: Question) -> None:
        question.begun = True
        try:
            with question.scope:
                question.answer = await self._answer(question.command)
        finally:
            question.done.set()

    async def _answer(self, command: AnyCommand | None) -> AnyEvent | None:
        failed, self._failed = self._failed, None
        if failed is not None or command is None:
            return failed
        try:
            return await self._handler(command)
        except Exception as error:  # noqa: BLE001  # a failing handler is an event
            return failed_with(command, error, at=self._now())

    async def _show(self, event: AnyEvent) -> None:
        for observer in self._observers:
            observer.offer(event)
        targets = self._targets.get(type(event))
        if targets is None:
            targets = self._targets[type(event)] = self._wanting(event)
        for take in targets:
            try:
                waiting = take(event)
                if waiting is not None:
                    await waiting
            except Exception as error:  # noqa: BLE001  # a failing handler is an event
                self._report(event, error)

    def _wanting(self, event: AnyEvent) -> tuple[EventHandler, ...]:
        return tuple(
            take for take, kinds in self._subscribed if not kinds or isinstance(event, kinds)
        )

    def _report(self, event: AnyEvent, error: Exception) -> None:
        failed = CommandFailed(
            turn_id=event.turn_id,
            exchange=event.exchange,
            at=self._now(),
            command="observer",
            kind=type(error).__name__,
            message=str(error),
        )
        self._failed = self._failed or failed
        for observer in self._observers:
            observer.offer(failed)


def failed_with(command: AnyCommand, error: Exception, *, at: datetime) -> CommandFailed:
    """The event of a command whose handler raised."""
    return CommandFailed(
        turn_id=command.turn_id,
        exchange=command.exchange,
        at=at,
        command=command_name(command),
        kind=type(error).__name__,
        message=str(error),
    )
