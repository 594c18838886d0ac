"""The queue over NATS beyond the contract of all queues: fairness, bounds, faults, dead letters."""

import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.nats_servers import NatsServer, running_nats

from assay.errors import BusError, JobFailed
from assay.runtime.jobs import Job, JobHandler, NotForThisWorker, Piece
from assay.runtime.nats.connection import Connection, StreamFull
from assay.runtime.nats.consumers import Consumers, put, share_of
from assay.runtime.nats.dead_letters import dead_letter, dead_letters, drop, replay
from assay.runtime.nats.line import Line
from assay.runtime.nats.queue import NatsQueue
from assay.runtime.nats.streams import DEFAULT_LIMITS, Limits, open_nats, purge
from assay.stores.records import Namespace

Send = Callable[[bytes], None]
EVER = 60.0
QUICK = Limits(silence=0.6, tries=2, pause=0.01)


@pytest.fixture
async def connection(nats_url: str) -> AsyncIterator[Connection]:
    async with open_nats(nats_url) as opened:
        yield opened


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[NatsServer]:
    with running_nats(tmp_path, jetstream="max_file_store: 8TB, sync_interval: always") as server:
        yield server


def job(name: str, *, tenant: str = "acme", payload: bytes = b"x") -> Job:
    return Job(name, "turn", tenant, Namespace(f"{tenant}\x1fanna"), payload)


async def shouting(asked: Job, send: Send) -> bytes:
    return asked.payload.upper()


async def failing(asked: Job, send: Send) -> bytes:
    raise LookupError("no such thing")


async def messages_in(connection: Connection, what: str) -> int:
    name = f"{connection.prefix}-{what}"
    info = await connection.stream_api("look", lambda js: js.stream_info(name))
    return info.state.messages


async def keep_working(queue: NatsQueue, handler: JobHandler, concurrency: int = 1) -> None:
    await queue.work(["turn"], handler, concurrency=concurrency)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 6)), max_size=30))
def test_nobody_in_line_waits_longer_than_one_round(arrivals: list[tuple[int, int]]) -> None:
    line, work, since = Line[int](), Counter[int](), Counter[int]()

    for who, amount in arrivals:
        if not work[who]:
            since[who] = 0
        work[who] += amount
        line.join(who)
        turn = line.next()
        assert turn is not None
        work[turn.who] -= 1
        if not work[turn.who]:
            line.leave(turn)
        for other in work:
            since[other] = 0 if other == turn.who or not work[other] else since[other] + 1
        assert max(since.values()) <= len(work)


def test_a_line_keeps_whose_work_came_while_it_was_looked_for() -> None:
    line = Line[str]()
    line.join("a")
    turn = line.next()
    assert turn is not None

    line.join("a")
    line.leave(turn)

    assert len(line) == 1


async def test_a_thousand_waiting_jobs_delay_anothers_job_by_one_round(
    connection: Connection,
) -> None:
    order, queue = list[str](), NatsQueue(connection)
    halfway, go_on, single = anyio.Event(), anyio.Event(), job("single", tenant="other")
    flood = [job(f"f{i}", tenant="flood") for i in range(1000)]
    await Consumers(connection, DEFAULT_LIMITS).jobs_of(share_of(flood[0]))
    await Consumers(connection, DEFAULT_LIMITS).jobs_of(share_of(single))
    for one in flood:
        await put(connection, one)

    async def note(asked: Job, send: Send) -> bytes:
        order.append(asked.tenant)
        if len(order) == 10:
            halfway.set()
            await go_on.wait()
        return b""

    async with anyio.create_task_group() as group:
        group.start_soon(keep_working, queue, note)
        await halfway.wait()
        await put(connection, single)
        await messages_in(connection, "jobs")  # the worker has been told by now
        go_on.set()
        await queue.submit(single, deadline=EVER)
        group.cancel_scope.cancel()

    assert order.index("other") - 10 <= 1
    assert len(order) < 100


