"""Every implementation of a store contract, through one fixture each."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx

from assay.stores.bank import memory_bank, open_bank
from assay.stores.embeddings import HashingEmbedder
from assay.stores.memory import InMemoryArchive, InMemoryCache, InMemoryJournal, InMemoryStore
from assay.stores.postgres.archive import PostgresArchive
from assay.stores.postgres.bank import open_postgres_bank
from assay.stores.postgres.cache import PostgresCache
from assay.stores.postgres.database import Postgres
from assay.stores.postgres.journal import PostgresJournal
from assay.stores.postgres.records import PostgresRecords
from assay.stores.protocols import Bank
from assay.stores.sqlite import Database
from assay.stores.sqlite_archive import SqliteArchive
from assay.stores.sqlite_cache import SqliteCache
from assay.stores.sqlite_journal import SqliteJournal
from assay.stores.sqlite_records import SqliteRecords

from .support import NoonClock, OpenBank, OpenStores, Stores

IMPLEMENTATIONS = ["memory", "sqlite", "postgres"]


@pytest.fixture(autouse=True)
def nothing_blocks_the_loop() -> Iterator[None]:
    with blockbuster_ctx("assay.stores") as blocker:
        for function in blocker.functions.values():
            # The driver looks for certificates and passwords in the user's home: once a connection.
            function.can_block_in("asyncpg/connect_utils.py", "_parse_connect_dsn_and_args")
        yield


@asynccontextmanager
async def in_memory() -> AsyncGenerator[Stores]:
    store = InMemoryStore()
    yield Stores(store, store, store, InMemoryArchive(), InMemoryJournal(), InMemoryCache())


@asynccontextmanager
async def in_sqlite(path: Path) -> AsyncGenerator[Stores]:
    async with Database(path) as database:
        store = SqliteRecords(database)
        yield Stores(
            store,
            store,
            store,
            SqliteArchive(database),
            SqliteJournal(database),
            SqliteCache(database),
        )


@asynccontextmanager
async def in_postgres(url: str) -> AsyncGenerator[Stores]:
    async with Postgres(url) as database:
        store = PostgresRecords(database)
        yield Stores(
            store,
            store,
            store,
            PostgresArchive(database),
            PostgresJournal(database),
            PostgresCache(database),
        )


@pytest.fixture(params=IMPLEMENTATIONS)
def open_stores(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStores:
    """Opens the implementation under test; opened inside the test, closed there."""
    if request.param == "memory":
        return in_memory
    if request.param == "postgres":
        url: str = request.getfixturevalue("clean_database")
        return lambda: in_postgres(url)
    return lambda: in_sqlite(tmp_path / "stores.sqlite3")


@asynccontextmanager
async def fresh_memory_bank() -> AsyncGenerator[Bank]:
    yield memory_bank(embedder=HashingEmbedder(), clock=NoonClock())


@pytest.fixture(params=IMPLEMENTATIONS)
def open_any_bank(request: pytest.FixtureRequest, tmp_path: Path) -> OpenBank:
    """Opens a bank of the implementation under test."""
    if request.param == "memory":
        return fresh_memory_bank
    if request.param == "postgres":
        url: str = request.getfixturevalue("clean_database")
        return lambda: open_postgres_bank(url, embedder=HashingEmbedder(), clock=NoonClock())

    def open_sqlite() -> AbstractAsyncContextManager[Bank]:
        return open_bank(tmp_path / "bank", embedder=HashingEmbedder(), clock=NoonClock())

    return open_sqlite
