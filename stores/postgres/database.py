"""One database of a PostgreSQL server: a pool, transactions, and patience with a server that restarts.

PostgreSQL's errors become the store's errors here and nowhere else.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from types import TracebackType
from typing import Self, TypeVar

import anyio

from assay.errors import StoreClosed, StoreError
from assay.stores.postgres.connection import Connection, Pool, Row, connected, open_pool
from assay.stores.postgres.mapping import FOREIGN, LOST, is_passing, is_starting, mapped, shown
from assay.stores.postgres.schema import MIGRATIONS, Migration, prepare

T = TypeVar("T")

OLDEST_SERVER = 15
"""PostgreSQL's oldest version that is known to work."""

OLDEST_PGVECTOR = 0, 8
"""The first one whose approximate indexes go on past their first candidates."""

_PGVECTOR = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"

_log = logging.getLogger("assay.bank")

_CLOSE_SECONDS = 5.0
_UNDO_SECONDS = 5.0
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0


class Postgres:
    """An open database; an async context manager, closed for good when left.

    Any number of processes may have one database open. A write that returned is on the server's
    disk (``synchronous_commit``). While the server is away (restarted, failed over) work is begun
    again on another connection until ``patience`` has passed; what this does twice must be
    harmless, and everything a bank writes is.

    Args:
        url: ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE``.
        connections: Most connections at once; further callers wait.
        patience: Seconds from the first failure until the error is raised.
        migrations: The formats this program knows; another release knows more or fewer.
    """

    _pool: Pool

    def __init__(
        self,
        url: str,
        *,
        connections: int = 8,
        patience: float = 15.0,
        migrations: Sequence[Migration] = MIGRATIONS,
    ) -> None:
        self.url = url
        self.name = shown(url)
        self._most = connections
        self._patience = patience
        self._migrations = migrations
        self._closed = True
        self._is_away = False

    async def __aenter__(self) -> Self:
        self._pool = await open_pool(self.url, self._most)
        self._closed = False
        try:
            await self._persevere(self._prepare, is_starting)
        except BaseException:
            self._closed = True
            self._pool.terminate()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed = True
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            await self._pool.close()
        self._pool.terminate()

    async def read(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Run ``work`` on a connection; each of its statements sees what is committed by then.

        Raises:
            StoreClosed: If the bank was closed.
            StoreError: If the server cannot be used, or is away for longer than ``patience``.
        """
        return await self._persevere(work)

    async def snapshot(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Run ``work`` on one snapshot of the database; errors as for ``read``."""

        async def attempt(connection: Connection) -> T:
            async with in_transaction(connection, isolation="repeatable_read", readonly=True):
                return await work(connection)

        return await self._persevere(attempt)

    async def write(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Run ``work`` in a durable transaction, whole or not at all, even when cancelled.

        It may run more than once, each time but the last undone, or committed without the answer
        having arrived. Errors as for ``read``; whatever ``work`` raises undoes it.
        """

        async def attempt(connection: Connection) -> T:
            async with in_transaction(connection):
                return await work(connection)

        return await self._persevere(attempt)

    async def fetch(self, sql: str, *values: object) -> list[Row]:
        """The rows of one statement, which is a transaction of its own; errors as for ``read``."""
        return await self._persevere(lambda connection: connection.fetch(sql, *values))

    async def meta(self, key: str) -> str | None:
        """A fact about the whole bank; ``None`` if it was never set."""
        rows = await self.fetch("SELECT value FROM meta WHERE key = $1", key)
        return rows[0][0] if rows else None

    async def set_meta_once(self, key: str, value: str) -> str:
        """Set a fact unless it is set already; gives the one that stands."""
        await self.fetch("INSERT INTO meta VALUES ($1, $2) ON CONFLICT DO NOTHING", key, value)
        return await self.meta(key) or value

    @asynccontextmanager
    async def apart(self) -> AsyncGenerator[Connection]:
        """A connection outside of the pool, for what takes long or listens; errors are mapped."""
        with self._mapping():
            async with connected(self.url) as connection:
                yield connection

    async def _prepare(self, connection: Connection) -> None:
        await _refuse_old(connection, self.name)
        async with in_transaction(connection):
            migrated = await prepare(connection, self.name, self._migrations)
            await _refuse_old_vectors(connection, self.name)
        if migrated:
            # A connection learns of the type of vectors when it is made.
            await self._pool.expire_connections()

    async def _persevere(
        self,
        attempt: Callable[[Connection], Awaitable[T]],
        is_worth: Callable[[Exception], bool] = is_passing,
    ) -> T:
        since: float | None = None
        pause = _FIRST_PAUSE
        while True:
            if self._closed:
                raise StoreClosed(f"the bank {self.name} was closed")
            try:
                async with self._pool.acquire() as connection, _given_up_if_lost(connection):
                    done = await attempt(connection)
                    self._note_back()
                    return done
            except FOREIGN as error:
                self._note_away(error)
                since = anyio.current_time() if since is None else since
                is_over = anyio.current_time() - since > self._patience
                if is_over or not is_worth(error):
                    raise mapped(error, self.name) from error
            await anyio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _note_away(self, error: Exception) -> None:
        """One line in the log for each time the server goes; a lost connection may be one of many."""
        if isinstance(error, LOST) and not self._is_away:
            self._is_away = True
            _log.warning("assay: the bank %s is lost; it is tried until it is back", self.name)

    def _note_back(self) -> None:
        if self._is_away:
            self._is_away = False
            _log.warning("assay: the bank %s is back", self.name)

    @contextmanager
    def _mapping(self) -> Generator[None]:
        try:
            yield
        except FOREIGN as error:
            raise mapped(error, self.name) from error


@asynccontextmanager
async def in_transaction(
    connection: Connection, *, isolation: str | None = None, readonly: bool = False
) -> AsyncGenerator[None]:
    """A transaction for the block: committed at its end, undone by any exception or cancellation."""
    transaction = connection.transaction(isolation=isolation, readonly=readonly)
    # Not cut short: nobody would know whether it began.
    with anyio.CancelScope(shield=True):
        await transaction.start()
    try:
        yield
        # Whoever reads after a cancelled write must see what became of it.
        with anyio.CancelScope(shield=True):
            await transaction.commit()
    except BaseException:
        with anyio.move_on_after(_UNDO_SECONDS, shield=True), suppress(*FOREIGN):
            await transaction.rollback()
        raise


@asynccontextmanager
async def _given_up_if_lost(connection: Connection) -> AsyncGenerator[None]:
    """Lets nobody else have a connection that the server has left, whatever the driver thinks of it."""
    try:
        yield
    except LOST:
        with suppress(*FOREIGN):  # it may be gone already
            connection.terminate()
        raise


async def _refuse_old(connection: Connection, name: str) -> None:
    version = await connection.fetchval("SHOW server_version_num")
    if int(version) // 10_000 < OLDEST_SERVER:
        raise StoreError(
            f"the bank {name} is on PostgreSQL {int(version) // 10_000}, "
            f"{OLDEST_SERVER} or later is needed; upgrade the server"
        )


async def _refuse_old_vectors(connection: Connection, name: str) -> None:
    version: str = await connection.fetchval(_PGVECTOR) or "0.0"  # somebody dropped it
    if tuple(map(int, version.split(".")[:2])) < OLDEST_PGVECTOR:
        raise StoreError(
            f"the bank {name} has pgvector {version}, {'.'.join(map(str, OLDEST_PGVECTOR))} or "
            "later is needed; install it and run `ALTER EXTENSION vector UPDATE`"
        )
