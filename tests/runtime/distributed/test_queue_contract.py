"""What every queue of jobs promises."""

from collections.abc import AsyncGenerator, Callable

import anyio
import pytest

from assay.errors import BusError, JobFailed, LeaseLost
from assay.runtime.distributed.local_queue import LocalQueue
from assay.runtime.jobs import Job, JobHandler, JobKind, JobQueue, NotForThisWorker, Piece
from assay.runtime.nats.queue import NatsQueue
from assay.runtime.nats.streams import Limits, open_nats
from assay.stores.records import Namespace

EVER = 30.0


@pytest.fixture(params=["memory", "nats"])
async def queue(request: pytest.FixtureRequest) -> AsyncGenerator[JobQueue]:
    if request.param == "memory":
        yield LocalQueue()
        return
    async with open_nats(request.getfixturevalue("nats_url")) as connection:
        yield NatsQueue(connection, limits=Limits(pause=0.02))


def job(name: str, *, tenant: str = "acme", kind: JobKind = "turn") -> Job:
    return Job(
        id=name, kind=kind, tenant=tenant, namespace=Namespace(f"{tenant}/u"), payload=name.encode()
    )


async def work(
    queue: JobQueue,
    handler: JobHandler,
    kind: JobKind = "turn",
    stopping: anyio.Event | None = None,
) -> None:
    await queue.work([kind], handler, stopping=stopping)


async def ask(queue: JobQueue, job: Job, answers: list[bytes] | None = None) -> None:
    answer = await queue.submit(job, deadline=EVER)
    if answers is not None:
        answers.append(answer)


async def shouting(job: Job, send: Callable[[bytes], None]) -> bytes:
    return job.payload.upper()


async def test_a_job_is_answered_by_whoever_works(queue: JobQueue) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(work, queue, shouting)

        assert await queue.submit(job("hello"), deadline=EVER) == b"HELLO"

        group.cancel_scope.cancel()


async def test_pieces_come_before_the_answer_in_order(queue: JobQueue) -> None:
    pieces: list[Piece] = []

    async def talking(job: Job, send: Callable[[bytes], None]) -> bytes:
        send(b"one")
        send(b"two")
        return b"done"

    async with anyio.create_task_group() as group:
        group.start_soon(work, queue, talking)
        await queue.submit(job("talk"), deadline=EVER, sink=pieces.append)
        group.cancel_scope.cancel()

    assert pieces == [Piece(1, b"one"), Piece(1, b"two")]


async def test_a_job_that_failed_once_is_tried_again(queue: JobQueue) -> None:
    tries: list[str] = []

    async def failing_once(job: Job, send: Callable[[bytes], None]) -> bytes:
        tries.append(job.id)
        if len(tries) == 1:
            raise RuntimeError("once")
        return b"done"

    async with anyio.create_task_group() as group:
        group.start_soon(work, queue, failing_once)

        assert await queue.submit(job("flaky"), deadline=EVER) == b"done"

        group.cancel_scope.cancel()
    assert tries == ["flaky", "flaky"]


async def test_a_job_is_not_given_up_as_soon_while_a_server_is_away(queue: JobQueue) -> None:
    tries: list[str] = []

    async def in_an_outage(job: Job, send: Callable[[bytes], None]) -> bytes:
        tries.append(job.id)
        if len(tries) <= 6:
            raise LeaseLost("the session changed hands")
        return b"done"

    async with anyio.create_task_group() as group:
        group.start_soon(work, queue, in_an_outage)

        assert await queue.submit(job("patient"), deadline=EVER) == b"done"

        group.cancel_scope.cancel()


async def test_a_job_a_worker_is_not_for_is_left_to_another_and_was_not_tried(
    queue: JobQueue,
) -> None:
    refusals, refused_often, pieces = list[str](), anyio.Event(), list[Piece]()

    async def refusing(job: Job, send: Callable[[bytes], None]) -> bytes:
        refusals.append(job.id)
        if len(refusals) == 2:
            refused_often.set()
        raise NotForThisWorker("another model")

    async def talking(job: Job, send: Callable[[bytes], None]) -> bytes:
        send(b"mine")
        return b"done"

    async def submit() -> None:
        assert await queue.submit(job("one"), deadline=EVER, sink=pieces.append) == b"done"

    async with anyio.create_task_group() as group:
        group.start_soon(work, queue, refusing)
        async with anyio.create_task_group() as asking:
            asking.start_soon(submit)
            await refused_often.wait()
            group.start_soon(work, queue, talking)
        group.cancel_scope.cancel()

    assert pieces == [Piece(1, b"mine")]


