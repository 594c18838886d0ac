"""A bank in a PostgreSQL database: every store over it, opened and closed together."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from assay.stores.binding import bind
from assay.stores.postgres.archive import PostgresArchive
from assay.stores.postgres.cache import PostgresCache
from assay.stores.postgres.database import Postgres
from assay.stores.postgres.eraser import PostgresEraser
from assay.stores.postgres.journal import PostgresJournal
from assay.stores.postgres.leases import PostgresLeases
from assay.stores.postgres.outbox import PostgresOutbox
from assay.stores.postgres.records import PostgresRecords
from assay.stores.postgres.retriever import PostgresRetriever
from assay.stores.postgres.vectors import PostgresIndex
from assay.stores.protocols import Bank, Clock, Embedder


@asynccontextmanager
async def open_postgres_bank(url: str, *, embedder: Embedder, clock: Clock) -> AsyncGenerator[Bank]:
    """The bank in the database ``url``: its tables are made if missing.

    Any number of processes on any number of hosts may have it open. A bank is bound to the
    embedder it was made with.

    Raises:
        ConfigError: If it is no URL of PostgreSQL.
        NewerFormat: If a newer Assay made it unreadable for this one; it is not touched.
        EmbedderMismatch: If it was made with another embedder; it is not touched.
        StoreError: If the server cannot be reached or used; the message says what to do.
    """
    async with Postgres(url) as database, bank_over(database, embedder) as bank:
        yield bank


@asynccontextmanager
async def bank_over(database: Postgres, embedder: Embedder) -> AsyncGenerator[Bank]:
    """The bank over an open database."""
    await bind(database, database.name, embedder)
    async with PostgresIndex(database=database, embedder=embedder).opened() as index:
        yield Bank(
            store=PostgresRecords(database, embedder=embedder.name),
            archive=PostgresArchive(database),
            journal=PostgresJournal(database),
            cache=PostgresCache(database),
            retriever=PostgresRetriever(index=index, embedder=embedder),
            embedder=embedder,
            eraser=PostgresEraser(database),
            leases=PostgresLeases(database),
            outbox=PostgresOutbox(database),
        )
