"""The same function over many items on several cores: results as they come, memory bounded."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import TypeVar

from assay.errors import ScenarioError
from assay.scenarios.workers import worker_pool

Item = TypeVar("Item")
Result = TypeVar("Result")


def as_they_come(
    function: Callable[[Item], Result], items: Sequence[Item], *, processes: int
) -> Iterator[Result]:
    """Results in the order in which they are done; with one process nothing is started.

    When the caller stops in between, by an interrupt too, the processes are ended at once.

    Args:
        function: A top-level function.
        items: What to apply it to; at most two per process are under way.
        processes: How many processes, at least 1.

    Raises:
        ScenarioError: If a process was ended from outside.
        ValueError: If there are fewer than 1 processes.
    """
    if processes < 1:
        raise ValueError(f"processes must be at least 1, got {processes}")
    if processes == 1 or len(items) < 2:  # noqa: PLR2004  # one item needs no second process
        yield from map(function, items)
        return
    try:
        with worker_pool(processes) as pool:
            yield from _streamed(pool, function, items, 2 * processes)
    except BrokenProcessPool as error:
        raise ScenarioError(
            "a worker process was ended from outside, perhaps for want of memory; the same command "
            "goes on, with fewer --workers if memory is short"
        ) from error


def _streamed(
    pool: ProcessPoolExecutor, function: Callable[[Item], Result], items: Sequence[Item], most: int
) -> Iterator[Result]:
    coming = iter(items)
    waiting: set[Future[Result]] = {pool.submit(function, item) for item in islice(coming, most)}
    while waiting:
        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        waiting |= {pool.submit(function, item) for item in islice(coming, len(done))}
        for future in done:
            yield future.result()
