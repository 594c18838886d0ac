"""The bus of a runtime over one connection to NATS."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from assay.runtime.distributed.hub import Hear
from assay.runtime.jobs import JobQueue
from assay.runtime.nats.connection import Connection
from assay.runtime.nats.news import hearing, relay
from assay.runtime.nats.queue import NatsQueue
from assay.runtime.nats.streams import Limits, purge, purge_subject, token
from assay.stores.protocols import Outbox
from assay.stores.records import Namespace


class NatsHub:
    """``Hub`` over a connection that is open for longer."""

    def __init__(self, connection: Connection, limits: Limits) -> None:
        self._connection = connection
        self._jobs = NatsQueue(connection, limits)

    @property
    def jobs(self) -> JobQueue:
        """The work of all processes of the installation."""
        return self._jobs

    async def drop(self, namespace: Namespace) -> None:
        await purge(self._connection, namespace)

    async def drop_dead_letters(self, namespace: Namespace) -> None:
        pattern = f"{self._connection.prefix}.dead.*.{token(namespace)}.>"
        await purge_subject(self._connection, "dead", pattern)

    async def relay(self, outbox: Outbox) -> None:
        await relay(outbox, self._connection)

    @asynccontextmanager
    async def hearing(self, hear: Hear) -> AsyncGenerator[None]:
        async with hearing(self._connection, hear):
            yield
