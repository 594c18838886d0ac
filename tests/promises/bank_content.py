"""A small bank with every kind of row, and all that can be read from it."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple

from tests.stores.support import ANN, HOUR, NOON, NoonClock, memory, turn

from assay.stores.bank import open_bank
from assay.stores.embeddings import HashingEmbedder
from assay.stores.protocols import Bank, CacheRow, JournalEntry
from assay.stores.records import ArchiveTurn, MemoryRecord, RecordId, SessionId

DIMENSION = 16
ROUNDS = 10
SESSION = SessionId("s1")


class Content(NamedTuple):
    """All that a reader can get out of a bank."""

    now: list[MemoryRecord]
    later: list[MemoryRecord]
    everything: list[MemoryRecord]
    turns: list[ArchiveTurn]
    recent: list[ArchiveTurn]
    journal: list[JournalEntry]
    cache: list[CacheRow]


def opened(path: Path) -> AbstractAsyncContextManager[Bank]:
    """The bank in ``path`` with a small embedder."""
    return open_bank(path, embedder=HashingEmbedder(DIMENSION), clock=NoonClock())


def records_of(k: int) -> list[MemoryRecord]:
    """Eight records of round ``k``, one of which supersedes one of the round before."""
    return [
        memory(
            f"r{k}-{i}",
            f"Rex number {i} of {k} likes carrots",
            supersedes=f"r{k - 1}-0" if k and i == 0 else None,
            valid_to=NOON + HOUR * k if i % 3 == 0 else None,
        )
        for i in range(8)
    ]


def cache_row(k: int) -> CacheRow:
    return CacheRow(f"key{k}", b"answer %d" % k, b"question", (RecordId(f"r{k}-1"),))


def entries_of(k: int) -> list[JournalEntry]:
    return [JournalEntry(2 * k + i, f"event {k} {i}".encode()) for i in range(2)]


async def add_round(bank: Bank, k: int) -> None:
    """Write one round of every kind, each in a commit of its own."""
    await bank.store.write(records_of(k))
    await bank.archive.append([turn(3 * k + i, f"hello {k} {i}") for i in range(3)])
    await bank.journal.append(SESSION, entries_of(k))
    await bank.cache.put(ANN, [cache_row(k)])


async def filled(path: Path) -> Content:
    """Make the bank and give its content."""
    async with opened(path) as bank:
        for k in range(ROUNDS):
            await add_round(bank, k)
        return await read_all(bank)


async def read_all(bank: Bank) -> Content:
    """Everything, through the protocols."""
    everything = await bank.store.changes(ANN, after=0)
    return Content(
        now=await bank.store.current(ANN, at=NOON),
        later=await bank.store.current(ANN, at=NOON + 3 * HOUR),
        everything=everything.records,
        turns=await bank.archive.all(ANN),
        recent=await bank.archive.recent(ANN, SESSION, limit=5),
        journal=await bank.journal.read(SESSION),
        cache=[row async for row in bank.cache.rows(ANN)],
    )


async def content_of(path: Path) -> Content:
    """Open a bank and read everything."""
    async with opened(path) as bank:
        return await read_all(bank)
