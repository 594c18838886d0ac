"""A restored bank equals the one that was backed up, less what was erased since."""

import zipfile
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from assay.errors import ConflictingWrite, ErasedInput, NewerFormat, StoreCorrupt, StoreError
from assay.stores.embeddings import HashingEmbedder
from assay.stores.erasure import erase, erase_subjects
from assay.stores.postgres.backup import TABLES, back_up, restore
from assay.stores.postgres.bank import open_postgres_bank
from assay.stores.postgres.connection import Row
from assay.stores.postgres.database import Postgres
from assay.stores.protocols import Bank, CacheRow, JournalEntry, ReplacedEntry, turn_source
from assay.stores.records import RecordId, SessionId

from .support import ANN, BEN, NOON, FreshDatabase, NoonClock, ids, memory, turn

S1, S2 = SessionId("ann/s1"), SessionId("ben/s1")
R1, T0 = RecordId("r1"), turn(0).id
_EMBEDDER = HashingEmbedder(16)


def opened(url: str) -> AbstractAsyncContextManager[Bank]:
    return open_postgres_bank(url, embedder=_EMBEDDER, clock=NoonClock())


async def fill(url: str) -> None:
    """Something in every table that a backup holds."""
    async with opened(url) as bank:
        await bank.store.write([memory("r1", "secret zebra"), memory("r2", supersedes="r1")])
        await bank.store.write([memory("b1", "Ben's zebra", namespace=BEN)])
        await bank.archive.append([turn(0, "secret zebra"), turn(1), turn(0, namespace=BEN)])
        await bank.journal.append(S1, [JournalEntry(0, b"secret"), JournalEntry(1, b"more")])
        await bank.journal.append(S2, [JournalEntry(0, b"Ben's")])
        await bank.cache.put(
            ANN,
            [
                CacheRow("k1", b"a", b"q", (R1,)),
                CacheRow("k2", b"a", b"q", (turn_source(T0),)),
                CacheRow("k3", b"a", b"q", ()),
            ],
        )
        await bank.store.write([memory("old"), memory("gone")])
        await erase(bank, ANN, [RecordId("gone")], turn_ids=[turn(9).id])
        await bank.eraser.secret()
        await bank.retriever.retrieve(ANN, "zebra", limit=3, at=NOON)


async def rows(url: str) -> dict[str, list[tuple[object, ...]]]:
    async with Postgres(url) as database:
        found = {t: await database.fetch(f"SELECT * FROM {t}") for t in TABLES}  # noqa: S608 - our own names
    return {table: sorted(tuple(map(str, row)) for row in found[table]) for table in TABLES}


