"""What a runtime has of the bus between processes."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import NamedTuple

import anyio.to_thread

from assay.errors import ConfigError
from assay.runtime.jobs import JobQueue
from assay.stores.records import Namespace


class Hub(NamedTuple):
    """The bus, as far as sessions and workers need it.

    Attributes:
        jobs: Where work waits.
        drop: Drops all the bus keeps of a namespace.
    """

    jobs: JobQueue
    drop: Callable[[Namespace], Awaitable[None]]


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
    from assay.runtime.nats.queue import NatsQueue  # noqa: PLC0415  # heavy
    from assay.runtime.nats.streams import Limits, open_nats, purge  # noqa: PLC0415

    limits = Limits(silence=silence)
    async with open_nats(url, limits=limits) as connection:

        async def drop(namespace: Namespace) -> None:
            await purge(connection, namespace)

        yield Hub(jobs=NatsQueue(connection, limits), drop=drop)


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
