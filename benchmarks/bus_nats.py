"""What the bus between processes costs on this machine: a hop, a job, a piece of news.

    python benchmarks/bus_nats.py [--jobs 1000] [--hops 2000]

A NATS server of its own with JetStream on files; who submits and who works are two connections of one
process, so their Python shares a core. Jobs do nothing. Run it on a quiet machine.
"""

import argparse
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import anyio
import numpy as np
from servers import running_nats

from assay.runtime.bus import Bus, SessionBus
from assay.runtime.commands import AnyCommand
from assay.runtime.events import AnyEvent, MessageReceived
from assay.runtime.jobs import Job
from assay.runtime.nats.bus import NatsBus
from assay.runtime.nats.connection import Connection
from assay.runtime.nats.news import tell
from assay.runtime.nats.queue import NatsQueue
from assay.runtime.nats.streams import open_nats
from assay.stores.protocols import Appended
from assay.stores.records import Namespace, SessionId, TurnId

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STREAM = SessionId("acme%1Fanna/s")
ANNA = Namespace("acme\x1fanna")


class ListedOutbox:
    """News that is there already."""

    def __init__(self, count: int) -> None:
        self._rows = [Appended(STREAM, n, ANNA, str(n)) for n in range(count)]

    async def read(self, *, after: str = "", limit: int) -> list[Appended]:
        return self._rows[:limit]

    async def trim(self, cursor: str) -> int:
        before = len(self._rows)
        self._rows = self._rows[int(cursor) - self._rows[0].sequence + 1 :]
        return before - len(self._rows)


async def unanswered(command: AnyCommand) -> AnyEvent:
    """No commands are sent."""
    raise AssertionError("unreachable")


async def hops(bus: SessionBus, count: int) -> float:
    """Microseconds an event takes through a bus."""
    event = MessageReceived(turn_id=TurnId("s/0"), number=0, text="I live in Porto.", at=NOW)
    async with bus.running():
        start = time.perf_counter()
        for _ in range(count):
            await bus.publish(event)
        await bus.settled()
        return (time.perf_counter() - start) / count * 1e6


async def nothing(job: Job, send: Callable[[bytes], None]) -> bytes:
    """The shortest job."""
    return b""


@asynccontextmanager
async def working(queue: NatsQueue, concurrency: int) -> AsyncGenerator[None]:
    """A worker for the length of the block."""

    async def work() -> None:
        await queue.work(["evaluation"], nothing, concurrency=concurrency)

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        yield
        group.cancel_scope.cancel()


async def one_by_one(queue: NatsQueue, count: int) -> list[float]:
    """Milliseconds of each job, one after the other."""
    return [await timed(lambda name=f"a{n}": ask(queue, name)) for n in range(count)]


async def at_once(queue: NatsQueue, count: int, callers: int) -> float:
    """Jobs a second with so many who submit."""
    names = iter([f"b{n}" for n in range(count)])

    async def caller() -> None:
        for name in names:
            await ask(queue, name)

    async def all_of_them() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(callers):
                group.start_soon(caller)

    return count / (await timed(all_of_them) / 1e3)


async def ask(queue: NatsQueue, name: str) -> None:
    """Have a job done."""
    await queue.submit(Job(name, "evaluation", "acme", ANNA, b"x"), deadline=60)


async def timed(do: Callable[[], Awaitable[None]]) -> float:
    """Milliseconds something takes."""
    start = time.perf_counter()
    await do()
    return (time.perf_counter() - start) * 1e3


async def news(connection: Connection, count: int) -> float:
    """News told a second."""
    outbox = ListedOutbox(count)
    start = time.perf_counter()
    while await tell(outbox, connection):
        pass
    return count / (time.perf_counter() - start)


async def main(arguments: argparse.Namespace) -> None:
    """Measure and print."""
    with running_nats() as server:
        async with open_nats(server.url) as here, open_nats(server.url) as there:
            local = await hops(Bus(unanswered, now=lambda: NOW), arguments.hops)
            over = await hops(
                NatsBus(here, unanswered, stream=STREAM, now=lambda: NOW), arguments.hops
            )
            async with working(NatsQueue(there), 8):
                each = await one_by_one(NatsQueue(here), arguments.jobs)
                burnt = time.process_time()
                rate = await at_once(NatsQueue(here), arguments.jobs, 32)
                burnt = (time.process_time() - burnt) / arguments.jobs * 1e3
            told = await news(here, arguments.hops)
    p50, p99 = np.percentile(each, [50, 99])
    print(f"event through a bus in one process   {local:8.1f} us")
    print(f"event through a bus over JetStream   {over:8.1f} us")
    print(f"empty job, there and back       p50  {p50:8.2f} ms   p99 {p99:.2f} ms")
    print(
        f"empty jobs, 32 callers, 8 slots      {rate:8.0f} a second, {burnt:.2f} ms of Python each"
    )
    print(f"news of journal entries              {told:8.0f} a second")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=1_000)
    parser.add_argument("--hops", type=int, default=2_000)
    anyio.run(main, parser.parse_args())
