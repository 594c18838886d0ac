"""CPU of one event through the bus, against one raw anyio memory stream, both with 10 subscribers.

Run: ``python benchmarks/bus_hop.py``. Prints one JSON object; the target is a ratio of at most 2.
"""

import json
import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from datetime import UTC, datetime

import anyio

from assay.runtime.bus import Bus
from assay.runtime.commands import AnyCommand
from assay.runtime.events import AnyEvent, MessageReceived
from assay.stores.records import TurnId

EVENTS = 20_000
SUBSCRIBERS = 10
ROUNDS = 7
NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVENT = MessageReceived(turn_id=TurnId("s/0"), number=0, text="hello", at=NOW)


class Counter:
    """A subscriber that counts."""

    def __init__(self) -> None:
        self.seen = 0

    def take(self, event: AnyEvent) -> None:
        """Count one event."""
        self.seen += 1


async def raw(counters: list[Counter]) -> None:
    """One stream, one task that calls every subscriber."""
    send, receive = anyio.create_memory_object_stream[AnyEvent](64)
    takes = [counter.take for counter in counters]

    async def dispatch() -> None:
        async for event in receive:
            for take in takes:
                take(event)

    async with anyio.create_task_group() as group:
        group.start_soon(dispatch)
        async with send:
            for _ in range(EVENTS):
                await send.send(EVENT)


async def through_the_bus(counters: list[Counter]) -> None:
    """The bus of a session."""

    async def no_commands(command: AnyCommand) -> AnyEvent:
        raise NotImplementedError

    bus = Bus(no_commands, now=lambda: NOW)
    with _subscribed(bus, counters):
        async with bus.running():
            for _ in range(EVENTS):
                await bus.publish(EVENT)


def _subscribed(bus: Bus, counters: list[Counter]) -> ExitStack:
    stack = ExitStack()
    for counter in counters:
        stack.enter_context(bus.subscribe(counter.take))
    return stack


def cpu_per_event(run: Callable[[list[Counter]], Awaitable[None]]) -> float:
    """CPU microseconds per event of one run; checks that every subscriber saw every event."""
    counters = [Counter() for _ in range(SUBSCRIBERS)]
    start = time.process_time()
    anyio.run(run, counters)
    spent = time.process_time() - start
    if any(counter.seen != EVENTS for counter in counters):
        raise SystemExit("an event was lost")
    return spent / EVENTS * 1e6


def main() -> None:
    """Measure both, alternating, and print the medians and their ratio."""
    pairs = [(cpu_per_event(raw), cpu_per_event(through_the_bus)) for _ in range(ROUNDS)]
    figures = {
        "events": EVENTS,
        "subscribers": SUBSCRIBERS,
        "raw_us": round(statistics.median(pair[0] for pair in pairs), 2),
        "bus_us": round(statistics.median(pair[1] for pair in pairs), 2),
        "ratio": round(statistics.median(bus / raw for raw, bus in pairs), 2),
        "target_ratio": 2.0,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
