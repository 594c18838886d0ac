"""One erase reaches every place."""

from pathlib import Path

import pytest

from assay.errors import ConflictingWrite
from assay.stores.bank import open_bank
from assay.stores.embeddings import HashingEmbedder
from assay.stores.erasure import erase, erase_subjects, with_derived
from assay.stores.protocols import CacheRow, JournalEntry
from assay.stores.records import RecordId, SessionId

from .support import ANN, BEN, NOON, NoonClock, OpenBank, ids, memory

R1 = RecordId("r1")


def cached(key: str, *record_ids: str) -> CacheRow:
    return CacheRow(key, b"answer", b"question", tuple(map(RecordId, record_ids)))


async def test_an_erased_record_is_gone_from_every_path(open_any_bank: OpenBank) -> None:
    async with open_any_bank() as bank:
        await bank.store.write([memory("r1", "secret zebra"), memory("r2", "open zebra")])
        await bank.cache.put(ANN, [cached("k1", "r1", "r2"), cached("k2", "r2")])
        await bank.retriever.retrieve(ANN, "zebra", limit=9, at=NOON)

        receipt = await erase(bank, ANN, [R1])

        assert receipt.record_ids == ("r1",)
        assert receipt.cache_rows == 1
        candidates = await bank.retriever.retrieve(ANN, "secret zebra", limit=9, at=NOON)
        assert ids([c.record for c in candidates]) == ["r2"]
        assert list(await bank.cache.get(ANN, ["k1", "k2"])) == ["k2"]
        with pytest.raises(ConflictingWrite, match="erased"):
            await bank.store.write([memory("r1", "secret zebra")])


async def test_what_was_derived_goes_too_at_any_distance(open_any_bank: OpenBank) -> None:
    async with open_any_bank() as bank:
        await bank.store.write(
            [
                memory("far", derived_from=("near",)),
                memory("r1"),
                memory("near", derived_from=("other", "r1")),
                memory("other"),
            ]
        )
        await bank.cache.put(ANN, [cached("k1", "far")])

        receipt = await erase(bank, ANN, [R1])

        assert receipt.record_ids == ("far", "r1", "near")
        assert receipt.cache_rows == 1
        assert ids(await bank.store.current(ANN, at=NOON)) == ["other"]


async def test_nothing_of_another_namespace_is_reached(open_any_bank: OpenBank) -> None:
    async with open_any_bank() as bank:
        await bank.store.write([memory("r1"), memory("r1", namespace=BEN)])
        await bank.cache.put(BEN, [cached("k1", "r1")])

        await erase(bank, ANN, [R1])

        assert ids(await bank.store.current(BEN, at=NOON)) == ["r1"]
        assert list(await bank.cache.get(BEN, ["k1"])) == ["k1"]


async def test_erasing_again_finishes_what_was_left(open_any_bank: OpenBank) -> None:
    async with open_any_bank() as bank:
        await bank.store.write([memory("r1")])
        await erase(bank, ANN, [R1])
        await bank.cache.put(ANN, [cached("late", "r1")])

        receipt = await erase(bank, ANN, [R1])

        assert (receipt.record_ids, receipt.cache_rows) == ((), 1)


async def test_what_was_erased_is_not_counted_again(open_any_bank: OpenBank) -> None:
    async with open_any_bank() as bank:
        session = SessionId(f"{ANN}/s1")
        await bank.journal.append(session, [JournalEntry(0, b"said"), JournalEntry(1, b"more")])

        [first] = await erase_subjects(bank, [ANN])
        [second] = await erase_subjects(bank, [ANN])
        later = SessionId(f"{ANN}/s2")
        await bank.journal.append(later, [JournalEntry(0, b"back")])
        [third] = await erase_subjects(bank, [ANN])

        assert (first.entries, second.entries, third.entries) == (2, 0, 1)


def test_a_record_derived_from_one_long_gone_is_reached() -> None:
    records = [memory("a", derived_from=("gone",)), memory("b")]

    assert with_derived(records, [RecordId("gone")]) == ["a"]


async def test_no_byte_of_an_erased_record_stays_in_the_folder(tmp_path: Path) -> None:
    embedder = HashingEmbedder(48)
    canaries = [f"canary{n}x{n * 7919}" for n in range(40)]
    path = tmp_path / "bank"
    async with open_bank(path, embedder=embedder, clock=NoonClock()) as bank:
        await bank.store.write([memory(f"id{n}", text) for n, text in enumerate(canaries)])
        await bank.cache.put(
            ANN,
            [
                CacheRow(f"k{n}", b"", text.encode(), (RecordId(f"id{n}"),))
                for n, text in enumerate(canaries)
            ],
        )
        await bank.retriever.retrieve(ANN, canaries[3], limit=5, at=NOON)

    async with open_bank(path, embedder=embedder, clock=NoonClock()) as bank:
        await erase(bank, ANN, [RecordId(f"id{n}") for n in range(0, 40, 4)])
        during = contents(path)
    after = contents(path)

    vectors = await embedder.embed(canaries, kind="passage")
    traces = [
        (t.encode(), v.astype("<f4").tobytes()) for t, v in zip(canaries, vectors, strict=True)
    ]
    gone, kept = traces[::4], traces[1::4]
    assert [trace for trace in gone if found(trace, during) or found(trace, after)] == []
    assert all(found(trace, after) for trace in kept)


def contents(path: Path) -> bytes:
    return b"".join(p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file())


def found(trace: tuple[bytes, bytes], content: bytes) -> bool:
    text, vector = trace
    return text in content or vector in content
