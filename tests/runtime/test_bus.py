"""The contract of a session's bus, in one process and over NATS JetStream."""

from collections.abc import AsyncIterator
from typing import Protocol

import anyio
import pytest
from anyio.lowlevel import checkpoint

from assay.errors import TurnError
from assay.runtime.bus import Bus, Handler, SessionBus
from assay.runtime.commands import AnyCommand
from assay.runtime.events import AnyEvent, CommandFailed, GuardDecided, MessageReceived
from assay.runtime.nats.bus import NatsBus
from assay.runtime.nats.streams import open_nats
from assay.runtime.reducer import State, reduce
from assay.stores.records import SessionId

from .journals import carried_out, message
from .support import NOW


def first_command() -> AnyCommand:
    command = reduce(State(), message()).command
    assert command is not None
    return command


async def answer(command: AnyCommand) -> AnyEvent:
    await checkpoint()
    return carried_out(command)


async def fail(command: AnyCommand) -> AnyEvent:
    await checkpoint()
    raise LookupError("no such thing")


class Make(Protocol):
    def __call__(self, handler: Handler = answer, *, capacity: int = 64) -> SessionBus: ...


@pytest.fixture(params=["memory", "nats"])
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    def in_memory(handler: Handler = answer, *, capacity: int = 64) -> SessionBus:
        return Bus(handler, now=lambda: NOW, capacity=capacity)

    if request.param == "memory":
        yield in_memory
        return

    async with open_nats(request.getfixturevalue("nats_url")) as connection:

        def over_nats(handler: Handler = answer, *, capacity: int = 64) -> SessionBus:
            stream = SessionId("acme%1Fanna/s")
            return NatsBus(connection, handler, stream=stream, now=lambda: NOW, capacity=capacity)

        yield over_nats


def break_down(event: AnyEvent) -> None:
    raise RuntimeError("disk full")


async def test_a_request_gives_the_handlers_event(make: Make) -> None:
    bus = make()

    async with bus.running():
        event = await bus.request(first_command())

    assert event == carried_out(first_command())


async def test_subscribers_see_events_in_order(make: Make) -> None:
    bus, seen = make(), list[AnyEvent]()
    events = [message(i) for i in range(100)]

    with bus.subscribe(seen.append):
        async with bus.running():
            for event in events:
                await bus.publish(event)

    assert seen == events


async def test_what_was_published_before_a_request_is_handled_before_it(make: Make) -> None:
    order: list[str] = []

    async def handler(command: AnyCommand) -> AnyEvent:
        order.append("command")
        return await answer(command)

    bus = make(handler)
    with bus.subscribe(lambda _: order.append("event")):
        async with bus.running():
            await bus.publish(message())
            await bus.request(first_command())

    assert order == ["event", "command"]


async def test_only_the_wanted_kinds_arrive(make: Make) -> None:
    bus, decided, all_of_them = make(), list[AnyEvent](), list[AnyEvent]()

    with bus.subscribe(decided.append, GuardDecided), bus.subscribe(all_of_them.append):
        async with bus.running():
            await bus.publish(message())

    assert (decided, all_of_them) == ([], [message()])


async def test_a_subscription_ends_with_its_block(make: Make) -> None:
    bus, seen = make(), list[AnyEvent]()

    async with bus.running():
        with bus.subscribe(seen.append):
            await bus.publish(message(0))
            await bus.settled()
        await bus.publish(message(1))

    assert seen == [message(0)]


async def test_a_slow_subscriber_makes_the_publisher_wait(make: Make) -> None:
    gate, sent, waiting = anyio.Event(), list[int](), 0
    bus = make(capacity=2)

    async def slow(event: AnyEvent) -> None:
        await gate.wait()

    async def publish_all() -> None:
        for number in range(8):
            await bus.publish(message(number))
            sent.append(number)

    with anyio.fail_after(5), bus.subscribe(slow):
        async with bus.running(), anyio.create_task_group() as group:
            group.start_soon(publish_all)
            await anyio.wait_all_tasks_blocked()
            waiting = len(sent)
            gate.set()

    assert waiting < 8
    assert sent == list(range(8))


