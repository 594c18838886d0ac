"""The one place that knows the driver: how connections are made, and what of them others see."""

import socket
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, TypeAlias, cast

import anyio
import asyncpg  # type: ignore[import-untyped]  # it carries annotations, but says so to no checker
import numpy as np
import numpy.typing as npt

FloatVector: TypeAlias = npt.NDArray[np.float32]
"""Shape ``(dimension,)``."""

_DRIVER: Any = asyncpg  # its annotations are partial: nothing of it is used but through protocols

STATEMENT_SECONDS = 30.0
"""How long one statement may take, waiting for other programs included."""

_CLOSE_SECONDS = 2.0

_NAMED = {"application_name": "assay"}

SETTINGS = {
    "default_transaction_isolation": "read committed",
    "jit": "off",
    # Past its first candidates an HNSW index goes on until the limit is reached.
    "hnsw.iterative_scan": "strict_order",
    "hnsw.ef_search": "100",
    # A host that is cut off holds its locks no longer than this.
    "idle_in_transaction_session_timeout": "10s",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
"""What every connection of a bank says at its beginning."""

_WATCHING = {
    "TCP_KEEPIDLE": 5,
    "TCP_KEEPINTVL": 2,
    "TCP_KEEPCNT": 3,
    # Milliseconds that something sent may stay without an answer; by default a quarter of an hour.
    "TCP_USER_TIMEOUT": 10_000,
}

# Set by a statement and not when connecting: a pooler between us and the server may refuse that.
_SET_UP = """
SELECT count(set_config(name, value, false)), (
  SELECT nspname FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace
  WHERE extname = 'vector'
) FROM (
  SELECT * FROM unnest($1::text[], $2::text[])
  UNION ALL SELECT 'synchronous_commit', 'on' WHERE current_setting('synchronous_commit') = 'off'
) settings (name, value)
"""


class Row(Protocol):
    """One row of a result: unpacked, or by the number or name of a column."""

    def __getitem__(self, column: int | str) -> Any: ...  # noqa: ANN401 - the statement decides

    def __iter__(self) -> Iterator[Any]: ...

    def __len__(self) -> int: ...


class Transaction(Protocol):
    """A transaction of one connection."""

    async def start(self) -> None: ...

    async def commit(self) -> None: ...

    async def rollback(self) -> None: ...


class Connection(Protocol):
    """What the stores use of a connection; errors are the driver's until ``Postgres`` maps them.

    ``timeout`` is seconds; ``None`` means ``STATEMENT_SECONDS``.
    """

    async def execute(self, sql: str, *values: object, timeout: float | None = None) -> str:  # noqa: ASYNC109 - the driver's
        """Run a statement, or a script if there are no values; gives the server's tag."""
        ...

    async def fetch(self, sql: str, *values: object, timeout: float | None = None) -> list[Row]:  # noqa: ASYNC109 - the driver's
        """Every row."""
        ...

    async def fetchrow(self, sql: str, *values: object) -> Any:  # noqa: ANN401 - the statement decides
        """The first row, or ``None``."""
        ...

    async def fetchval(self, sql: str, *values: object) -> Any:  # noqa: ANN401 - the statement decides
        """The first column of the first row, or ``None``."""
        ...

    def transaction(self, *, isolation: str | None = None, readonly: bool = False) -> Transaction:
        """A transaction, not yet begun."""
        ...

    async def copy_from_table(
        self,
        table: str,
        *,
        output: Callable[[bytes], Awaitable[None]],
        columns: Sequence[str],
        format: str,  # noqa: A002 - the driver's
        timeout: float,  # noqa: ASYNC109 - the driver's
    ) -> str:
        """Copy a table out, in pieces of any size."""
        ...

    async def copy_to_table(
        self,
        table: str,
        *,
        source: AsyncIterator[bytes],
        columns: Sequence[str],
        format: str,  # noqa: A002 - the driver's
        timeout: float,  # noqa: ASYNC109 - the driver's
    ) -> str:
        """Copy rows into a table, as ``copy_from_table`` gave them."""
        ...

    async def add_listener(self, channel: str, heard: Callable[..., None]) -> None:
        """Have ``heard`` called, with arguments of the driver's, at each notification."""
        ...

    def is_closed(self) -> bool:
        """Whether it is lost."""
        ...

    def terminate(self) -> None:
        """Give it up at once, without a word to the server."""
        ...


class Pool(Protocol):
    """Connections that are lent."""

    def acquire(self) -> AbstractAsyncContextManager[Connection]: ...

    async def expire_connections(self) -> None: ...

    async def close(self) -> None: ...

    def terminate(self) -> None: ...


async def open_pool(url: str, most: int) -> Pool:
    """A pool that connects when it is first used, with at most ``most`` connections."""
    pool = await _DRIVER.create_pool(
        url,
        min_size=0,
        max_size=most,
        timeout=10,
        command_timeout=STATEMENT_SECONDS,
        server_settings=_NAMED,
        init=_set_up,
        reset=_keep,
    )
    return cast("Pool", pool)  # the driver is untyped


@asynccontextmanager
async def connected(url: str) -> AsyncGenerator[Connection]:
    """One connection apart from the pool, for as long as the block."""
    connection = await _DRIVER.connect(
        url, timeout=10, command_timeout=STATEMENT_SECONDS, server_settings=_NAMED
    )
    try:
        await _set_up(connection)
        yield cast("Connection", connection)  # the driver is untyped
    finally:
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            await connection.close()
        connection.terminate()


async def _set_up(connection: Any) -> None:  # noqa: ANN401 - the driver is untyped
    _watch(connection._transport.get_extra_info("socket"))  # noqa: SLF001 - no public way
    _, schema = await connection.fetchrow(_SET_UP, list(SETTINGS), list(SETTINGS.values()))
    if schema is not None:
        await connection.set_type_codec(
            "vector", schema=schema, encoder=_as_it_is, decoder=_as_it_is, format="binary"
        )


def _watch(wire: socket.socket) -> None:
    """Notice a network that is cut, even while nothing is sent; the server does so by settings."""
    if wire.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _WATCHING.items():
        if hasattr(socket, name):  # all of them on Linux
            wire.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def _keep(connection: object) -> None:
    """Nothing of a session is ever changed, so nothing has to be reset between two uses."""


def packed(vector: FloatVector) -> bytes:
    """A vector as the server takes it: the values of ``vector`` and ``vector[]`` are given so."""
    return struct.pack(">HH", vector.shape[0], 0) + vector.astype(">f4").tobytes()


def _as_it_is(vector: bytes) -> bytes:
    return vector
