"""Approximate indexes for namespaces too large to be searched exactly, built while others go on.

Each large namespace has a partial index of its own, so a search of it passes over nobody else's
vectors: an index over all, filtered afterwards, finds too few. pgvector's iterative scan goes on
past the first candidates until the limit is reached.
"""

from contextlib import suppress
from types import TracebackType
from typing import NamedTuple, Self

import anyio
import structlog
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from assay.errors import StoreError
from assay.stores.postgres.connection import Connection
from assay.stores.postgres.database import Postgres
from assay.stores.records import Namespace

log = structlog.get_logger(__name__)

MOST_DIMENSIONS = 2000
"""pgvector's limit of an HNSW index; longer vectors are searched exactly in any number."""

_LOCK = 0x41535341
_RETRY_SECONDS = 2.0
_BUILD_SECONDS = 24 * 3600.0
_MOST_WAITING = 1000

_TRY = "SELECT pg_try_advisory_lock($1, $2)"
_IS_VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)"


class _Wanted(NamedTuple):
    namespace: Namespace
    number: int


class HnswIndexes:
    """Which namespaces have an index, and one task that builds those that are wanted.

    An async context manager; outside of it nothing is built. Of several processes one builds an index and the others wait for it;
    until then they search exactly.
    """

    _group: TaskGroup

    def __init__(self, database: Postgres, dimension: int) -> None:
        self._database = database
        self._dimension = dimension
        self._ready: dict[Namespace, int] = {}
        self._settled: set[Namespace] = set()
        self._send: MemoryObjectSendStream[_Wanted] | None = None

    async def __aenter__(self) -> Self:
        self._send, receive = anyio.create_memory_object_stream[_Wanted](_MOST_WAITING)
        self._group = await anyio.create_task_group().__aenter__()
        self._group.start_soon(self._build_wanted, receive)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._group.cancel_scope.cancel()
        if self._send is not None:
            self._send.close()
        # The body's error is not the builder's: handed to the group it would come out wrapped.
        await self._group.__aexit__(None, None, None)

    def number(self, namespace: Namespace) -> int | None:
        """The number of a namespace whose index is ready; ``None`` for one to search exactly."""
        return self._ready.get(namespace)

    def is_settled(self, namespace: Namespace) -> bool:
        """Whether ``want`` has been asked for it."""
        return namespace in self._settled

    async def want(self, namespace: Namespace, number: int) -> None:
        """Use the index of a namespace from now on if it is there; otherwise have it built."""
        self._settled.add(namespace)
        if self._dimension > MOST_DIMENSIONS:
            return
        rows = await self._database.fetch(_IS_VALID, _name(number))
        if rows and rows[0][0]:
            self._ready[namespace] = number
            return
        if self._send is not None:
            with suppress(anyio.WouldBlock):  # so many are waiting: the next process will ask again
                self._send.send_nowait(_Wanted(namespace, number))

    async def _build_wanted(self, receive: MemoryObjectReceiveStream[_Wanted]) -> None:
        async with receive:
            async for namespace, number in receive:
                try:
                    async with self._database.apart() as connection:
                        await build(connection, number, self._dimension)
                    self._ready[namespace] = number
                except StoreError as error:
                    # Searches stay exact; the next process to open the bank tries again.
                    log.warning("index.failed", number=number, reason=str(error))


async def build(connection: Connection, number: int, dimension: int) -> None:
    """Build the index of the namespace ``number`` unless it is there; blocks no writer.

    Args:
        connection: In no transaction.
        number: Of the namespace.
        dimension: Of its vectors.
    """
    # Not the lock that waits: a statement that waits holds a snapshot, which the build waits for.
    while not await connection.fetchval(_TRY, _LOCK, number):  # noqa: ASYNC110 - of another process
        await anyio.sleep(_RETRY_SECONDS)
    is_valid = await connection.fetchval(_IS_VALID, _name(number))
    if is_valid is False:  # cut short
        await connection.execute(f"DROP INDEX CONCURRENTLY {_name(number)}", timeout=_BUILD_SECONDS)
    if not is_valid:
        await connection.execute(
            f"CREATE INDEX CONCURRENTLY {_name(number)} ON vectors "
            f"USING hnsw ((embedding::vector({dimension})) vector_ip_ops) "
            f"WHERE namespace = {number}",
            timeout=_BUILD_SECONDS,
        )


def _name(number: int) -> str:
    return f"vectors_of_{number}"
