"""What entries of a session travel on, from who sends them to the one dispatcher."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, TypeAlias

import anyio

from assay.runtime.commands import AnyCommand
from assay.runtime.events import AnyEvent


class Question:
    """A command on its way, or ``None`` to ask what failed, and the place of the answer."""

    __slots__ = ("answer", "begun", "command", "done", "scope")

    def __init__(self, command: AnyCommand | None) -> None:
        self.command = command
        self.answer: AnyEvent | None = None
        self.begun = False
        self.done = anyio.Event()
        self.scope = anyio.CancelScope()


Entry: TypeAlias = AnyEvent | Question
"""What travels on a lane."""


class Lane(Protocol):
    """How entries get from who sends them to the one dispatcher: in order, none dropped, bounded.

    Iterate to receive; iteration ends when the lane is closed and empty.
    """

    async def send(self, entry: Entry) -> None:
        """Put an entry in; waits while the lane is full. If it raises, what is not received is gone."""
        ...

    def close(self) -> None:
        """Nothing more is sent."""
        ...

    def abandon(self) -> Iterator[Entry]:
        """The entries that will not be received any more."""
        ...

    def __aiter__(self) -> AsyncIterator[Entry]: ...


OpenLane: TypeAlias = Callable[[int], AbstractAsyncContextManager[Lane]]
"""Opens a lane that holds so many entries."""


@asynccontextmanager
async def memory_lane(capacity: int) -> AsyncGenerator[Lane]:
    """A lane within this process."""
    yield _MemoryLane(capacity)


class _MemoryLane:
    """A bounded stream of anyio."""

    def __init__(self, capacity: int) -> None:
        self._send, self._receive = anyio.create_memory_object_stream[Entry](capacity)

    async def send(self, entry: Entry) -> None:
        await self._send.send(entry)

    def close(self) -> None:
        self._send.close()

    def abandon(self) -> Iterator[Entry]:
        with self._receive:
            try:
                while True:
                    yield self._receive.receive_nowait()
            except (anyio.WouldBlock, anyio.EndOfStream):
                pass

    def __aiter__(self) -> AsyncIterator[Entry]:
        return self._receive
