"""A bank: every store over one place, opened and closed together."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import anyio

from assay.errors import StoreCorrupt
from assay.stores.binding import bind
from assay.stores.cache_file import make_folder
from assay.stores.checks import refuse_external
from assay.stores.embedded import EmbeddedRetriever
from assay.stores.exact import ExactIndex
from assay.stores.faiss import FaissIndex
from assay.stores.hybrid import HybridRetriever
from assay.stores.memory import InMemoryArchive, InMemoryCache, InMemoryJournal, InMemoryStore
from assay.stores.memory_eraser import InMemoryEraser
from assay.stores.protocols import Bank, Changes, Clock, Embedder
from assay.stores.records import MemoryRecord, Namespace, RecordId
from assay.stores.sqlite import Database
from assay.stores.sqlite_archive import SqliteArchive
from assay.stores.sqlite_cache import SqliteCache
from assay.stores.sqlite_eraser import SqliteEraser
from assay.stores.sqlite_journal import SqliteJournal
from assay.stores.sqlite_records import SqliteRecords

FILE_NAME = "bank.sqlite3"
VECTORS_NAME = "vectors"

_FLUSH_SECONDS = 30.0
"""How long closing may take to write index files; what is not written is rebuilt."""


def memory_bank(*, embedder: Embedder, clock: Clock) -> Bank:
    """A bank that lives as long as the process: the oracle, and what tests use."""
    store, archive = InMemoryStore(), InMemoryArchive()
    journal, cache = InMemoryJournal(), InMemoryCache()
    return Bank(
        store=store,
        archive=archive,
        journal=journal,
        cache=cache,
        retriever=HybridRetriever(
            records=store,
            keywords=store,
            vectors=ExactIndex(store=store, embedder=embedder),
            embedder=embedder,
        ),
        embedder=embedder,
        eraser=InMemoryEraser(store, archive, journal, cache),
    )


@asynccontextmanager
async def open_bank(path: Path, *, embedder: Embedder, clock: Clock) -> AsyncGenerator[Bank]:
    """The bank in the folder ``path``: SQLite with full-text search, and FAISS beside it.

    The folder is made if missing. Several processes may have one bank open. A bank is bound to
    the embedder it was made with.

    Raises:
        NewerFormat: If a newer Assay wrote it; it is not touched.
        EmbedderMismatch: If it was made with another embedder; it is not touched.
        StoreCorrupt: If what is there is damaged or no bank.
        StoreError: If it cannot be made or opened.
    """
    await make_folder(path)
    await _refuse_lost(path)
    async with Database(path / FILE_NAME) as database:
        await bind(database, str(path), embedder)
        await make_folder(path / VECTORS_NAME)
        records = SqliteRecords(database)
        index = FaissIndex(
            store=records,
            embedder=embedder,
            folder=path / VECTORS_NAME,
            bank=await database.meta("bank") or "",
        )
        eraser = SqliteEraser(database, index)
        await eraser.finish()
        try:
            yield Bank(
                store=IndexedStore(records, index, embedder),
                archive=SqliteArchive(database),
                journal=SqliteJournal(database),
                cache=SqliteCache(database),
                retriever=EmbeddedRetriever(database=database, index=index, embedder=embedder),
                embedder=embedder,
                eraser=eraser,
            )
        finally:
            with anyio.move_on_after(_FLUSH_SECONDS, shield=True):
                await index.flush()


class IndexedStore:
    """A ``MemoryStore`` whose erasure reaches the vectors too."""

    def __init__(self, records: SqliteRecords, index: FaissIndex, embedder: Embedder) -> None:
        self._embedder = embedder
        self._records = records
        self._index = index

    async def write(self, records: Sequence[MemoryRecord]) -> None:
        refuse_external(records, self._embedder.name)
        await self._records.write(records)

    async def get(self, namespace: Namespace, record_ids: Sequence[RecordId]) -> list[MemoryRecord]:
        return await self._records.get(namespace, record_ids)

    async def current(self, namespace: Namespace, *, at: datetime) -> list[MemoryRecord]:
        return await self._records.current(namespace, at=at)

    async def changes(self, namespace: Namespace, *, after: int) -> Changes:
        return await self._records.changes(namespace, after=after)

    async def erase(self, namespace: Namespace, record_ids: Sequence[RecordId]) -> int:
        erased = await self._records.erase(namespace, record_ids)
        # Even when nothing was there: an erasure cut short after the rows is finished by repeating it.
        await self._index.purge(namespace)
        return erased


async def _refuse_lost(path: Path) -> None:
    """Refuse to start an empty bank where one has been.

    Raises:
        StoreCorrupt: If the vectors are there without the file they were made from.
    """
    vectors = anyio.Path(path / VECTORS_NAME)
    if await vectors.exists() and not await anyio.Path(path / FILE_NAME).exists():
        raise StoreCorrupt(
            f"{path / FILE_NAME} is missing but its vectors are there; restore it from a backup, "
            f"or remove {path} to start an empty bank"
        )
