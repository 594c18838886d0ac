"""Leases under test, and a way to let one expire without waiting."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple, TypeAlias

import pytest

from assay.runtime.clock import StoppedClock
from assay.stores.memory import InMemoryJournal
from assay.stores.memory_leases import InMemoryLeases
from assay.stores.postgres.database import Postgres
from assay.stores.postgres.journal import PostgresJournal
from assay.stores.postgres.leases import PostgresLeases
from assay.stores.protocols import Journal, Lease, Leases
from assay.stores.records import SessionId

A_MINUTE = 60.0

_EXPIRE = "UPDATE leases SET expires = clock_timestamp()"


class LeasePlace(NamedTuple):
    """Leases and the journal they guard; ``expire`` lets the time of each lease pass."""

    leases: Leases
    journal: Journal
    expire: Callable[[], Awaitable[None]]

    async def take(self, session: SessionId, owner: str) -> Lease:
        lease = await self.leases.acquire(session, owner=owner, seconds=A_MINUTE)
        assert lease is not None
        return lease


OpenLeases: TypeAlias = Callable[[], AbstractAsyncContextManager[LeasePlace]]


@pytest.fixture(params=["memory", "postgres"])
def open_leases(request: pytest.FixtureRequest) -> OpenLeases:
    """Opens the implementation under test."""
    if request.param == "memory":
        return memory_leases
    url: str = request.getfixturevalue("clean_database")
    return lambda: postgres_leases(url)


@asynccontextmanager
async def memory_leases() -> AsyncGenerator[LeasePlace]:
    clock = StoppedClock()

    async def expire() -> None:
        clock.advance(A_MINUTE)

    yield LeasePlace(InMemoryLeases(clock), InMemoryJournal(), expire)


@asynccontextmanager
async def postgres_leases(url: str) -> AsyncGenerator[LeasePlace]:
    async with Postgres(url) as database:

        async def expire() -> None:
            await database.fetch(_EXPIRE)

        yield LeasePlace(PostgresLeases(database), PostgresJournal(database), expire)
