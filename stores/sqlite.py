"""One SQLite file: a pool of readers, and one writer that commits many callers at once.

Blocking work runs in threads, one hop per transaction: a work function takes a connection and
does all its statements there. SQLite's errors become the store's errors here and nowhere else.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import anyio
import anyio.to_thread
import structlog
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from assay.errors import StoreClosed, StoreCorrupt, StoreError
from assay.stores.group_commit import Job, commit_group
from assay.stores.schema import BUSY_SECONDS, REMEDY, check_pages, migrate, prepare
from assay.stores.watermark import Watermark, acknowledged, check_acknowledged, commits

log = structlog.get_logger(__name__)

T = TypeVar("T")

_READERS = 4
_WAITING_JOBS = 1024
_MOST_IN_GROUP = 256


class Database:
    """An open bank file; an async context manager, closed for good when left.

    Several processes may have one file open. A write that returned is on disk (WAL with
    ``synchronous=FULL``); callers that write at the same time share one commit. A cancelled
    caller's work is done whole or not at all, never half.

    Args:
        path: The file; made if missing, in a folder that exists.
    """

    _send: MemoryObjectSendStream[Job]
    _receive: MemoryObjectReceiveStream[Job]
    _group: TaskGroup

    def __init__(self, path: Path) -> None:
        self.path = path
        self._idle: list[sqlite3.Connection] = []
        self._reading = anyio.CapacityLimiter(_READERS)
        self._writing = anyio.CapacityLimiter(1)
        self._closed = True  # no new work
        self._gone = False  # no connections

    async def __aenter__(self) -> Self:
        writer, mark = await anyio.to_thread.run_sync(self._open, limiter=self._writing)
        # Only now: a stream that is made and never closed is a leak.
        self._send, self._receive = anyio.create_memory_object_stream[Job](_WAITING_JOBS)
        self._group = await anyio.create_task_group().__aenter__()
        self._closed = False
        self._group.start_soon(self._write_groups, writer, mark)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed = True
        self._send.close()
        # The body's error is not the writer's: handed to the group it would come out wrapped.
        await self._group.__aexit__(None, None, None)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``work`` on one snapshot of the database, in a thread.

        Raises:
            StoreClosed: If the bank was closed.
            StoreCorrupt: If the file is damaged.
            StoreError: If it cannot be read for another reason.
        """
        self._check_open()
        return await anyio.to_thread.run_sync(self._read, work, limiter=self._reading)

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``work`` in a durable transaction shared with other callers of the same moment.

        Whatever ``work`` raises undoes its own statements only; it may be run twice, the first
        time undone. On cancellation before it began
        it does not run; afterwards it is committed whole, and the cancelled caller waits for that.

        Raises:
            StoreClosed: If the bank was closed.
            StoreCorrupt: If the file is damaged.
            StoreError: If it cannot be written (full disk, another process holds it too long).
        """
        self._check_open()
        results: list[T] = []
        job = Job(lambda connection: results.append(work(connection)))
        try:
            await self._queue(job)
            await job.done.wait()
        except anyio.ClosedResourceError as error:
            raise self._closed_error() from error
        except BaseException:
            # Whoever reads after a cancelled write must see what became of it.
            job.abandoned = not job.begun
            if job.begun:
                with anyio.CancelScope(shield=True):
                    await job.done.wait()
            raise
        if job.error is not None:
            raise _mapped(job.error, self.path) from job.error
        return results[-1]

    async def truncate_log(self) -> None:
        """Move the log into the file and empty it, so that nothing erased stays in it.

        While another process reads an old snapshot the log is left; the last one to close
        empties it.
        """
        self._check_open()
        await anyio.to_thread.run_sync(self._truncate_log, limiter=self._reading)

    async def meta(self, key: str) -> str | None:
        """A fact about the whole file; ``None`` if it was never set."""
        return await self.read(lambda connection: _meta(connection, key))

    async def set_meta_once(self, key: str, value: str) -> str:
        """Set a fact unless it is set already; gives the one that stands."""

        def work(connection: sqlite3.Connection) -> str:
            connection.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (key, value))
            return _meta(connection, key) or value

        return await self.write(work)

    # ---- in the event loop

    async def _queue(self, job: Job) -> None:
        try:
            self._send.send_nowait(job)  # does not yield, as send() always does
        except anyio.WouldBlock:
            await self._send.send(job)

    async def _write_groups(self, connection: sqlite3.Connection, mark: Watermark) -> None:
        # Shielded: what callers were told is queued is written even when the bank's owner is
        # cancelled. It ends when the stream is closed and empty.
        with anyio.CancelScope(shield=True):
            async for first in self._receive:
                jobs = [first, *self._waiting()]
                wanted = [job for job in jobs if not job.abandoned]
                for job in wanted:
                    job.begun = True
                await anyio.to_thread.run_sync(
                    commit_group, connection, mark, wanted, limiter=self._writing
                )
                for job in wanted:
                    job.done.set()
            self._receive.close()
            await self._close_connections(connection, mark)

    def _waiting(self) -> list[Job]:
        jobs: list[Job] = []
        with suppress(anyio.WouldBlock, anyio.EndOfStream):
            while len(jobs) < _MOST_IN_GROUP:
                jobs.append(self._receive.receive_nowait())
        return jobs

    async def _close_connections(self, writer: sqlite3.Connection, mark: Watermark) -> None:
        # Holding every reader's token: no thread is inside a connection any more.
        tokens = [object() for _ in range(_READERS)]
        for token in tokens:
            await self._reading.acquire_on_behalf_of(token)
        await anyio.to_thread.run_sync(self._close, writer, mark, limiter=self._writing)
        for token in tokens:
            self._reading.release_on_behalf_of(token)

    def _check_open(self) -> None:
        if self._closed:
            raise self._closed_error()

    def _closed_error(self) -> StoreClosed:
        return StoreClosed(f"the bank {self.path} is closed; open it again with open_bank")

    # ---- in a thread

    def _open(self) -> tuple[sqlite3.Connection, Watermark]:
        try:
            prepare(self.path)
            _examine(self.path)
            connection = _connect(self.path)
        except (sqlite3.Error, OSError, MemoryError) as error:
            raise _mapped(error, self.path) from error
        try:
            migrate(connection, self.path)
            return connection, _marked(connection, self.path)
        except (sqlite3.Error, OSError, MemoryError) as error:
            connection.close()
            raise _mapped(error, self.path) from error
        except BaseException:
            connection.close()
            raise

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._gone:
            raise self._closed_error()
        try:
            connection = self._reader()
            try:
                connection.execute("BEGIN")
                return work(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                self._idle.append(connection)
        except (sqlite3.Error, MemoryError) as error:
            raise _mapped(error, self.path) from error

    def _reader(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return _connect(self.path, reading=True)

    def _truncate_log(self) -> None:
        try:
            with closing(_connect(self.path)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except (sqlite3.Error, MemoryError) as error:
            raise _mapped(error, self.path) from error

    def _close(self, writer: sqlite3.Connection, mark: Watermark) -> None:
        for connection in (*self._idle, writer):
            connection.close()
        self._idle.clear()
        self._gone = True
        try:
            mark.close()
        except OSError as error:
            # What it notes is on disk in the bank; a mark that is behind only proves less.
            log.warning("mark.unsynced", reason=str(error))


def _meta(connection: sqlite3.Connection, key: str) -> str | None:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def _examine(path: Path) -> None:
    """Refuse a damaged bank before it is opened for writing.

    A connection that may write moves the log into the file when it closes and removes it; this one
    leaves a damaged log where it is, for ``assay bank salvage``.
    """
    noted = _noted(path)
    with closing(connect_read_only(path)) as connection:
        check_pages(connection, path)
        check_acknowledged(connection, path, noted)


def _noted(path: Path) -> int:
    try:
        return acknowledged(path)
    except StoreCorrupt as error:
        # The bank may be whole; its mark is written anew from what it holds.
        log.warning("mark.damaged", reason=str(error))
        return 0


def _marked(connection: sqlite3.Connection, path: Path) -> Watermark:
    mark = Watermark(path)
    try:
        mark.note(commits(connection))
    except BaseException:
        mark.close()
        raise
    return mark


def connect_read_only(path: Path, *, alone: bool = False) -> sqlite3.Connection:
    """A connection that cannot change the file or its log, not even by closing.

    Args:
        path: The file.
        alone: Nobody has it open and it has no log; no file is made beside it then.
    """
    uri = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if alone else ''}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)


def _connect(path: Path, *, reading: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA cache_size = -16384")
    connection.execute(f"PRAGMA query_only = {'ON' if reading else 'OFF'}")
    return connection


def _mapped(error: Exception, path: Path) -> Exception:
    """The store's error for one of SQLite or the operating system; any other one as it is."""
    if isinstance(error, OSError):
        return StoreError(f"the bank {path} cannot be used: {error.strerror or error}")
    if isinstance(error, MemoryError):
        return StoreError(f"the bank {path} cannot be used: not enough memory")
    if not isinstance(error, sqlite3.Error):
        return error
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return StoreCorrupt(f"the bank {path} is damaged: {error}; {REMEDY}")
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreError(
            f"the bank {path} is held by another process for more than {BUSY_SECONDS:g} s"
        )
    return StoreError(f"the bank {path} cannot be used: {error}")
