"""A bank as a whole: opening, closing, refusing, and sharing between processes."""

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from assay.errors import EmbedderMismatch, NewerFormat, StoreClosed, StoreCorrupt, StoreError
from assay.stores.bank import FILE_NAME, VECTORS_NAME, open_bank
from assay.stores.cache_file import open_cache
from assay.stores.embeddings import HashingEmbedder
from assay.stores.protocols import Bank, CacheRow, JournalEntry
from assay.stores.records import RecordId, SessionId

from .support import ANN, NOON, NoonClock, OpenBank, ids, memory, turn

EMBEDDER = HashingEmbedder()


def opened(path: Path, embedder: HashingEmbedder = EMBEDDER) -> AbstractAsyncContextManager[Bank]:
    return open_bank(path, embedder=embedder, clock=NoonClock())


async def filled(path: Path) -> None:
    async with opened(path) as bank:
        await bank.store.write([memory(f"r{n}", f"number {n} likes carrots") for n in range(20)])
        await bank.retriever.retrieve(ANN, "carrots", limit=3, at=NOON)


def snapshot(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


async def test_everything_is_there_after_reopening(tmp_path: Path) -> None:
    row = CacheRow("k", b"answer", b"question", (RecordId("r1"),))
    async with opened(tmp_path / "bank") as bank:
        await bank.store.write([memory("r1")])
        await bank.archive.append([turn(0)])
        await bank.journal.append(SessionId("s1"), [JournalEntry(0, b"event")])
        await bank.cache.put(ANN, [row])

    async with opened(tmp_path / "bank") as bank:
        assert await bank.store.get(ANN, [RecordId("r1")]) == [memory("r1")]
        assert await bank.archive.all(ANN) == [turn(0)]
        assert await bank.journal.read(SessionId("s1")) == [JournalEntry(0, b"event")]
        assert [r async for r in bank.cache.rows(ANN)] == [row]


async def test_a_bank_folder_is_private(tmp_path: Path) -> None:
    await filled(tmp_path / "deep" / "bank")

    assert (await anyio.Path(tmp_path / "deep" / "bank").stat()).st_mode & 0o777 == 0o700
    assert (await anyio.Path(tmp_path / "deep/bank" / FILE_NAME).stat()).st_mode & 0o077 == 0


async def test_the_body_s_error_comes_out_bare(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with opened(tmp_path / "bank"):
            raise KeyError("mine")


async def use_everything(bank: Bank) -> list[type[BaseException] | None]:
    uses: list[Callable[[], Awaitable[object]]] = [
        lambda: bank.store.write([memory("r9")]),
        lambda: bank.store.get(ANN, [RecordId("r1")]),
        lambda: bank.store.erase(ANN, [RecordId("r1")]),
        lambda: bank.archive.append([turn(1)]),
        bank.journal.sessions,
        lambda: bank.cache.get(ANN, ["k"]),
        lambda: bank.retriever.retrieve(ANN, "rex", limit=3, at=NOON),
    ]
    outcomes: list[type[BaseException] | None] = []
    for use in uses:
        try:
            await use()
        except StoreError as error:
            outcomes.append(type(error))
        else:
            outcomes.append(None)
    return outcomes


async def test_a_closed_bank_says_so(tmp_path: Path) -> None:
    async with opened(tmp_path / "bank") as bank:
        pass

    assert await use_everything(bank) == [StoreClosed] * 7


async def test_a_bank_of_a_newer_format_is_not_touched(tmp_path: Path) -> None:
    await filled(tmp_path / "bank")
    connection = sqlite3.connect(tmp_path / "bank" / FILE_NAME)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = snapshot(tmp_path)

    with pytest.raises(NewerFormat, match=r"format 99, this Assay reads up to \d+; upgrade"):
        async with opened(tmp_path / "bank"):
            pass

    assert snapshot(tmp_path) == before


async def test_a_bank_keeps_its_embedder(tmp_path: Path) -> None:
    await filled(tmp_path / "bank")
    before = snapshot(tmp_path)

    with pytest.raises(
        EmbedderMismatch, match=r"'hashing-256@1', got 'hashing-64@1'; open it with"
    ):
        async with opened(tmp_path / "bank", HashingEmbedder(64)):
            pass

    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\0" + bytes(200)])
async def test_what_is_no_bank_is_not_opened_as_an_empty_one(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)

    with pytest.raises(StoreCorrupt, match="is not an Assay bank"):
        async with opened(tmp_path):
            pass

    assert (tmp_path / FILE_NAME).read_bytes() == content


async def test_a_lost_file_is_not_replaced_by_an_empty_bank(tmp_path: Path) -> None:
    await filled(tmp_path / "bank")
    (tmp_path / "bank" / FILE_NAME).unlink()

    with pytest.raises(StoreCorrupt, match="missing but its vectors are there"):
        async with opened(tmp_path / "bank"):
            pass


async def test_a_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bank").write_text("a file")

    with pytest.raises(StoreError, match="cannot be used as a folder"):
        async with opened(tmp_path / "bank"):
            pass


async def read_all(path: Path) -> list[str]:
    async with opened(path) as bank:
        return [record.text for record in await bank.store.current(ANN, at=NOON)]


@pytest.mark.parametrize("seed", range(24))
async def test_a_damaged_bank_never_gives_a_wrong_record(tmp_path: Path, seed: int) -> None:
    await filled(tmp_path / "bank")
    path = tmp_path / "bank" / FILE_NAME
    content = bytearray(path.read_bytes())
    # Spread over the file: header, schema, tables and free space.
    position = (seed * len(content)) // 24 + 5 * seed
    content[position : position + 16] = bytes(16) if seed % 2 else b"\xff" * 16
    path.write_bytes(content)
    expected = [f"number {n} likes carrots" for n in range(20)]

    try:
        got = await read_all(tmp_path / "bank")
    except StoreError:
        got = expected

    assert got == expected


async def test_a_flipped_letter_in_a_record_is_noticed(tmp_path: Path) -> None:
    await filled(tmp_path / "bank")
    path = tmp_path / "bank" / FILE_NAME
    content = path.read_bytes()
    path.write_bytes(content.replace(b"number 7 likes carrots", b"number 7 hates carrots"))

    with pytest.raises(StoreCorrupt, match="damaged"):
        await read_all(tmp_path / "bank")


async def test_an_empty_bank_gives_no_candidates(open_any_bank: OpenBank) -> None:
    async with open_any_bank() as bank:
        assert await bank.retriever.retrieve(ANN, "anything", limit=5, at=NOON) == []


async def test_lost_vectors_are_made_again(tmp_path: Path) -> None:
    await filled(tmp_path / "bank")
    for path in (tmp_path / "bank" / VECTORS_NAME).iterdir():
        path.unlink()

    async with opened(tmp_path / "bank") as bank:
        found = await bank.retriever.retrieve(ANN, "number 7", limit=1, at=NOON)

    assert ids([c.record for c in found]) == ["r7"]


async def test_a_cache_file_lives_alone(tmp_path: Path) -> None:
    row = CacheRow("k", b"answer", b"question", ())
    async with open_cache(tmp_path / "deep" / "cache.sqlite3") as cache:
        await cache.put(ANN, [row])

    async with open_cache(tmp_path / "deep" / "cache.sqlite3") as cache:
        assert await cache.get(ANN, ["k"]) == {"k": b"answer"}


async def test_two_banks_on_one_folder_see_each_other_s_writes(tmp_path: Path) -> None:
    async with opened(tmp_path / "bank") as first, opened(tmp_path / "bank") as second:
        await first.store.write([memory("r1", "rex likes carrots")])
        seen = await second.retriever.retrieve(ANN, "rex", limit=5, at=NOON)
        await second.store.write([memory("r2", "rex likes rain")])
        await second.store.erase(ANN, [RecordId("r1")])
        after = await first.retriever.retrieve(ANN, "rex", limit=5, at=NOON)

    assert ids([c.record for c in seen]) == ["r1"]
    assert ids([c.record for c in after]) == ["r2"]
