"""The exact stage by whichever workers there are."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeAlias

import anyio.to_process
import msgspec

from assay.runtime.jobs import JobQueue
from assay.scenarios.handing_out import hand_out, part
from assay.scenarios.jointcorebench.conditions import Coordinates
from assay.scenarios.jointcorebench.exact import ExactReport, Measured, measure, summarize

CHUNK = 16
"""Conditions of one job."""

Conditions: TypeAlias = list[dict[str, Measured]]


class ConditionsJob(msgspec.Struct, frozen=True, kw_only=True, tag="jointcorebench"):
    """Some conditions.

    Attributes:
        base: Seed base.
        points: Which ones.
    """

    base: int
    points: list[Coordinates]


_encoder = msgspec.json.Encoder()
_conditions: "msgspec.json.Decoder[Conditions]" = msgspec.json.Decoder(Conditions)


async def exact_over(
    queue: JobQueue,
    points: Sequence[Coordinates],
    *,
    base: int,
    new_id: Callable[[], str],
    advance: Callable[[int], None] = lambda _: None,
) -> ExactReport:
    """As ``run_exact``, with the same result.

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
    chunks = [list(points[start : start + CHUNK]) for start in range(0, len(points), CHUNK)]
    rows: list[Conditions] = [[] for _ in chunks]

    async def take(number: int, result: bytes) -> None:
        rows[number] = _conditions.decode(result)
        advance(len(rows[number]))

    asked = [ConditionsJob(base=base, points=chunk) for chunk in chunks]
    jobs = [part(new_id(), "jointcorebench", _encoder.encode(one)) for one in asked]
    await hand_out(queue, jobs, take)
    return summarize(points, list(chain(*rows)), base=base)


async def done_here(asked: ConditionsJob) -> bytes:
    """The result of a job, computed in a process of its own: this one goes on with other jobs."""
    return await anyio.to_process.run_sync(_measured, asked, cancellable=True)


def _measured(asked: ConditionsJob) -> bytes:
    return _encoder.encode([measure(point, base=asked.base) for point in asked.points])
