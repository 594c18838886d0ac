"""Many callers' work in one durable transaction; runs in the writer's thread."""

import sqlite3
from collections.abc import Callable, Sequence

import anyio

Work = Callable[[sqlite3.Connection], None]


class Job:
    """One caller's work, and what became of it.

    Attributes:
        work: Its statements.
        done: Set once it is committed or has failed.
        error: Why it failed; nothing of it was written then.
        abandoned: The caller left before it began; it is not to run.
    """

    __slots__ = ("abandoned", "done", "error", "work")

    def __init__(self, work: Work) -> None:
        self.work = work
        self.done = anyio.Event()
        self.error: Exception | None = None
        self.abandoned = False


def commit_group(connection: sqlite3.Connection, jobs: Sequence[Job]) -> None:
    """Run the jobs in one transaction; each ends committed, or failed without a trace.

    A job that raises is undone alone. If the commit itself fails, all of them have failed.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        for job in jobs:
            _run(connection, job)
        connection.execute("COMMIT")
    except (sqlite3.Error, MemoryError) as error:
        for job in jobs:
            job.error = job.error or error
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _run(connection: sqlite3.Connection, job: Job) -> None:
    connection.execute("SAVEPOINT job")
    try:
        job.work(connection)
    except Exception as error:
        # A full disk may have ended the whole transaction; then the group has failed.
        if not connection.in_transaction:
            raise
        connection.execute("ROLLBACK TO job")
        job.error = error
    connection.execute("RELEASE job")