async def test_two_tenants_with_many_jobs_are_served_in_turn(connection: Connection) -> None:
    order, queue, done = list[str](), NatsQueue(connection), anyio.Event()
    for tenant in ("one", "two"):
        await Consumers(connection, DEFAULT_LIMITS).jobs_of(share_of(job("x", tenant=tenant)))
        for number in range(20):
            await put(connection, job(f"{tenant} {number}", tenant=tenant))

    async def note(asked: Job, send: Send) -> bytes:
        order.append(asked.tenant)
        if len(order) == 40:
            done.set()
        return b""

    async with anyio.create_task_group() as group:
        group.start_soon(keep_working, queue, note)
        with anyio.fail_after(15):
            await done.wait()
        group.cancel_scope.cancel()

    assert all({order[i], order[i + 1]} == {"one", "two"} for i in range(0, 40, 2))


async def test_who_submits_waits_while_the_tenant_has_too_many_jobs(connection: Connection) -> None:
    queue, may_end, doing = NatsQueue(connection, Limits(waiting_of_one=2)), anyio.Event(), 0
    answers = list[bytes]()

    async def slow(asked: Job, send: Send) -> bytes:
        await may_end.wait()
        return asked.payload

    async def ask(name: str) -> None:
        answers.append(await queue.submit(job(name), deadline=EVER))

    async with anyio.create_task_group() as working:
        working.start_soon(keep_working, queue, slow, 4)
        async with anyio.create_task_group() as group:
            for name in ("a", "b"):
                group.start_soon(ask, name)
            while await messages_in(connection, "jobs") < 2:
                await anyio.lowlevel.checkpoint()
            with pytest.raises(BusError, match=r"within 0\.3 s"):
                await queue.submit(job("refused"), deadline=0.3)
            doing = await messages_in(connection, "jobs")
            group.start_soon(ask, "c")
            may_end.set()
        working.cancel_scope.cancel()

    assert doing == 2
    assert answers == [b"x"] * 3


async def test_a_full_stream_takes_no_more_of_anybody(nats_url: str) -> None:
    async with open_nats(nats_url, limits=Limits(waiting=2)) as connection:
        for tenant in ("a", "b"):
            await put(connection, job("j", tenant=tenant))

        with pytest.raises(StreamFull, match="let workers catch up"):
            await put(connection, job("j", tenant="c"))


async def test_a_job_submitted_twice_is_done_once_and_answers_both(connection: Connection) -> None:
    queue, ran, answers = NatsQueue(connection), list[str](), list[bytes]()

    async def slow(asked: Job, send: Send) -> bytes:
        ran.append(asked.id)
        await anyio.sleep(0.1)
        return b"once"

    async def ask() -> None:
        answers.append(await queue.submit(job("same"), deadline=EVER))

    async with anyio.create_task_group() as working:
        working.start_soon(keep_working, queue, slow, 2)
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            group.start_soon(ask)
        await ask()
        working.cancel_scope.cancel()

    assert answers == [b"once"] * 3
    assert ran == ["same"]


async def test_a_refused_job_nobody_waits_for_is_not_lost(connection: Connection) -> None:
    """As a dead letter that is tried again: nobody is there to put it back."""
    queue, refused, done = NatsQueue(connection, limits=QUICK), anyio.Event(), anyio.Event()

    async def refusing(asked: Job, send: Send) -> bytes:
        refused.set()
        raise NotForThisWorker("another model")

    async def doing(asked: Job, send: Send) -> bytes:
        done.set()
        return b""

    await Consumers(connection, QUICK).jobs_of(share_of(job("orphan")))
    async with anyio.create_task_group() as group:
        group.start_soon(keep_working, queue, refusing)
        await put(connection, job("orphan"))
        await refused.wait()
        group.start_soon(keep_working, queue, doing)
        with anyio.fail_after(15):
            await done.wait()
        group.cancel_scope.cancel()


async def test_a_withdrawn_job_is_never_begun(connection: Connection) -> None:
    queue = NatsQueue(connection)

    with pytest.raises(BusError, match="no worker did"):
        await queue.submit(job("lonely"), deadline=0.2)

    assert await messages_in(connection, "jobs") == 0


