"""The same function over many items on several cores, in order, with progress."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import TypeVar

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
    # A fork would copy the threads of a progress bar half alive; a spawned process starts clean.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, initializer=end_with_parent) as pool:
        for chunk, done in zip(chunks, pool.map(work, chunks), strict=True):
            results += done
            advance(len(chunk))
    return results


def _over(function: Callable[[Item], Result], chunk: Sequence[Item]) -> list[Result]:
    return [function(item) for item in chunk]


def end_with_parent() -> None:
    """Have this process end when its parent does: a killed parent leaves its pool waiting."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        Thread(target=_wait_and_exit, args=(parent,), daemon=True).start()


def _wait_and_exit(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
