"""A session here whose commands another process carries out, over its own connection."""

from collections.abc import AsyncIterator
from typing import NamedTuple

import anyio
import pytest
from tests.runtime.journals import carried_out, message
from tests.runtime.support import NOW

from assay.runtime.commands import AnyCommand
from assay.runtime.events import AnyEvent, CommandFailed
from assay.runtime.nats.answering import Elsewhere, answering
from assay.runtime.nats.bus import NatsBus
from assay.runtime.nats.connection import Connection
from assay.runtime.nats.streams import open_nats
from assay.runtime.reducer import State, reduce
from assay.stores.records import SessionId

STREAM = SessionId("acme%1Fanna/s")


class Sides(NamedTuple):
    here: Connection
    there: Connection


@pytest.fixture
async def sides(nats_url: str) -> AsyncIterator[Sides]:
    async with open_nats(nats_url) as here, open_nats(nats_url) as there:
        yield Sides(here, there)


def first_command() -> AnyCommand:
    command = reduce(State(), message()).command
    assert command is not None
    return command


def bus_asking(connection: Connection) -> NatsBus:
    return NatsBus(connection, Elsewhere(connection, STREAM), stream=STREAM, now=lambda: NOW)


async def answer(command: AnyCommand) -> AnyEvent:
    await anyio.lowlevel.checkpoint()
    return carried_out(command)


async def fail(command: AnyCommand) -> AnyEvent:
    raise LookupError("no such thing")


async def test_another_process_answers_a_command(sides: Sides) -> None:
    bus = bus_asking(sides.here)

    async with answering(sides.there, answer, stream=STREAM, now=lambda: NOW), bus.running():
        event = await bus.request(first_command())

    assert event == carried_out(first_command())


async def test_a_handler_that_fails_elsewhere_is_an_event(sides: Sides) -> None:
    bus, event = bus_asking(sides.here), None

    async with answering(sides.there, fail, stream=STREAM, now=lambda: NOW), bus.running():
        event = await bus.request(first_command())

    assert isinstance(event, CommandFailed)
    assert (event.command, event.kind, event.message) == (
        "retrieve",
        "LookupError",
        "no such thing",
    )


async def test_a_command_waits_for_someone_to_answer(sides: Sides) -> None:
    bus, events = bus_asking(sides.here), list[AnyEvent]()

    async def ask() -> None:
        events.append(await bus.request(first_command()))

    async with bus.running(), anyio.create_task_group() as group:
        group.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        async with answering(sides.there, answer, stream=STREAM, now=lambda: NOW):
            with anyio.fail_after(5):
                while not events:
                    await sides.here.request("nobody", b"")

    assert events == [carried_out(first_command())]


async def test_a_cancelled_request_has_ended_its_handler_elsewhere(sides: Sides) -> None:
    bus, begun, ended = bus_asking(sides.here), anyio.Event(), False

    async def endless(command: AnyCommand) -> AnyEvent:
        nonlocal ended
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended = True
        raise AssertionError("unreachable")

    async with (
        answering(sides.there, endless, stream=STREAM, now=lambda: NOW),
        bus.running(),
        anyio.create_task_group() as group,
    ):
        group.start_soon(bus.request, first_command())
        await begun.wait()
        group.cancel_scope.cancel()

    assert ended


async def test_each_command_goes_to_one_of_those_who_answer(sides: Sides) -> None:
    bus, carried = bus_asking(sides.here), list[AnyCommand]()

    async def note(command: AnyCommand) -> AnyEvent:
        carried.append(command)
        return await answer(command)

    async with (
        answering(sides.here, note, stream=STREAM, now=lambda: NOW),
        answering(sides.there, note, stream=STREAM, now=lambda: NOW),
        bus.running(),
    ):
        for _ in range(10):
            await bus.request(first_command())

    assert carried == [first_command()] * 10
