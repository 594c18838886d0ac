"""Many callers' work in one durable transaction; runs in the writer's thread."""

import sqlite3
from collections.abc import Callable, Sequence

import anyio

from assay.stores.watermark import Watermark, count_commit

Work = Callable[[sqlite3.Connection], None]


class Job:
    """One caller's work, and what became of it.

    Attributes:
        work: Its statements; run again from the start if another job of its group fails.
        done: Set once it is committed or has failed.
        error: Why it failed; nothing of it was written then.
        begun: Its group has been taken up; it ends by itself.
        abandoned: The caller left before it began; it is not to run.
    """

    __slots__ = ("abandoned", "begun", "done", "error", "work")

    def __init__(self, work: Work) -> None:
        self.work = work
        self.done = anyio.Event()
        self.error: Exception | None = None
        self.begun = False
        self.abandoned = False


def commit_group(connection: sqlite3.Connection, mark: Watermark, jobs: Sequence[Job]) -> None:
    """Run the jobs in one transaction; each ends committed, or failed without a trace.

    A job that raises is undone alone. If the commit itself fails, all of them have failed. If only
    the mark could not be written they have failed too, although their rows may be there: what is
    written again is found to be the same.
    """
    try:
        count = _commit(connection, jobs, _run)
    except Exception:  # noqa: BLE001 - the second run finds whose error it was
        # Savepoints are the exception, not the rule: each makes the full-text index write out
        # what it has gathered, at several times the cost of the rows.
        count = _commit_apart(connection, jobs)
    if count:
        _note(mark, count, jobs)


def _note(mark: Watermark, count: int, jobs: Sequence[Job]) -> None:
    try:
        mark.note(count)
    except (OSError, MemoryError) as error:
        _fail(jobs, error)


def _fail(jobs: Sequence[Job], error: Exception) -> None:
    for job in jobs:
        job.error = job.error or error


def _commit_apart(connection: sqlite3.Connection, jobs: Sequence[Job]) -> int:
    try:
        return _commit(connection, jobs, _run_apart)
    except (sqlite3.Error, MemoryError) as error:
        _fail(jobs, error)
        return 0


def _commit(
    connection: sqlite3.Connection,
    jobs: Sequence[Job],
    run: Callable[[sqlite3.Connection, Job], None],
) -> int:
    """Gives the count of commits this one brings the bank to; 0 if it changed nothing."""
    before = connection.total_changes
    try:
        connection.execute("BEGIN IMMEDIATE")
        for job in jobs:
            run(connection, job)
        count = count_commit(connection) if connection.total_changes > before else 0
        connection.execute("COMMIT")
        return count
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _run(connection: sqlite3.Connection, job: Job) -> None:
    job.work(connection)


def _run_apart(connection: sqlite3.Connection, job: Job) -> None:
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
