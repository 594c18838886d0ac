"""What processes learn of one another over the bus, and what is erased from it."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import NamedTuple

import anyio
import pytest
from tests.received import Received
from tests.runtime.crashing import MESSAGES
from tests.runtime.distributed.test_turns import process
from tests.runtime.leavings import left_behind
from tests.runtime.rooms import SESSION, USER, WordGuard, fresh_bank, over, with_settings
from tests.runtime.support import NOW

from assay.errors import BusError, ConfigError, ErasedInput, JobFailed
from assay.runtime.bus import Handler
from assay.runtime.clock import StoppedClock
from assay.runtime.distributed.working import working
from assay.runtime.facade import Runtime
from assay.runtime.http.service import open_service
from assay.runtime.jobs import Job, JobKind
from assay.runtime.nats.bus import NatsBus
from assay.runtime.nats.connection import Connection
from assay.runtime.nats.queue import NatsQueue
from assay.runtime.nats.streams import KEPT, Kept, Limits, open_nats, stream_name
from assay.runtime.streams import stream_of
from assay.runtime.wiring import open_runtime
from assay.stores.embeddings import HashingEmbedder
from assay.stores.postgres.bank import open_postgres_bank
from assay.stores.records import Namespace, Origin, SessionId

KEYS = {"sk-test-0001-0123456789": "acme"}
TOLD = Origin(writer="user", channel="import:test")
ANN = Namespace("acme\x1fann")


class Servers(NamedTuple):
    """Addresses of the test's own database and bus."""

    database: str
    bus: str


@pytest.fixture
def servers(clean_database: str, nats_url: str) -> Servers:
    return Servers(clean_database, nats_url)


