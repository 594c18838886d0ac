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
    with ProcessPoolExecutor(processes, context, initializer=_begin) as pool:
        try:
            yield pool
        except BaseException:
            # A pool waits for what runs, however long that takes.
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - before:
                process.kill()
            raise


def _begin() -> None:
    # A terminal sends Ctrl-C to every process; only the parent has something to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def end_with_parent() -> None:
    """Have this process end when its parent does: a killed parent leaves its pool waiting."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        Thread(target=_wait_and_exit, args=(parent,), daemon=True).start()


def _wait_and_exit(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