async def test_a_job_that_always_fails_says_why(queue: JobQueue) -> None:
    async def failing(job: Job, send: Callable[[bytes], None]) -> bytes:
        raise RuntimeError("always")

    async with anyio.create_task_group() as group:
        group.start_soon(work, queue, failing)
        with pytest.raises(JobFailed, match="RuntimeError: always") as caught:
            await queue.submit(job("poison"), deadline=EVER)

        assert caught.value.kind == "RuntimeError"

        group.cancel_scope.cancel()


async def test_a_job_nobody_does_is_given_up_in_time(queue: JobQueue) -> None:
    with pytest.raises(BusError, match="within"):
        await queue.submit(job("lonely"), deadline=0.05)


async def test_a_worker_takes_only_the_kinds_it_can_do(queue: JobQueue) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(work, queue, shouting, "evaluation")
        with pytest.raises(BusError):
            await queue.submit(job("a turn"), deadline=0.05)

        assert await queue.submit(job("asked", kind="evaluation"), deadline=EVER) == b"ASKED"

        group.cancel_scope.cancel()


async def test_whoever_gives_up_cancels_the_handler(queue: JobQueue) -> None:
    begun, ended = anyio.Event(), anyio.Event()

    async def endless(job: Job, send: Callable[[bytes], None]) -> bytes:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError("unreachable")

    async with anyio.create_task_group() as working:
        working.start_soon(work, queue, endless)
        async with anyio.create_task_group() as asking:
            asking.start_soon(ask, queue, job("dropped"))
            await begun.wait()
            asking.cancel_scope.cancel()
        with anyio.fail_after(5):
            await ended.wait()
        working.cancel_scope.cancel()


async def test_a_worker_that_stops_at_once_hands_its_job_back(queue: JobQueue) -> None:
    begun = anyio.Event()

    async def endless(job: Job, send: Callable[[bytes], None]) -> bytes:
        begun.set()
        await anyio.sleep_forever()
        raise AssertionError("unreachable")

    answers: list[bytes] = []

    async with anyio.create_task_group() as group:
        group.start_soon(ask, queue, job("kept"), answers)
        async with anyio.create_task_group() as first:
            first.start_soon(work, queue, endless)
            await begun.wait()
            first.cancel_scope.cancel()
        async with anyio.create_task_group() as second:
            second.start_soon(work, queue, shouting)
            with anyio.fail_after(10):
                while not answers:
                    await anyio.wait_all_tasks_blocked()
            second.cancel_scope.cancel()

    assert answers == [b"KEPT"]


async def test_a_worker_told_to_stop_ends_what_it_has_begun(queue: JobQueue) -> None:
    begun, may_end, stopping = anyio.Event(), anyio.Event(), anyio.Event()

    async def slow(job: Job, send: Callable[[bytes], None]) -> bytes:
        begun.set()
        await may_end.wait()
        return b"done"

    answers: list[bytes] = []

    async with anyio.create_task_group() as group:
        group.start_soon(ask, queue, job("last"), answers)
        group.start_soon(work, queue, slow, "turn", stopping)
        await begun.wait()
        stopping.set()
        may_end.set()

    assert answers == [b"done"]


async def test_a_tenant_with_many_jobs_delays_another_by_one_round(queue: JobQueue) -> None:
    order: list[str] = []

    async def noting(job: Job, send: Callable[[bytes], None]) -> bytes:
        order.append(job.tenant)
        return b""

    async with anyio.create_task_group() as group:
        async with anyio.create_task_group() as asking:
            for number in range(20):
                asking.start_soon(ask, queue, job(f"flood {number}"))
            await anyio.wait_all_tasks_blocked()
            asking.start_soon(ask, queue, job("single", tenant="other"))
            await anyio.wait_all_tasks_blocked()
            group.start_soon(work, queue, noting)
        group.cancel_scope.cancel()

    assert order.index("other") <= 2
    assert len(order) == 21
