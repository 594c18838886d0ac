"""Runs a process on a bank in which the n-th call to the system fails, or ends it.

Unlike a fault put into Python, this one strikes within SQLite's own writes: in the middle of a
commit, of a checkpoint, of making the file. Run: ``python traced_child.py FOLDER NAME ROUNDS``.
"""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest
import structlog
from tests.promises.store_child import ANN, NoonClock, archived, record, told
from tests.promises.test_store_processes import found, indexed

from assay.errors import StoreError
from assay.stores.bank import open_bank
from assay.stores.embeddings import HashingEmbedder
from assay.stores.inspection import inspect_bank
from assay.stores.protocols import Bank, CacheRow, JournalEntry
from assay.stores.records import RecordId, SessionId

ROUNDS = 2
"""How often each kind of row is written."""

BATCH = 3
"""Records of one commit: all of them are there, or none."""

USED, WRITES, SYNCS = 150, 240, 16
"""The write from which on the bank is used, and how many writes and syncs there are, at least."""

needs_strace = pytest.mark.skipif(
    shutil.which("strace") is None, reason="failing calls to the system needs strace"
)


class Told(NamedTuple):
    """What one child said."""

    acknowledged: set[tuple[str, str]]
    refused: set[tuple[str, str]]
    read: int | None
    struck: bool
    code: int
    errors: str


class Point(NamedTuple):
    """The n-th of one call to the system."""

    call: str
    n: int


def points(count: int, *, seed: int) -> list[Point]:
    """By chance: a third writes of making the bank, a third of using it, and a third syncs."""
    rng = random.Random(seed)  # noqa: S311 - where to strike, not a secret
    third = count // 3
    opening, using = range(1, USED), range(USED, WRITES)
    writes = [*rng.sample(opening, third), *rng.sample(using, count - 2 * third)]
    syncs = rng.sample(range(1, SYNCS), third)
    return [*(Point("pwrite64", n) for n in writes), *(Point("fdatasync", n) for n in syncs)]


def run_struck(point: Point, fault: str, path: Path, name: str) -> Told:
    """A child's work with a fault such as ``error=EIO``, ``signal=KILL``; ``+`` behind: and later."""
    trace = path.with_name(f"{path.name}.trace")
    inject = f"inject={point.call}:{fault.rstrip('+')}:when={point.n}{'+' * fault.endswith('+')}"
    done = subprocess.run(  # noqa: S603 - our own script
        [
            *("strace", "-f", "-o", str(trace)),
            *("-e", f"trace={point.call}", "-e", inject),
            *(sys.executable, "-m", __name__, str(path), name, str(ROUNDS)),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    # A line without its end was cut by the kill.
    lines = [line.split() for line in done.stdout.splitlines(keepends=True) if line.endswith("\n")]
    calls = trace.read_text()
    return Told(
        acknowledged={(kind, key) for kind, key in lines if kind not in {"read", "no"}},
        refused={tuple(key.split("/", 1)) for kind, key in lines if kind == "no"},  # type: ignore[misc]  # two parts
        read=next((int(key) for kind, key in lines if kind == "read"), None),
        struck="(INJECTED)" in calls or "killed by SIGKILL" in calls,
        code=done.returncode,
        errors=done.stderr,
    )


def held(path: Path, name: str) -> set[tuple[str, str]]:
    """What a bank holds, a batch of records as one; no batch is half there, no page is damaged."""
    rows = anyio.run(found, path, [f"{name}-{n}" for n in range(ROUNDS)])
    records = {key for kind, key in rows if kind == "record"}
    batches = {f"{name}-{n}": batch_ids(f"{name}-{n}") for n in range(ROUNDS)}
    whole = {key for key, ids in batches.items() if records >= set(ids)}
    assert records == {one for key in whole for one in batches[key]}, "a half batch"
    assert anyio.run(indexed, path, len(records) + 1) == records
    assert inspect_bank(path).damage == ()
    return {row for row in rows if row[0] != "record"} | {("record", key) for key in whole}


def batch_ids(key: str) -> list[RecordId]:
    return [RecordId(f"{key}.{n}") for n in range(BATCH)]


async def attempt(kind: str, key: str, call: Awaitable[object]) -> None:
    """Say whether it was acknowledged or refused; anything but a StoreError ends the child."""
    try:
        await call
    except StoreError:
        told("no", f"{kind}/{key}")
    else:
        told(kind, key)


async def work(bank: Bank, name: str, rounds: int) -> None:
    """Writes of each kind, then a read of all that was written: it must still work."""
    for n in range(rounds):
        key = f"{name}-{n}"
        await attempt("record", key, bank.store.write([record(one) for one in batch_ids(key)]))
        await attempt("turn", key, bank.archive.append([archived(name, n)]))
        entry = JournalEntry(0, key.encode())
        await attempt("journal", key, bank.journal.append(SessionId(key), [entry]))
        row = CacheRow(key, key.encode(), b"question", ())
        await attempt("cache", key, bank.cache.put(ANN, [row]))
    told("read", str(len((await bank.store.changes(ANN, after=0)).records)))


async def main(*arguments: str) -> None:
    """Open the bank, work and close it; a bank that cannot be opened or closed says so."""
    path, name, rounds = arguments
    try:
        async with open_bank(Path(path), embedder=HashingEmbedder(16), clock=NoonClock()) as bank:
            await work(bank, name, int(rounds))
    except StoreError as error:
        sys.stderr.write(f"StoreError: {error}\n")


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    anyio.run(main, *sys.argv[1:])
