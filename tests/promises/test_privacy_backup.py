"""A restored backup equals the bank, and what was erased since stays erased."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import assay
from assay.errors import ConflictingWrite, StoreCorrupt, StoreError
from assay.runtime.clock import SystemClock
from assay.stores.backup import back_up, restore
from assay.stores.bank import FILE_NAME, open_bank
from assay.stores.embeddings import HashingEmbedder

from .conftest import Promise

_EMBEDDER = HashingEmbedder(48)
_TABLES = ("records", "turns", "sessions", "journal", "cache", "tombstones", "subject_keys", "meta")


def _rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path / FILE_NAME)) as connection:
        return {t: connection.execute(f"SELECT * FROM {t}").fetchall() for t in _TABLES}  # noqa: S608  # our own names


async def _fill(path: Path, count: int) -> None:
    async with assay.open_runtime(
        model="scripted", bank=path, embedder=_EMBEDDER, guard="vector"
    ) as runtime:
        for n in range(count):
            await runtime.session(user="ann", session_id=f"s{n}").send(f"My number {n} is kea{n}x.")


@pytest.mark.promise("P19", "a restored backup equals the bank")
async def test_a_restored_backup_has_the_same_bytes_in_every_row(
    tmp_path: Path, promise: Promise
) -> None:
    await _fill(tmp_path / "bank", promise.times(5, 50))

    back_up(tmp_path / "bank", tmp_path / "copy")
    restore(tmp_path / "copy", tmp_path / "other")

    rows = _rows(tmp_path / "bank")
    assert _rows(tmp_path / "other") == rows
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "other" / FILE_NAME).read_bytes()
    promise.kept(f"{sum(map(len, rows.values()))} rows of {len(rows)} tables equal, byte by byte")


@pytest.mark.promise("P19", "what was erased stays erased after a restore")
async def test_what_was_erased_since_the_backup_does_not_come_back(
    tmp_path: Path, promise: Promise
) -> None:
    path = tmp_path / "bank"
    await _fill(path, 4)
    back_up(path, tmp_path / "copy")
    async with assay.open_runtime(
        model="scripted", bank=path, embedder=_EMBEDDER, guard="vector"
    ) as runtime:
        [doomed, *_] = await runtime.memories("ann")
        await runtime.forget("ann", doomed.id)

    copied = restore(tmp_path / "copy", path)

    async with open_bank(path, embedder=_EMBEDDER, clock=SystemClock()) as bank:
        with pytest.raises(ConflictingWrite, match="erased"):
            await bank.store.write([doomed])
    content = b"".join(f.read_bytes() for f in path.rglob("*") if f.is_file())
    assert copied.erased == 1
    assert b"kea0x" not in content
    assert b"kea1x" in content
    promise.kept("1 of 1 record erased after the backup stays erased, canary bytes found = 0")


@pytest.mark.promise("P19", "a subject erased after the backup stays erased")
async def test_an_erased_subject_does_not_come_back(tmp_path: Path, promise: Promise) -> None:
    path = tmp_path / "bank"
    await _fill(path, 3)
    back_up(path, tmp_path / "copy")
    async with assay.open_runtime(
        model="scripted", bank=path, embedder=_EMBEDDER, guard="vector"
    ) as runtime:
        await runtime.erase_user("ann")

    copied = restore(tmp_path / "copy", path)

    content = b"".join(f.read_bytes() for f in path.rglob("*") if f.is_file())
    assert (copied.records, copied.erased) == (0, 3)
    assert b"kea" not in content
    promise.kept("3 of 3 records of an erased subject stay erased")


def test_a_backup_is_never_written_over(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no bank"):
        back_up(tmp_path, tmp_path / "copy")


def test_a_file_that_is_no_backup_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "copy").write_text("no bank at all")

    with pytest.raises(StoreCorrupt, match="not an Assay bank"):
        restore(tmp_path / "copy", tmp_path / "bank")

    assert not (tmp_path / "bank").exists()
