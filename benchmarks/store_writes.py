"""Acknowledged writes per second, 64 callers, synchronous FULL; beside a group commit by hand.

    python benchmarks/store_writes.py [--writes 20000] [--callers 64] [--rounds 3]

Both sides write the same rows (record, full-text words) into the same tables; the one by hand is
aiosqlite with one writer task, ``executemany`` per group and no check of any kind. Rounds
alternate, the best of each side counts. Target: at least 5,000/s, or 0.8 of the one by hand.
"""

import argparse
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import aiosqlite
import anyio
import anyio.to_thread
import msgspec
from rich.console import Console
from rich.table import Table

from assay.stores.records import MemoryRecord, Namespace, Origin, RecordId
from assay.stores.rows import indexed_words, owner_token
from assay.stores.schema import prepare
from assay.stores.sqlite import Database
from assay.stores.sqlite_records import SqliteRecords

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANN = Namespace("ann")
TEXT = "In round {} my neighbour told me that her dog Rex likes carrots more than number {}"

Write = Callable[[MemoryRecord], Awaitable[None]]


def record(number: int) -> MemoryRecord:
    """A record of ordinary length."""
    return MemoryRecord(
        id=RecordId(f"r{number}"),
        namespace=ANN,
        text=TEXT.format(number % 7, number),
        origin=Origin(writer="user", channel="chat"),
        ingested_at=NOON,
    )


async def timed(write: Write, writes: int, callers: int) -> float:
    """Acknowledged writes per second."""

    async def call(first: int) -> None:
        for number in range(first, writes, callers):
            await write(record(number))

    start = time.perf_counter()
    async with anyio.create_task_group() as group:
        for caller in range(callers):
            group.start_soon(call, caller)
    return writes / (time.perf_counter() - start)


async def by_assay(path: Path, writes: int, callers: int) -> float:
    """The store's own group commit."""
    async with Database(path) as database:
        store = SqliteRecords(database)
        return await timed(lambda r: store.write([r]), writes, callers)


async def by_hand(path: Path, writes: int, callers: int) -> float:
    """The least code that acknowledges after a shared commit."""
    await anyio.to_thread.run_sync(prepare, path)
    send, receive = anyio.create_memory_object_stream[tuple[MemoryRecord, anyio.Event]](1024)

    async def write(item: MemoryRecord) -> None:
        done = anyio.Event()
        await send.send((item, done))
        await done.wait()

    async def commit_groups(database: aiosqlite.Connection) -> None:
        version = 0
        async for first in receive:
            group = [first]
            while receive.statistics().current_buffer_used:
                group.append(receive.receive_nowait())
            rows: list[tuple[object, ...]] = []
            words: list[tuple[int, str, str]] = []
            for item, _ in group:
                version += 1
                rows.append((version, item.namespace, item.id, msgspec.json.encode(item), b""))
                words.append((version, owner_token(item.namespace), indexed_words(item.text)))
            await database.execute("BEGIN IMMEDIATE")
            await database.executemany(
                "INSERT INTO records (version, namespace, id, body, seal) VALUES (?, ?, ?, ?, ?)",
                rows,
            )
            await database.executemany(
                "INSERT INTO records_words (rowid, owner, words) VALUES (?, ?, ?)", words
            )
            await database.commit()
            for _, done in group:
                done.set()

    rates: list[float] = []
    async with aiosqlite.connect(path, isolation_level=None) as database:
        await database.execute("PRAGMA synchronous = FULL")
        await database.execute("PRAGMA secure_delete = ON")
        await database.execute("PRAGMA cache_size = -16384")
        async with receive, anyio.create_task_group() as tasks:
            tasks.start_soon(commit_groups, database)
            async with send:
                rates.append(await timed(write, writes, callers))
    return rates[0]


def main() -> None:
    """Run both and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writes", type=int, default=20_000)
    parser.add_argument("--callers", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rates: dict[str, list[float]] = {"Assay": [], "by hand (aiosqlite)": []}
    for _ in range(options.rounds):
        for name, run in zip(rates, (by_assay, by_hand), strict=True):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "bank.sqlite3"
                rates[name].append(anyio.run(run, path, options.writes, options.callers))
    best = {name: max(values) for name, values in rates.items()}
    ours, theirs = best.values()
    title = f"Acknowledged writes/s, {options.callers} callers, synchronous FULL"
    table = Table(title=title)
    for column in ("", "writes/s", "ratio"):
        table.add_column(column, justify="left" if not column else "right")
    table.add_row("Assay", f"{ours:,.0f}", f"{ours / theirs:.2f}")
    table.add_row("by hand (aiosqlite)", f"{theirs:,.0f}", "1.00")
    Console().print(table)


if __name__ == "__main__":
    main()