async def test_erasing_a_namespace_drops_its_waiting_jobs_and_results(
    connection: Connection,
) -> None:
    queue = NatsQueue(connection)
    async with anyio.create_task_group() as working:
        working.start_soon(keep_working, queue, shouting)
        await queue.submit(job("done"), deadline=EVER)
        working.cancel_scope.cancel()
    await put(connection, job("waits"))

    await purge(connection, Namespace("acme\x1fanna"))

    assert await messages_in(connection, "jobs") == 0
    assert await messages_in(connection, "answers") == 0


async def test_a_poisonous_job_becomes_a_dead_letter_that_can_be_tried_again(
    connection: Connection,
) -> None:
    queue = NatsQueue(connection, QUICK)
    async with anyio.create_task_group() as working:
        working.start_soon(keep_working, queue, failing)
        with pytest.raises(JobFailed, match=r"LookupError: no such thing.*dead-letters"):
            await queue.submit(job("poison", payload=b"sip"), deadline=EVER)
        working.cancel_scope.cancel()
    [letter] = await dead_letters(connection)

    again, answer = await replay(connection, letter.number), b""
    async with anyio.create_task_group() as working:
        working.start_soon(keep_working, queue, shouting)
        answer = await queue.submit(job("poison", payload=b"sip"), deadline=EVER)
        working.cancel_scope.cancel()

    assert (letter.job, letter.tries) == (job("poison", payload=b"sip"), 2)
    assert (letter.failure.kind, letter.failure.message) == ("LookupError", "no such thing")
    assert again == letter.job
    assert answer == b"SIP"
    assert await dead_letters(connection) == []


async def test_a_result_that_is_too_large_says_so(connection: Connection) -> None:
    queue = NatsQueue(connection, QUICK)

    async def verbose(asked: Job, send: Send) -> bytes:
        send(bytes(2_000_000))
        return bytes(2_000_000)

    async with anyio.create_task_group() as working:
        working.start_soon(keep_working, queue, verbose)
        with pytest.raises(JobFailed, match="max_payload"):
            await queue.submit(job("large"), deadline=EVER)
        working.cancel_scope.cancel()


async def test_a_job_no_worker_survives_becomes_a_dead_letter(connection: Connection) -> None:
    queue, ran, failed = NatsQueue(connection, QUICK), 0, list[JobFailed]()

    async def fatal(asked: Job, send: Send) -> bytes:
        nonlocal ran
        ran += 1
        leave.cancel()
        await anyio.sleep_forever()
        raise AssertionError("unreachable")

    async with anyio.create_task_group() as asking:
        asking.start_soon(_ask_in_vain, queue, failed)
        while not failed:
            with anyio.CancelScope() as leave:
                async with anyio.create_task_group() as working:
                    working.start_soon(keep_working, queue, fatal)
                    while not failed:
                        await messages_in(connection, "dead")
                    working.cancel_scope.cancel()

    [letter] = await dead_letters(connection)
    assert failed[0].kind == letter.failure.kind == "WorkerLost"
    assert ran == QUICK.tries * 2


async def _ask_in_vain(queue: NatsQueue, failed: list[JobFailed]) -> None:
    try:
        await queue.submit(job("fatal"), deadline=EVER)
    except JobFailed as error:
        failed.append(error)


async def test_a_dead_letter_can_be_shown_and_dropped(connection: Connection) -> None:
    queue = NatsQueue(connection, QUICK)
    async with anyio.create_task_group() as working:
        working.start_soon(keep_working, queue, failing, 2)
        for name in ("one", "two"):
            with pytest.raises(JobFailed):
                await queue.submit(job(name), deadline=EVER)
        working.cancel_scope.cancel()

    one, two = await dead_letters(connection)
    shown = await dead_letter(connection, two.number)
    await drop(connection, one.number)

    assert shown == two
    assert await dead_letters(connection, limit=1) == [two]
    with pytest.raises(ValueError, match="no dead letter 1"):
        await drop(connection, one.number)
    with pytest.raises(ValueError, match="limit must be at least 1"):
        await dead_letters(connection, limit=0)


