"""Any single failing call leaves no half row: the n-th statement, commit, mark, sync or rename."""

import errno
import os
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from itertools import count, product
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from tests.stores.support import ANN, NOON, memory, turn

from assay.errors import StoreError
from assay.stores.protocols import Bank
from assay.stores.records import RecordId

from .bank_content import Content, add_round, cache_row, entries_of, opened, read_all, records_of
from .conftest import Promise

NO_HALF_ROW = "any single failing call leaves no half row, and reads still work"

Fault = Callable[[], Exception]


def sqlite_fault(name: str, code: int) -> Fault:
    def make() -> Exception:
        error = sqlite3.OperationalError(name)
        error.sqlite_errorcode = code
        return error

    return make


FAULTS: dict[str, Fault] = {
    "ENOSPC": sqlite_fault("database or disk is full", sqlite3.SQLITE_FULL),
    "EIO": sqlite_fault("disk I/O error", sqlite3.SQLITE_IOERR),
    "MemoryError": MemoryError,
}
SYSTEM_FAULTS: dict[str, Fault] = {
    "ENOSPC": lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "EIO": lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
    "MemoryError": MemoryError,
}


class Gremlin:
    """Fails the n-th call it sees while awake and, as a full disk would, all later ones."""

    def __init__(self) -> None:
        self.awake = False
        self.struck = False
        self._left = 0
        self._fault: Fault = MemoryError

    def strike_at(self, n: int, fault: Fault) -> None:
        self._left, self._fault, self.struck = n, fault, False

    def see(self) -> None:
        if self.awake:
            self._left -= 1
            if self._left <= 0:
                self.struck = True
                raise self._fault()


@contextmanager
def failing_sqlite(gremlin: Gremlin, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Every statement of a writer is seen, but for what undoes: SQLite needs no space for that."""

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *values: object) -> sqlite3.Cursor:
            if not sql.startswith("ROLLBACK"):
                gremlin.see()
            return super().execute(sql, *values)  # type: ignore[arg-type]  # as it came

        def executemany(self, sql: str, values: object) -> sqlite3.Cursor:
            gremlin.see()
            return super().executemany(sql, values)  # type: ignore[arg-type]  # as it came

    plain = sqlite3.connect

    def connect(path: Path, **options: object) -> sqlite3.Connection:
        return plain(path, factory=Connection, **options)  # type: ignore[call-overload,no-any-return]  # as it came

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect)
        yield


@contextmanager
def failing_system(gremlin: Gremlin, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Writes, syncs and renames of our own are seen: of the mark and of the vector files."""

    def seen(call: Callable[..., object]) -> Callable[..., object]:
        def instead(*values: object, **options: object) -> object:
            gremlin.see()
            return call(*values, **options)

        return instead

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", seen(os.fsync))
        patch.setattr(os, "pwrite", seen(os.pwrite))
        patch.setattr(Path, "replace", seen(Path.replace))
        yield


async def write_records(bank: Bank) -> None:
    await bank.store.write(records_of(1))


async def append_turns(bank: Bank) -> None:
    await bank.archive.append([turn(3 + i, f"hello again {i}") for i in range(3)])


async def append_events(bank: Bank) -> None:
    await bank.journal.append(turn(0).session, entries_of(1))


async def put_answer(bank: Bank) -> None:
    await bank.cache.put(ANN, [cache_row(1)])


async def erase_records(bank: Bank) -> None:
    await bank.store.erase(ANN, [RecordId("r0-0"), RecordId("r0-5")])


OPERATIONS: dict[str, Callable[[Bank], Awaitable[None]]] = {
    "records": write_records,
    "turns": append_turns,
    "journal": append_events,
    "cache": put_answer,
    "erase": erase_records,
}


async def whole_content(path: Path, operation: Callable[[Bank], Awaitable[None]]) -> list[Content]:
    """Make ``before``, and give what it holds before and after the operation."""
    async with opened(path / "before") as bank:
        await add_round(bank, 0)
        before = await read_all(bank)
    await anyio.to_thread.run_sync(shutil.copytree, path / "before", path / "after")
    async with opened(path / "after") as bank:
        await operation(bank)
        return [before, await read_all(bank)]


async def fails_at(
    path: Path, gremlin: Gremlin, operation: Callable[[Bank], Awaitable[None]], whole: list[Content]
) -> bool:
    """Whether the armed fault struck; nothing is half there then, and the bank goes on."""
    async with opened(path) as bank:
        try:
            with armed(gremlin):
                await operation(bank)
        except StoreError:
            assert gremlin.struck
        assert await read_all(bank) in whole
        await bank.retriever.retrieve(ANN, "Rex", limit=3, at=NOON)
        await bank.store.write([memory("after", "Rex sleeps")])
    return gremlin.struck


@contextmanager
def armed(gremlin: Gremlin) -> Generator[None]:
    """The gremlin is awake in the block only."""
    gremlin.awake = True
    try:
        yield
    finally:
        gremlin.awake = False


async def points_passed(
    folder: Path, gremlin: Gremlin, names: Iterable[str], faults: dict[str, Fault]
) -> int:
    """How many calls could fail, one run each, until an operation came through."""
    points = 0
    for name, (kind, fault) in product(names, faults.items()):
        whole = await whole_content(folder / name / kind, OPERATIONS[name])
        for n in count(1):
            gremlin.strike_at(n, fault)
            path = folder / name / kind / str(n)
            await anyio.to_thread.run_sync(shutil.copytree, folder / name / kind / "before", path)
            if not await fails_at(path, gremlin, OPERATIONS[name], whole):
                break
            points += 1
    return points


@pytest.mark.timeout(120)
@pytest.mark.promise("P2", NO_HALF_ROW)
async def test_the_nth_statement_may_fail(
    promise: Promise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gremlin = Gremlin()
    names = list(OPERATIONS) if promise.long else ["cache"]
    faults = FAULTS if promise.long else {"ENOSPC": FAULTS["ENOSPC"]}

    with failing_sqlite(gremlin, monkeypatch):
        points = await points_passed(tmp_path, gremlin, names, faults)

    assert points > len(names) * len(faults)
    promise.kept(f"{points} statements and commits failed, 0 half rows ({', '.join(faults)})")


@pytest.mark.timeout(120)
@pytest.mark.promise("P2", NO_HALF_ROW)
async def test_the_nth_write_sync_or_rename_may_fail(
    promise: Promise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gremlin = Gremlin()
    names = list(OPERATIONS) if promise.long else ["cache", "erase"]
    faults = SYSTEM_FAULTS if promise.long else {"EIO": SYSTEM_FAULTS["EIO"]}

    with failing_system(gremlin, monkeypatch):
        points = await points_passed(tmp_path, gremlin, names, faults)

    assert points >= len(names) * len(faults)
    promise.kept(f"{points} writes, syncs and renames failed, 0 half rows ({', '.join(faults)})")
