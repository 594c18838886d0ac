"""A pool of processes that ends when it is told to: by Ctrl-C, by an error, or with its parent."""

import multiprocessing
import os
import signal
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from threading import Thread


@contextmanager
def worker_pool(processes: int) -> Generator[ProcessPoolExecutor]:
    """A pool for the length of a block; left by an error, its work is dropped, not waited for.

    Args:
        processes: How many, at least 1.
    """
    before = set(multiprocessing.active_children())
    # A fork would copy the threads of a progress bar half alive; a spawned process starts clean.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, initializer=end_with_parent) as pool:
        try:
            _start_all(pool, processes)
            yield pool
        except BaseException:
            # A pool waits for what runs, however long that takes.
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - before:
                process.kill()
            raise


def _start_all(pool: ProcessPoolExecutor, processes: int) -> None:
    """Start every process deaf to Ctrl-C, which a terminal sends to all: the parent tells the user.

    A process inherits what its parent blocks, so it is deaf from its first instruction on.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        for _ in range(processes):
            pool.submit(_nothing)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _nothing() -> None:
    return


def end_with_parent() -> None:
    """Have this process end when its parent does: a killed parent leaves its pool waiting."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        Thread(target=_wait_and_exit, args=(parent,), daemon=True).start()


def _wait_and_exit(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