WORKER = """
import sys, anyio
from assay.runtime.nats.queue import NatsQueue
from assay.runtime.nats.streams import DEFAULT_LIMITS, Limits, open_nats

async def hang(job, send):
    send(b"begun")
    await anyio.sleep_forever()

async def main():
    async with open_nats(sys.argv[1]) as connection:
        await NatsQueue(connection, Limits(silence=0.6)).work(["turn"], hang)

anyio.run(main)
"""


async def test_the_job_of_a_killed_worker_is_done_by_another(
    connection: Connection, nats_url: str
) -> None:
    queue, begun, tries, answers = NatsQueue(connection, QUICK), anyio.Event(), [0], list[bytes]()

    async def ask() -> None:
        asked = job("kept", payload=b"done")
        answers.append(await queue.submit(asked, deadline=EVER, sink=note))

    def note(piece: Piece) -> None:
        tries.append(piece.attempt)
        begun.set()

    async with anyio.create_task_group() as working:
        async with (
            await anyio.open_process([sys.executable, "-c", WORKER, nats_url]) as process,
            anyio.create_task_group() as asking,
        ):
            asking.start_soon(ask)
            await begun.wait()
            process.kill()
            working.start_soon(keep_working, queue, shouting)
        working.cancel_scope.cancel()

    assert answers == [b"DONE"]
    assert tries == [0, 1]


async def test_a_server_killed_in_the_middle_loses_no_job_and_doubles_none_in_effect(
    own_server: NatsServer,
) -> None:
    effects, answers, some = dict[str, bytes](), Counter[str](), anyio.Event()

    async def handler(asked: Job, send: Send) -> bytes:
        await anyio.sleep(0.01)
        effects.setdefault(asked.id, asked.payload)
        return asked.payload

    async def ask(queue: NatsQueue, name: str) -> None:
        got = await queue.submit(job(name, payload=name.encode()), deadline=EVER)
        answers[got.decode()] += 1
        if len(answers) in (8, 24):
            some.set()

    async with (
        open_nats(own_server.url) as here,
        open_nats(own_server.url) as there,
        anyio.create_task_group() as working,
    ):
        limits = Limits(silence=2.0, tries=20)
        working.start_soon(keep_working, NatsQueue(there, limits), handler, 2)
        async with anyio.create_task_group() as asking:
            for number in range(40):
                asking.start_soon(ask, NatsQueue(here, limits), f"j{number}")
            for _ in range(2):
                await some.wait()
                some = anyio.Event()
                await anyio.to_thread.run_sync(_restart, own_server)
        with anyio.fail_after(10):
            while await messages_in(here, "jobs"):  # those answered whose end was not heard
                await anyio.lowlevel.checkpoint()
        working.cancel_scope.cancel()

    assert answers == Counter({f"j{number}": 1 for number in range(40)})
    assert effects == {f"j{number}": f"j{number}".encode() for number in range(40)}


async def test_a_job_a_server_lost_with_all_it_had_is_submitted_again(
    own_server: NatsServer,
) -> None:
    answers = list[bytes]()

    async def ask(queue: NatsQueue) -> None:
        answers.append(await queue.submit(job("again"), deadline=EVER))

    async with (
        open_nats(own_server.url) as here,
        open_nats(own_server.url) as there,
        anyio.create_task_group() as working,
    ):
        async with anyio.create_task_group() as asking:
            asking.start_soon(ask, NatsQueue(here))
            while not await messages_in(here, "jobs"):
                await anyio.lowlevel.checkpoint()
            own_server.lose_all()
            await anyio.to_thread.run_sync(own_server.start)
            working.start_soon(keep_working, NatsQueue(there), shouting)
        working.cancel_scope.cancel()

    assert answers == [b"X"]


def _restart(server: NatsServer) -> None:
    server.kill()
    server.start()
