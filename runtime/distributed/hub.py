"""What a runtime has of the bus between processes."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from typing import Protocol, TypeAlias

import anyio.to_thread

from assay.errors import ConfigError
from assay.runtime.jobs import JobQueue
from assay.stores.protocols import Outbox
from assay.stores.records import Namespace, SessionId

Hear: TypeAlias = Callable[[SessionId], None]
"""Takes the name of a session whose journal went on; must not block."""


class Hub(Protocol):
    """The bus, as far as sessions, workers and services need it."""

    @property
    def jobs(self) -> JobQueue:
        """Where work waits."""
        ...

    async def drop(self, namespace: Namespace) -> None:
        """Drop all the bus keeps of a namespace.

        Raises:
            BusError: If something is left; drop it again then.
        """
        ...

    async def drop_dead_letters(self, namespace: Namespace) -> None:
        """Drop the jobs of a namespace that failed for good; raises as ``drop`` does."""
        ...

    async def relay(self, outbox: Outbox) -> None:
        """Tell all processes of what is in the outbox, until it is cancelled.

        Raises:
            StoreError: If the outbox cannot be read.
            BusError: If the bus is closed for good.
        """
        ...

    def hearing(self, hear: Hear) -> AbstractAsyncContextManager[None]:
        """Hear of every session that goes on in any process; some news may get lost."""
        ...


@asynccontextmanager
async def open_hub(url: str, *, silence: float = 10.0) -> AsyncGenerator[Hub]:
    """The bus at ``nats://...``.

    Args:
        url: Where.
        silence: Seconds without a sign of life after which a job is given to another worker.

    Raises:
        ConfigError: If it is no such URL, or the client is not installed.
        BusError: If the server cannot be reached or used.
    """
    await require_client()
    from assay.runtime.nats.hub import NatsHub  # noqa: PLC0415  # heavy
    from assay.runtime.nats.streams import Limits, open_nats  # noqa: PLC0415

    limits = Limits(silence=silence)
    async with open_nats(url, limits=limits) as connection:
        yield NatsHub(connection, limits)


async def require_client() -> None:
    """Load the client of the bus, off the loop: it is slow.

    Raises:
        ConfigError: If it is not installed.
    """
    try:
        await anyio.to_thread.run_sync(import_module, "nats")
    except ModuleNotFoundError as missing:
        raise ConfigError(
            "a bus needs the package nats-py: pip install 'assay[distributed]'"
        ) from missing