async def test_an_observer_drops_its_oldest_events_and_counts_them(make: Make) -> None:
    bus = make()

    with bus.observe(capacity=3) as observer:
        async with bus.running():
            for number in range(10):
                await bus.publish(message(number))
    seen = [event async for event in observer]

    assert seen == [message(7), message(8), message(9)]
    assert observer.dropped == 7


async def test_an_observer_waits_for_news(make: Make) -> None:
    bus, seen = make(), list[AnyEvent]()

    async def watch() -> None:
        with bus.observe(MessageReceived) as observer:
            async for event in observer:
                seen.append(event)
                return

    with anyio.fail_after(5):
        async with bus.running(), anyio.create_task_group() as group:
            group.start_soon(watch)
            await anyio.wait_all_tasks_blocked()
            await bus.publish(carried_out(first_command()))
            await bus.publish(message())

    assert seen == [message()]


async def test_an_observer_without_room_is_refused(make: Make) -> None:
    with (
        pytest.raises(ValueError, match="capacity must be at least 1, got 0"),
        make().observe(capacity=0),
    ):
        pass


async def test_a_failing_handler_is_an_event(make: Make) -> None:
    bus = make(fail)

    async with bus.running():
        event = await bus.request(first_command())

    assert isinstance(event, CommandFailed)
    assert (event.command, event.kind, event.message) == (
        "retrieve",
        "LookupError",
        "no such thing",
    )


async def test_a_failing_subscriber_fails_the_next_request(make: Make) -> None:
    bus = make()

    with bus.subscribe(break_down), bus.observe() as observer:
        async with bus.running():
            await bus.publish(message())
            event = await bus.request(first_command())
    seen = [event async for event in observer]

    assert isinstance(event, CommandFailed)
    assert (event.command, event.kind, event.message) == ("observer", "RuntimeError", "disk full")
    assert seen == [message(), event]


async def test_a_failing_subscriber_keeps_no_event_from_the_others(make: Make) -> None:
    bus, seen = make(), list[AnyEvent]()

    with bus.subscribe(break_down), bus.subscribe(seen.append):
        async with bus.running():
            await bus.publish(message())
            failure = await bus.settled()

    assert seen == [message()]
    assert failure is not None


async def test_without_a_failure_all_is_settled(make: Make) -> None:
    bus = make()

    async with bus.running():
        await bus.publish(message())
        failure = await bus.settled()

    assert failure is None


async def test_a_cancelled_request_has_ended_its_handler(make: Make) -> None:
    ended = False

    async def endless(command: AnyCommand) -> AnyEvent:
        nonlocal ended
        try:
            await anyio.sleep_forever()
        finally:
            ended = True
        raise AssertionError("unreachable")

    bus = make(endless)
    with anyio.fail_after(5):
        async with bus.running():
            with anyio.move_on_after(0.01) as scope:
                await bus.request(first_command())
            after = ended

    assert scope.cancelled_caught
    assert after


async def test_the_bus_serves_on_after_a_cancelled_request(make: Make) -> None:
    calls = 0

    async def slow_at_first(command: AnyCommand) -> AnyEvent:
        nonlocal calls
        calls += 1
        if calls == 1:
            await anyio.sleep_forever()
        return await answer(command)

    bus = make(slow_at_first)
    async with bus.running():
        with anyio.move_on_after(0.01):
            await bus.request(first_command())
        event = await bus.request(first_command())

    assert event == carried_out(first_command())


async def test_cancelling_the_bus_hangs_nobody(make: Make) -> None:
    bus = make()

    async def stuck(event: AnyEvent) -> None:
        await anyio.sleep_forever()

    with anyio.fail_after(5), bus.subscribe(stuck), anyio.move_on_after(0.02) as scope:
        async with bus.running():
            await bus.publish(message())
            await bus.request(first_command())

    assert scope.cancelled_caught


async def test_an_error_of_the_block_comes_out_as_itself(make: Make) -> None:
    with pytest.raises(ZeroDivisionError):
        async with make().running():
            raise ZeroDivisionError


async def test_a_bus_that_does_not_run_refuses(make: Make) -> None:
    with pytest.raises(TurnError, match="the bus is not running"):
        await make().publish(message())