@asynccontextmanager
async def runtimes(servers: Servers, count: int, **turn: object) -> AsyncGenerator[list[Runtime]]:
    """As many processes as asked for, each with connections of its own."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                open_runtime(
                    model="scripted",
                    bank=servers.database,
                    bus=servers.bus,
                    guard=WordGuard(),
                    embedder="hashing",
                    clock=StoppedClock(NOW),
                    settings=with_settings(turn=turn),
                )
            )
            for _ in range(count)
        ]


def at_work(runtime: Runtime) -> AbstractAsyncContextManager[object]:
    return working(runtime, kinds=("turn", "evaluation"), concurrency=2, patience=5)


async def test_a_service_tells_its_watchers_of_turns_it_had_no_part_in(servers: Servers) -> None:
    async with (
        runtimes(servers, 3) as (watching, asking, worker),
        open_service(watching, model="scripted", keys=KEYS) as service,
        at_work(worker),
    ):
        with service.news("acme") as news, service.news("umbrella") as others:
            await asking.session(user=ANN).send(MESSAGES[0])
            with anyio.fail_after(10):
                heard = await anext(news)

            with anyio.move_on_after(0) as nothing:
                await anext(others)

    assert heard == ANN
    assert nothing.cancelled_caught


async def test_only_one_process_tells_and_another_goes_on_when_it_stops(servers: Servers) -> None:
    heard = Received[SessionId]()

    async with runtimes(servers, 3) as (asking, first, second):
        assert asking.hub is not None
        async with asking.hub.hearing(heard), at_work(second):
            async with at_work(first):
                pass
            await asking.session(user=USER, session_id=SESSION).send(MESSAGES[0])
            await heard.next()

    assert set(heard.items) == {stream_of(USER, SESSION)}


async def test_what_is_erased_waits_in_no_queue_any_more(servers: Servers) -> None:
    """A turn that nobody took holds what the user said."""
    unattended = runtimes(servers, 1, seconds=0.5, queue_seconds=0.5)
    waiting, left = 0, [-1]
    async with (
        unattended as (lonely,),
        open_nats(servers.bus) as connection,
        anyio.create_task_group() as asking,
    ):
        asking.start_soon(say, lonely)
        while not waiting:
            waiting = await kept_in(connection, "jobs")

        await lonely.erase_user(USER)

        left = [await kept_in(connection, kept) for kept in KEPT]

    assert waiting == 1
    assert left == [0] * len(KEPT)


async def test_what_is_forgotten_stands_in_no_dead_letter(servers: Servers) -> None:
    async def poisoned(job: Job, send: Callable[[bytes], None]) -> bytes:
        raise RuntimeError("poison")

    settled, kinds = Limits(pause=0.01), list[JobKind](["turn"])
    async with runtimes(servers, 1) as (door,), open_nats(servers.bus) as connection:
        record = await door.remember(USER, "The safe code is 4411.", origin=TOLD)
        job = Job("j", "turn", "", USER, b"The safe code is 4411.")
        queue = NatsQueue(connection, limits=settled)
        async with anyio.create_task_group() as group:
            group.start_soon(queue.work, kinds, poisoned)
            with pytest.raises(JobFailed):
                await queue.submit(job, deadline=30)
            group.cancel_scope.cancel()
        before = await kept_in(connection, "dead")

        await door.forget(USER, record)

        assert (before, await kept_in(connection, "dead")) == (1, 0)


async def say(runtime: Runtime) -> None:
    with pytest.raises(BusError):
        await runtime.session(user=USER, session_id=SESSION).send(MESSAGES[0])


async def kept_in(connection: Connection, kept: Kept) -> int:
    """Messages in a stream."""
    name = stream_name(connection.prefix, kept)
    info = await connection.stream_api("count", lambda js: js.stream_info(name))
    return int(info.state.messages)


async def test_an_erased_session_is_over_in_every_process(servers: Servers) -> None:
    async with runtimes(servers, 3) as (one, other, worker), at_work(worker):
        await one.session(user=USER, session_id=SESSION).send(MESSAGES[0])
        await other.erase_user(USER)

        with pytest.raises(ErasedInput):
            await one.session(user=USER, session_id=SESSION).send(MESSAGES[1])


async def test_a_session_whose_bus_is_nats_takes_the_same_turns(servers: Servers) -> None:
    alone = fresh_bank()
    sole = over(alone).session(user=USER, session_id=SESSION)
    for text in MESSAGES:
        await sole.send(text)

    opening = open_postgres_bank(
        servers.database, embedder=HashingEmbedder(), clock=StoppedClock(NOW)
    )
    async with opening as bank, open_nats(servers.bus) as connection:

        def make_bus(handler: Handler, *, stream: SessionId) -> NatsBus:
            return NatsBus(connection, handler, stream=stream, now=lambda: NOW)

        session = process(bank, "here", make_bus=make_bus).session(user=USER, session_id=SESSION)
        for text in MESSAGES:
            await session.send(text)
        left = await left_behind(bank)

    assert left == await left_behind(alone)


async def test_whoever_works_needs_a_bus() -> None:
    with pytest.raises(ConfigError, match="give --bus"):
        async with at_work(over(fresh_bank())):
            raise AssertionError("unreachable")


async def test_a_bus_needs_a_bank_that_is_shared() -> None:
    with pytest.raises(ConfigError, match="a bank that every process reaches"):
        async with open_runtime(model="scripted", bus="nats://127.0.0.1:4222"):
            raise AssertionError("unreachable")


async def test_the_clocks_of_hosts_may_differ(servers: Servers) -> None:
    """Leases go by the database's clock: a host an hour ahead takes no session before its time."""
    async with AsyncExitStack() as stack:
        skewed = [
            await stack.enter_async_context(
                open_runtime(
                    model="scripted",
                    bank=servers.database,
                    guard=WordGuard(),
                    embedder="hashing",
                    clock=StoppedClock(NOW + timedelta(hours=hours)),
                )
            )
            for hours in (-1, 0, 1)
        ]
        async with anyio.create_task_group() as group:
            for rt in skewed:
                group.start_soon(rt.session(user=USER, session_id=SESSION).send, MESSAGES[0])
        kinds = [turn.failure for turn in await skewed[0].turns(USER, SESSION)]
        left = await skewed[0].bank.journal.read(stream_of(USER, SESSION))

    assert kinds == [None] * 3
    assert [entry.sequence for entry in left] == list(range(15))
