"""A process that writes to a bank and says what was acknowledged; others kill or trace it.

Run: ``python store_child.py kinds|turns|journal FOLDER NAME COUNT``.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path

import anyio
import structlog

from assay.stores.bank import open_bank
from assay.stores.embeddings import HashingEmbedder
from assay.stores.protocols import Bank, CacheRow, JournalEntry
from assay.stores.records import (
    ArchiveTurn,
    MemoryRecord,
    Namespace,
    Origin,
    RecordId,
    SessionId,
    TurnId,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANN = Namespace("ann")


class NoonClock:
    """Always noon."""

    def now(self) -> datetime:
        return NOON

    def monotonic(self) -> float:
        return 0.0


def told(kind: str, key: str) -> None:
    sys.stdout.write(f"{kind} {key}\n")
    sys.stdout.flush()


def record(key: str) -> MemoryRecord:
    return MemoryRecord(
        id=RecordId(key),
        namespace=ANN,
        text=f"Rex likes carrots, says {key}",
        origin=Origin(writer="user", channel="chat"),
        ingested_at=NOON,
    )


def archived(name: str, n: int) -> ArchiveTurn:
    return ArchiveTurn(
        id=TurnId(f"{name}-{n}"),
        namespace=ANN,
        session=SessionId(name),
        position=n,
        speaker="user",
        text=f"number {n}",
        at=NOON,
    )


async def write_kinds(bank: Bank, name: str, count: int) -> None:
    """One row of each kind after the other, each said when acknowledged."""
    for n in range(count):
        key = f"{name}-{n}"
        await bank.store.write([record(key)])
        told("record", key)
        await bank.archive.append([archived(name, n)])
        told("turn", key)
        await bank.journal.append(SessionId(name), [JournalEntry(n, key.encode())])
        told("journal", key)
        await bank.cache.put(ANN, [CacheRow(key, key.encode(), b"question", ())])
        told("cache", key)


async def take_turns(bank: Bank, name: str, count: int) -> None:
    """Read, then write what depends on it; every turn finds its own last record."""
    for n in range(count):
        await bank.retriever.retrieve(ANN, f"what says {name}-{n}", limit=3, at=NOON)
        await bank.store.write([record(f"{name}-{n}")])
        await bank.store.get(ANN, [RecordId(f"{name}-{n}")])
        await bank.archive.append([archived(name, n)])
        told("record", f"{name}-{n}")


async def journal_only(bank: Bank, name: str, count: int) -> None:
    """Single events, one acknowledgement each."""
    for n in range(count):
        await bank.journal.append(SessionId(name), [JournalEntry(n, b"event")])
        told("journal", f"{name}-{n}")


WORK = {"kinds": write_kinds, "turns": take_turns, "journal": journal_only}


async def main(*arguments: str) -> None:
    """Open the bank and do the work."""
    work, path, name, count = arguments
    async with open_bank(Path(path), embedder=HashingEmbedder(16), clock=NoonClock()) as bank:
        await WORK[work](bank, name, int(count))


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    anyio.run(main, *sys.argv[1:])
