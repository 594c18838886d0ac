"""Benchmark suites in parts that any worker does: what a part says, and what comes back."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeAlias

import anyio
import anyio.to_process
import msgspec

from assay.errors import BusError
from assay.runtime.jobs import Job, JobHandler, JobQueue
from assay.scenarios.jointcorebench.conditions import Coordinates
from assay.scenarios.jointcorebench.exact import ExactReport, Measured, measure, summarize
from assay.stores.records import Namespace

CHUNK = 16
"""Conditions of one job."""

AT_ONCE = 64
"""Jobs of one replay that wait or are under way."""

_DAY = 24 * 3600.0

Conditions: TypeAlias = list[dict[str, Measured]]


class ConditionsJob(msgspec.Struct, frozen=True, kw_only=True, tag="jointcorebench"):
    """Conditions of the exact stage of JointCoreBench.

    Attributes:
        base: Seed base.
        points: Which conditions.
    """

    base: int
    points: list[Coordinates]


_encoder = msgspec.json.Encoder()
_jobs = msgspec.json.Decoder(ConditionsJob)
_conditions: "msgspec.json.Decoder[Conditions]" = msgspec.json.Decoder(Conditions)


def replay_handler() -> JobHandler:
    """Does the replay jobs of a worker, beside its loop: they are all computation."""

    async def do(job: Job, _: Callable[[bytes], None]) -> bytes:
        rows = await anyio.to_process.run_sync(_measured, job.payload, cancellable=True)
        return _encoder.encode(rows)

    return do


async def exact_over(
    queue: JobQueue,
    points: Sequence[Coordinates],
    *,
    base: int,
    new_id: Callable[[], str],
    advance: Callable[[int], None] = lambda _: None,
) -> ExactReport:
    """As ``run_exact``, by whichever workers there are; the result is the same.

    Args:
        queue: Where the parts wait.
        points: The conditions.
        base: Seed base.
        new_id: Names jobs.
        advance: Told how many more conditions are done.

    Raises:
        JobFailed: If a part failed at every try.
        BusError: If the bus cannot be used.
    """
    chunks = [points[start : start + CHUNK] for start in range(0, len(points), CHUNK)]
    jobs = [
        Job(
            id=new_id(),
            kind="replay",
            tenant="",
            namespace=Namespace("jointcorebench"),
            payload=_encoder.encode(ConditionsJob(base=base, points=list(chunk))),
        )
        for chunk in chunks
    ]
    rows: list[Conditions] = [[] for _ in chunks]

    def take(number: int, result: bytes) -> None:
        rows[number] = _conditions.decode(result)
        advance(len(rows[number]))

    await hand_out(queue, jobs, take)
    return summarize(points, list(chain(*rows)), base=base)


async def hand_out(
    queue: JobQueue, jobs: Sequence[Job], take: Callable[[int, bytes], None]
) -> None:
    """Have jobs done, many at once.

    Args:
        queue: Where they wait.
        jobs: In any order.
        take: Takes the result of each as it comes, by the job's place.

    Raises:
        JobFailed: If one failed at every try; the others are withdrawn.
        BusError: If the bus cannot be used.
    """
    places = anyio.CapacityLimiter(AT_ONCE)
    failure: BusError | None = None

    async def submit(number: int) -> None:
        nonlocal failure
        try:
            async with places:
                take(number, await queue.submit(jobs[number], deadline=_DAY))
        except BusError as error:
            failure = failure or error
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for number in range(len(jobs)):
            group.start_soon(submit, number)
    if failure is not None:
        raise failure


def _measured(payload: bytes) -> Conditions:
    asked = _jobs.decode(payload)
    return [measure(point, base=asked.base) for point in asked.points]
