"""The database under the stores: group commit, cancellation, errors."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from assay.errors import ConflictingWrite, NewerFormat, StoreClosed, StoreError
from assay.stores import schema
from assay.stores.sqlite import Database


def noting(number: int) -> Callable[[sqlite3.Connection], int]:
    """Work that writes one row and gives how many commits the connection has seen before."""

    def work(connection: sqlite3.Connection) -> int:
        connection.execute("INSERT INTO meta VALUES (?, 'x')", (f"n{number}",))
        return number

    return work


def numbers(connection: sqlite3.Connection) -> list[int]:
    rows = connection.execute("SELECT key FROM meta WHERE key LIKE 'n%'")
    return sorted(int(row[0][1:]) for row in rows)


def failing(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO meta VALUES ('n99', 'half')")
    raise ConflictingWrite("no")


async def test_concurrent_writers_share_commits(tmp_path: Path) -> None:
    frames: list[int] = []
    async with Database(tmp_path / "f") as database:
        async with anyio.create_task_group() as group:
            for number in range(64):
                group.start_soon(database.write, noting(number))
        assert await database.read(numbers) == list(range(64))
        frames = [(tmp_path / "f-wal").stat().st_size]

    # 64 commits of their own would write at least one 4 KiB page each.
    assert frames[0] < 20 * 4096


async def test_one_failure_does_not_fail_its_group(tmp_path: Path) -> None:
    refused: list[ConflictingWrite] = []

    async def refuse(database: Database) -> None:
        try:
            await database.write(failing)
        except ConflictingWrite as error:
            refused.append(error)

    async with Database(tmp_path / "f") as database:
        async with anyio.create_task_group() as group:
            group.start_soon(database.write, noting(1))
            group.start_soon(refuse, database)
            group.start_soon(database.write, noting(2))

        assert await database.read(numbers) == [1, 2]
    assert len(refused) == 1


async def test_a_caller_cancelled_before_its_turn_writes_nothing(tmp_path: Path) -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> None:
        entered.set()
        leave.wait(5)

    async with Database(tmp_path / "f") as database, anyio.create_task_group() as group:
        group.start_soon(database.write, slow)
        await anyio.to_thread.run_sync(entered.wait)
        with anyio.CancelScope() as scope:
            group.start_soon(_cancel_soon, scope)
            await database.write(noting(1))
        leave.set()
        await database.write(noting(2))

        assert scope.cancelled_caught
        assert await database.read(numbers) == [2]


async def _cancel_soon(scope: anyio.CancelScope) -> None:
    await checkpoint()
    scope.cancel()


async def test_a_caller_cancelled_in_the_middle_leaves_a_whole_write(tmp_path: Path) -> None:
    entered, leave = threading.Event(), threading.Event()

    def two_rows(connection: sqlite3.Connection) -> None:
        noting(1)(connection)
        entered.set()
        leave.wait(5)
        noting(2)(connection)

    async with Database(tmp_path / "f") as database, anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:
            group.start_soon(_cancel_when, entered, scope, leave)
            await database.write(two_rows)
        # Decided when the cancelled caller is back: what it reads now is what stays.
        written = await database.read(numbers)
        await database.write(noting(3))

        assert scope.cancelled_caught
        assert written == [1, 2]
        assert await database.read(numbers) == [1, 2, 3]


async def _cancel_when(
    entered: threading.Event, scope: anyio.CancelScope, leave: threading.Event
) -> None:
    await anyio.to_thread.run_sync(entered.wait)
    scope.cancel()
    await checkpoint()
    leave.set()


async def test_closing_waits_for_what_is_queued(tmp_path: Path) -> None:
    with anyio.CancelScope() as scope:
        async with Database(tmp_path / "f") as database, anyio.create_task_group() as group:
            group.start_soon(database.write, noting(1))
            await checkpoint()
            await checkpoint()
            scope.cancel()
            await checkpoint()

    async with Database(tmp_path / "f") as database:
        assert await database.read(numbers) in ([], [1])
    with pytest.raises(StoreClosed):
        await database.read(numbers)


async def test_closing_leaves_no_thread_inside_and_no_log(tmp_path: Path) -> None:
    async with Database(tmp_path / "f") as database:
        await database.write(noting(1))
        await database.read(numbers)

    assert {path.name for path in tmp_path.iterdir()} == {"f", "f-mark"}  # noqa: ASYNC240 - one listing


async def test_a_statement_that_fails_is_a_store_error(tmp_path: Path) -> None:
    async with Database(tmp_path / "f") as database:
        with pytest.raises(StoreError, match="no such table"):
            await database.read(lambda connection: connection.execute("SELECT * FROM missing"))
        with pytest.raises(StoreError, match="readonly"):
            await database.read(noting(1))
        await database.write(noting(2))

        assert await database.read(numbers) == [2]


async def test_a_reader_sees_one_state(tmp_path: Path) -> None:
    first_read, written = threading.Event(), threading.Event()

    def twice(connection: sqlite3.Connection) -> tuple[list[int], list[int]]:
        before = numbers(connection)
        first_read.set()
        written.wait(5)
        return before, numbers(connection)

    seen: list[tuple[list[int], list[int]]] = []

    async def read(database: Database) -> None:
        seen.append(await database.read(twice))

    async with Database(tmp_path / "f") as database, anyio.create_task_group() as group:
        group.start_soon(read, database)
        await anyio.to_thread.run_sync(first_read.wait)
        await database.write(noting(1))
        written.set()

    assert seen == [([], [])]


async def test_every_connection_syncs_and_overwrites(tmp_path: Path) -> None:
    def pragmas(connection: sqlite3.Connection) -> list[object]:
        names = ("journal_mode", "synchronous", "secure_delete")
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    async with Database(tmp_path / "f") as database:
        assert await database.read(pragmas) == ["wal", 2, 1]
        assert await database.write(pragmas) == ["wal", 2, 1]


async def test_an_older_bank_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Database(tmp_path / "f") as database:
        await database.write(noting(1))
    monkeypatch.setattr(
        schema, "MIGRATIONS", (*schema.MIGRATIONS, "CREATE TABLE added (x INTEGER);\n")
    )
    monkeypatch.setattr(schema, "FORMAT", schema.FORMAT + 1)

    async with Database(tmp_path / "f") as database:
        assert await database.read(numbers) == [1]
        added = await database.read(lambda c: c.execute("SELECT count(*) FROM added").fetchone())
        version = await database.read(lambda c: c.execute("PRAGMA user_version").fetchone())

    assert (added, version) == ((0,), (schema.FORMAT,))


async def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Database(tmp_path / "f") as database:
        await database.write(noting(1))
    with monkeypatch.context() as patch:
        broken = "CREATE TABLE added (x INTEGER);\nCREATE TABLE meta (x INTEGER);\n"
        patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, broken))
        patch.setattr(schema, "FORMAT", schema.FORMAT + 1)
        with pytest.raises(StoreError, match="already exists"):
            async with Database(tmp_path / "f"):
                pass

    async with Database(tmp_path / "f") as database:
        assert await database.read(numbers) == [1]
        assert await database.read(lambda c: c.execute("PRAGMA user_version").fetchone()) == (
            schema.FORMAT,
        )


async def test_a_bank_made_newer_behind_our_back_is_refused(tmp_path: Path) -> None:
    async with Database(tmp_path / "f") as database:
        await database.write(lambda c: c.execute("PRAGMA user_version = 9"))

        # The header of the file itself is still the old one; only the log knows.
        with pytest.raises(NewerFormat, match="format 9"):
            async with Database(tmp_path / "f"):
                pass


def fill(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO meta VALUES ('n50', zeroblob(4000000))")


async def test_a_full_disk_fails_the_write_and_nothing_else(tmp_path: Path) -> None:
    async with Database(tmp_path / "f") as database:
        await database.write(noting(1))
        await database.write(lambda connection: connection.execute("PRAGMA max_page_count = 60"))

        with pytest.raises(StoreError, match="full"):
            await database.write(fill)

        await database.write(noting(2))
        assert await database.read(numbers) == [1, 2]


async def test_a_commit_that_fails_fails_every_caller_of_its_group(tmp_path: Path) -> None:
    refused: list[int] = []

    async def write(database: Database, number: int) -> None:
        try:
            await database.write(noting(number))
        except StoreError:
            refused.append(number)

    def defer_a_violation(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA defer_foreign_keys = ON")
        connection.execute("INSERT INTO child VALUES (7)")

    async def violate(database: Database) -> None:
        try:
            await database.write(defer_a_violation)
        except StoreError:
            refused.append(0)

    async with Database(tmp_path / "f") as database:
        await database.write(
            lambda connection: connection.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY)")
        )
        await database.write(
            lambda connection: connection.execute(
                "CREATE TABLE child (id REFERENCES parent DEFERRABLE INITIALLY DEFERRED)"
            )
        )
        await _set_foreign_keys(database)
        entered, leave = threading.Event(), threading.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(database.write, _gate(entered, leave))
            await anyio.to_thread.run_sync(entered.wait)
            group.start_soon(write, database, 1)
            group.start_soon(violate, database)
            group.start_soon(write, database, 2)
            await anyio.wait_all_tasks_blocked()
            leave.set()

        assert sorted(refused) == [0, 1, 2]
        await database.write(noting(3))
        assert await database.read(numbers) == [3]


def _gate(
    entered: threading.Event, leave: threading.Event
) -> Callable[[sqlite3.Connection], object]:
    def work(connection: sqlite3.Connection) -> None:
        entered.set()
        leave.wait(5)

    return work


async def _set_foreign_keys(database: Database) -> None:
    # The pragma does nothing inside a transaction, so the work leaves and re-enters it.
    def work(connection: sqlite3.Connection) -> None:
        connection.execute("COMMIT")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("BEGIN IMMEDIATE")

    await database.write(work)
