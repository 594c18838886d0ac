"""Parts of a replay as jobs, many under way at once."""

from collections.abc import Awaitable, Callable, Sequence

import anyio

from assay.errors import BusError
from assay.runtime.jobs import Job, JobQueue
from assay.stores.records import Namespace

AT_ONCE = 64
"""Jobs of one replay that wait or are under way."""

_DAY = 24 * 3600.0


def part(name: str, suite: str, payload: bytes) -> Job:
    """A part of a suite as a job of this name."""
    return Job(id=name, kind="replay", tenant="", namespace=Namespace(suite), payload=payload)


async def hand_out(
    queue: JobQueue, jobs: Sequence[Job], take: Callable[[int, bytes], Awaitable[None]]
) -> None:
    """Have jobs done.

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
                result = await queue.submit(jobs[number], deadline=_DAY)
        except BusError as error:
            failure = failure or error
            group.cancel_scope.cancel()
        else:
            await take(number, result)

    async with anyio.create_task_group() as group:
        for number in range(len(jobs)):
            group.start_soon(submit, number)
    if failure is not None:
        raise failure
