"""One bounded stream and one dispatcher per session: events for whoever watches, commands answered.

Order: what is published and requested is dispatched in that order, one at a time.
Back-pressure: the session's own stream waits when it is full and never drops; an ``Observer`` has a
queue of its own and drops its oldest events, visibly; a subscribed function runs in the dispatcher
and so holds the stream up while it runs.
Failure: a handler that raises becomes a ``CommandFailed``, which answers the request; a subscribed
function that raises becomes one too, which observers see and which answers the next request.
"""

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from typing import TypeAlias

import anyio
from anyio.lowlevel import checkpoint
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from assay.errors import TurnError
from assay.runtime.commands import AnyCommand, command_name
from assay.runtime.events import AnyEvent, CommandFailed

CAPACITY = 64
"""Entries a stream or an observer's queue holds unless told otherwise."""

Handler: TypeAlias = Callable[[AnyCommand], Awaitable[AnyEvent]]
"""Carries a command out; may run twice for one command."""

EventHandler: TypeAlias = Callable[[AnyEvent], Awaitable[None] | None]
"""Takes an event in the dispatcher: a plain function, or an async one."""

Now: TypeAlias = Callable[[], datetime]


class _Question:
    """A command on its way, or ``None`` to ask what failed, and the place of the answer."""

    __slots__ = ("answer", "command", "done", "scope")

    def __init__(self, command: AnyCommand | None) -> None:
        self.command = command
        self.answer: AnyEvent | None = None
        self.done = anyio.Event()
        self.scope = anyio.CancelScope()


_Entry: TypeAlias = AnyEvent | _Question


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


class Bus:
    """Typed publish, subscribe and request of one session.

    Args:
        handler: Carries commands out.
        now: Time of the failures it reports.
        capacity: Entries the stream holds before whoever sends waits.
    """

    def __init__(self, handler: Handler, *, now: Now, capacity: int = CAPACITY) -> None:
        self._handler = handler
        self._now = now
        self._capacity = capacity
        self._send: MemoryObjectSendStream[_Entry] | None = None
        self._subscribed: list[tuple[EventHandler, tuple[type[AnyEvent], ...]]] = []
        self._observers: list[Observer] = []
        self._targets: dict[type[AnyEvent], tuple[EventHandler, ...]] = {}
        self._failed: CommandFailed | None = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Dispatch as long as the block runs; what is in the stream at its end is still handled.

        On cancel what is in the stream is not handled, and who awaits an answer gets ``TurnError``.
        """
        send, receive = anyio.create_memory_object_stream[_Entry](self._capacity)
        failure: Exception | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._dispatch, receive)
            self._send = send
            try:
                yield
            except Exception as error:  # noqa: BLE001  # raised below as itself, not in a group
                failure = error
            finally:
                self._send = None
                send.close()
        if failure is not None:
            raise failure

    @contextmanager
    def subscribe(self, take: EventHandler, *kinds: type[AnyEvent]) -> Generator[None]:
        """Have events handed to ``take`` in the dispatcher, in order, none dropped.

        Args:
            take: Called for each event before the next one is dispatched.
            kinds: Kinds of event wanted; none: all.
        """
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
        """A queue of events that drops its oldest when full, and counts them.

        Args:
            kinds: Kinds of event wanted; none: all.
            capacity: Events it holds.

        Raises:
            ValueError: If ``capacity`` is below 1.
        """
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
        """Hand an event to the dispatcher; waits while the stream is full.

        Raises:
            TurnError: If the bus is not running.
        """
        await self._stream().send(event)

    async def request(self, command: AnyCommand) -> AnyEvent:
        """Have a command carried out; gives its event, ``CommandFailed`` if it failed.

        On cancel the handler is cancelled and has ended before this returns.

        Raises:
            TurnError: If the bus is not running, or stops before the command was carried out.
        """
        answer = await self._ask(_Question(command))
        if answer is None:
            await (
                checkpoint()
            )  # a cancelled turn stops its dispatcher first: it ends cancelled, too
            raise TurnError("the session was closed before its command was carried out")
        return answer

    async def settled(self) -> CommandFailed | None:
        """Wait until all published before is handled; gives what a subscriber failed with, if any."""
        answer = await self._ask(_Question(None))
        return answer if isinstance(answer, CommandFailed) else None

    def _stream(self) -> MemoryObjectSendStream[_Entry]:
        if self._send is None:
            raise TurnError("the bus is not running; publish inside `async with bus.running()`")
        return self._send

    async def _ask(self, question: _Question) -> AnyEvent | None:
        await self._stream().send(question)
        try:
            await question.done.wait()
        except BaseException:
            question.scope.cancel()
            with anyio.CancelScope(shield=True):  # the dispatcher always answers, even when it ends
                await question.done.wait()
            raise
        return question.answer

    async def _dispatch(self, receive: MemoryObjectReceiveStream[_Entry]) -> None:
        try:
            async for entry in receive:
                if isinstance(entry, _Question):
                    await self._respond(entry)
                else:
                    await self._show(entry)
        finally:
            _abandon(receive)

    async def _respond(self, question: _Question) -> None:
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
            return CommandFailed(
                turn_id=command.turn_id,
                exchange=command.exchange,
                at=self._now(),
                command=command_name(command),
                kind=type(error).__name__,
                message=str(error),
            )

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


def _abandon(receive: MemoryObjectReceiveStream[_Entry]) -> None:
    """Wake up whoever awaits an answer that will not come."""
    with receive:
        try:
            while True:
                entry = receive.receive_nowait()
                if isinstance(entry, _Question):
                    entry.done.set()
        except (anyio.WouldBlock, anyio.EndOfStream):
            pass
