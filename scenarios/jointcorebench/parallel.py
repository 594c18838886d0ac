"""The same function over many items on several cores, in order, with progress."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from assay.scenarios.workers import worker_pool

Item = TypeVar("Item")
Result = TypeVar("Result")

CHUNK = 64
"""Items a process takes at a time."""


def in_processes(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    processes: int,
    advance: Callable[[int], None],
) -> list[Result]:
    """Results in the order of the items; with one process nothing is started.

    Args:
        function: A top-level function or a partial of one, so that it can be sent to a process.
        items: What to apply it to.
        processes: How many processes, at least 1.
        advance: Told how many more items are done.

    Raises:
        ValueError: If there are fewer than 1 processes.
    """
    if processes < 1:
        raise ValueError(f"processes must be at least 1, got {processes}")
    chunks = [items[start : start + CHUNK] for start in range(0, len(items), CHUNK)]
    work = partial(_over, function)
    results: list[Result] = []
    if processes == 1 or len(chunks) == 1:
        for chunk in chunks:
            results += work(chunk)
            advance(len(chunk))
        return results
    with worker_pool(processes) as pool:
        for chunk, done in zip(chunks, pool.map(work, chunks), strict=True):
            results += done
            advance(len(chunk))
    return results


def _over(function: Callable[[Item], Result], chunk: Sequence[Item]) -> list[Result]:
    return [function(item) for item in chunk]
