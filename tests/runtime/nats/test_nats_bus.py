"""What the bus over NATS does beyond the contract in tests/runtime/test_bus.py."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from tests.nats_servers import NatsServer, running_nats
from tests.runtime.journals import carried_out, message
from tests.runtime.support import NOW

from assay.runtime.commands import AnyCommand
from assay.runtime.events import AnyEvent
from assay.runtime.nats.bus import NatsBus, observing
from assay.runtime.nats.connection import Connection
from assay.runtime.nats.streams import open_nats, purge, stream_name
from assay.stores.records import Namespace, SessionId

STREAM = SessionId("acme%1Fanna/s")
ANNA = Namespace("acme\x1fanna")


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[NatsServer]:
    with running_nats(tmp_path) as server:
        yield server


async def answer(command: AnyCommand) -> AnyEvent:
    await anyio.lowlevel.checkpoint()
    return carried_out(command)


def bus_over(connection: Connection) -> NatsBus:
    return NatsBus(connection, answer, stream=STREAM, now=lambda: NOW)


async def test_another_process_sees_the_events_of_a_session_in_order(nats_url: str) -> None:
    events = [message(i) for i in range(20)]

    async with (
        open_nats(nats_url) as here,
        open_nats(nats_url) as elsewhere,
        observing(elsewhere, STREAM) as observer,
    ):
        bus = bus_over(here)
        async with bus.running():
            for event in events:
                await bus.publish(event)
        with anyio.fail_after(5):
            seen = [await anext(observer) for _ in events]

    assert seen == events


async def test_a_server_killed_in_the_middle_loses_and_doubles_no_entry(
    own_server: NatsServer,
) -> None:
    seen, events = list[AnyEvent](), [message(i) for i in range(60)]

    async def take(event: AnyEvent) -> None:
        seen.append(event)
        if len(seen) == 30:
            await anyio.to_thread.run_sync(_restart, own_server)

    async with open_nats(own_server.url) as connection:
        bus = bus_over(connection)
        with bus.subscribe(take):
            async with bus.running():
                for event in events:
                    await bus.publish(event)

    assert seen == events


async def test_erasing_a_namespace_leaves_nothing_of_its_session(nats_url: str) -> None:
    async with open_nats(nats_url) as connection:
        bus = bus_over(connection)
        async with bus.running():
            await bus.publish(message())
        name = stream_name(connection.prefix, "session")
        before = await connection.stream_api("look", lambda js: js.stream_info(name))

        await purge(connection, ANNA)
        after = await connection.stream_api("look", lambda js: js.stream_info(name))

    assert (before.state.messages, after.state.messages) == (1, 0)


def _restart(server: NatsServer) -> None:
    server.kill()
    server.start()