async def test_a_restored_bank_has_the_same_rows(
    clean_database: str, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    bank, other = clean_database, fresh_database()
    await fill(bank)

    saved = await back_up(bank, tmp_path / "copy")
    restored = await restore(tmp_path / "copy", other)

    everything = await rows(bank)
    assert [table for table in TABLES if not everything[table]] == [
        "erased_entries",
        "erased_subjects",
    ]
    assert await rows(other) == everything
    assert (saved.records, restored.records, restored.erased) == (4, 4, 0)
    status = await anyio.Path(tmp_path / "copy").stat()
    assert saved.bytes == restored.bytes == status.st_size
    assert status.st_mode & 0o777 == 0o600


async def test_a_restored_bank_goes_on(
    clean_database: str, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    bank, other = clean_database, fresh_database()
    await fill(bank)
    await back_up(bank, tmp_path / "copy")
    await restore(tmp_path / "copy", other)

    async with opened(other) as restored:
        await restored.store.write([memory("r9", "new zebra")])
        await restored.archive.append([turn(5, "new zebra")])
        await restored.journal.append(S1, [JournalEntry(2, b"new")])
        await restored.journal.append(SessionId("ann/s2"), [JournalEntry(0, b"new")])
        await restored.cache.put(ANN, [CacheRow("k9", b"a", b"q", ())])

        candidates = await restored.retriever.retrieve(ANN, "new zebra", limit=1, at=NOON)
        [found] = await restored.archive.search(ANN, ["new zebra"], limit=1)
        assert ids([c.record for c in candidates]) == ["r9"]
        assert [t.position for t in found] == [5]
        assert [e.sequence for e in await restored.journal.read(S1)] == [0, 1, 2]
        assert [r.key async for r in restored.cache.rows(ANN)] == ["k1", "k2", "k3", "k9"]


async def test_what_was_erased_since_does_not_come_back(
    clean_database: str, tmp_path: Path
) -> None:
    url = clean_database
    await fill(url)
    await back_up(url, tmp_path / "copy")
    async with opened(url) as bank:
        await bank.store.write([memory("later")])
        await erase(
            bank, ANN, [R1, RecordId("later")], turn_ids=[T0], entries=[ReplacedEntry(S1, 0, b"-")]
        )

    copied = await restore(tmp_path / "copy", url)

    assert (copied.records, copied.erased) == (3, 1)
    async with opened(url) as bank:
        for doomed in ("r1", "later"):
            with pytest.raises(ConflictingWrite, match="erased"):
                await bank.store.write([memory(doomed, "secret zebra")])
        with pytest.raises(ConflictingWrite, match="erased"):
            await bank.archive.append([turn(0, "secret zebra")])
        assert await bank.journal.read(S1) == [JournalEntry(0, b"-"), JournalEntry(1, b"more")]
        assert [r.key async for r in bank.cache.rows(ANN)] == ["k3"]
        candidates = await bank.retriever.retrieve(ANN, "secret zebra", limit=9, at=NOON)
        assert ids([c.record for c in candidates]) == ["r2", "old"]
        assert await bank.archive.search(ANN, ["secret zebra"], limit=9) == [[]]


async def test_a_subject_erased_since_does_not_come_back(
    clean_database: str, tmp_path: Path
) -> None:
    url = clean_database
    await fill(url)
    await back_up(url, tmp_path / "copy")
    async with opened(url) as bank:
        await erase_subjects(bank, [ANN])

    copied = await restore(tmp_path / "copy", url)

    assert (copied.records, copied.erased) == (1, 3)
    async with opened(url) as bank:
        assert await bank.eraser.namespaces() == [BEN]
        assert await bank.journal.sessions() == [S2]
        assert await bank.journal.read(S2) == [JournalEntry(0, b"Ben's")]
        with pytest.raises(ErasedInput):
            await bank.journal.read(S1)


async def test_a_subject_that_came_back_before_the_backup_stays(
    clean_database: str, tmp_path: Path
) -> None:
    url = clean_database
    await fill(url)
    await back_up(url, tmp_path / "before")
    async with opened(url) as bank:
        await erase_subjects(bank, [ANN])
    await restore(tmp_path / "before", url)
    async with opened(url) as bank:
        await bank.store.write([memory("anew")])
    await back_up(url, tmp_path / "after")

    copied = await restore(tmp_path / "after", url)

    assert (copied.records, copied.erased) == (2, 0)


async def test_a_bank_that_is_open_elsewhere_is_not_replaced(
    clean_database: str, tmp_path: Path
) -> None:
    url = clean_database
    await fill(url)
    await back_up(url, tmp_path / "copy")
    async with opened(url) as bank:
        await bank.store.write([memory("later")])
        with pytest.raises(StoreError, match="open in another program; nothing was restored"):
            await restore(tmp_path / "copy", url)

        assert "later" in ids(await bank.store.current(ANN, at=NOON))


async def test_a_backup_is_one_moment(
    clean_database: str, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    url, other = clean_database, fresh_database()
    async with opened(url) as bank:
        await bank.store.write([memory("r0")])

        async def write_on() -> None:
            for n in range(1, 60):
                await bank.store.write([memory(f"r{n}", f"number {n}")])

        async with anyio.create_task_group() as group:
            group.start_soon(write_on)
            await back_up(url, tmp_path / "copy")
    restored = await restore(tmp_path / "copy", other)

    async with Postgres(other) as database:
        [counts] = await database.fetch(
            "SELECT records, (SELECT count(*) FROM records), "
            "(SELECT count(DISTINCT number) FROM record_postings), version FROM namespaces"
        )
    assert tuple(counts) == (restored.records,) * 4


async def test_a_file_that_is_there_is_not_written_over(
    clean_database: str, tmp_path: Path
) -> None:
    (tmp_path / "copy").write_text("mine")
    await fill(clean_database)

    with pytest.raises(StoreError, match="is there already"):
        await back_up(clean_database, tmp_path / "copy")

    assert (tmp_path / "copy").read_text() == "mine"


async def test_no_backup_is_made_of_a_database_without_a_bank(
    fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    with pytest.raises(StoreError, match="holds no bank"):
        await back_up(fresh_database(), tmp_path / "copy")

    assert [p.name async for p in anyio.Path(tmp_path).iterdir()] == []


async def test_a_damaged_backup_changes_nothing(clean_database: str, tmp_path: Path) -> None:
    url = clean_database
    await fill(url)
    await back_up(url, tmp_path / "copy")
    whole = (tmp_path / "copy").read_bytes()
    everything = await rows(url)

    for content in damaged(whole):
        (tmp_path / "copy").write_bytes(content)
        with pytest.raises(StoreCorrupt, match="backup"):
            await restore(tmp_path / "copy", url)

    assert await rows(url) == everything


def damaged(whole: bytes) -> Sequence[bytes]:
    middle = len(whole) // 2
    flipped = whole[:200] + bytes([whole[200] ^ 1]) + whole[201:]
    return [flipped, whole[:middle], whole[:-30], b"", b"SQLite format 3\0" + bytes(84)]


async def test_a_backup_of_a_newer_assay_is_refused(clean_database: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "copy", "w") as archive:
        archive.writestr(
            "bank.json", '{"kind": "assay bank on postgresql", "format": 99, "tables": []}'
        )

    with pytest.raises(NewerFormat, match="format 99"):
        await restore(tmp_path / "copy", clean_database)
    with pytest.raises(StoreError, match="there is no backup"):
        await restore(tmp_path / "none", clean_database)


async def test_a_backup_holds_every_table_that_outlives_the_moment(
    clean_database: str,
) -> None:
    async with Postgres(clean_database) as database:
        found: list[Row] = await database.fetch(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        )

    assert {row[0] for row in found} - set(TABLES) == {"format", "leases", "outbox"}
