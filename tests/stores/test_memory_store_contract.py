"""What every ``MemoryStore`` promises."""

from datetime import datetime

import msgspec
import pytest

from assay.errors import ConflictingWrite, RecordNotFound
from assay.stores.records import MemoryRecord, Namespace, RecordId

from .support import ANN, BEN, HOUR, NOON, OpenStores, ids, memory


async def test_a_written_record_comes_back_equal(open_stores: OpenStores) -> None:
    record = memory(
        "r1", valid_from=NOON, valid_to=NOON + HOUR, supersedes="r0", derived_from=("a", "b")
    )
    async with open_stores() as stores:
        await stores.store.write([record])

        assert await stores.store.get(ANN, [RecordId("r1")]) == [record]


async def test_get_keeps_the_order_asked(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.store.write([memory("r1"), memory("r2"), memory("r3")])

        found = await stores.store.get(ANN, [RecordId("r3"), RecordId("r1"), RecordId("r3")])

    assert ids(found) == ["r3", "r1", "r3"]


async def test_get_names_the_first_record_that_is_missing(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.store.write([memory("r1")])

        with pytest.raises(RecordNotFound, match="'r2'"):
            await stores.store.get(ANN, [RecordId("r1"), RecordId("r2"), RecordId("r3")])


async def test_writing_the_same_record_again_changes_nothing(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.store.write([memory("r1"), memory("r1")])
        before = await stores.store.changes(ANN, after=0)
        await stores.store.write([memory("r1")])

        assert await stores.store.changes(ANN, after=0) == before
        assert ids(before.records) == ["r1"]


async def test_the_first_content_of_an_id_stands(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.store.write([memory("r1", "first")])

        with pytest.raises(ConflictingWrite, match="'r1' exists"):
            await stores.store.write([memory("r0"), memory("r1", "second")])

        assert ids(await stores.store.current(ANN, at=NOON)) == ["r1"]


async def test_a_batch_that_contradicts_itself_is_refused_whole(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        with pytest.raises(ConflictingWrite):
            await stores.store.write([memory("r1", "first"), memory("r1", "second")])

        assert await stores.store.current(ANN, at=NOON) == []


async def test_the_same_id_in_two_namespaces_is_two_records(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.store.write([memory("r1", "ann's"), memory("r1", "ben's", namespace=BEN)])

        assert [r.text for r in await stores.store.get(ANN, [RecordId("r1")])] == ["ann's"]
        assert [r.text for r in await stores.store.current(BEN, at=NOON)] == ["ben's"]


@pytest.mark.parametrize(
    "other", ["ann ", "Ann", "an", "ann'", 'ann"', "ann%", "a\u0301nn", "\u00e1nn", "ann OR ben"]
)
async def test_a_namespace_that_looks_alike_is_another_one(
    open_stores: OpenStores, other: str
) -> None:
    async with open_stores() as stores:
        await stores.store.write([memory("r1")])

        assert await stores.store.current(Namespace(other), at=NOON) == []
        assert await stores.keywords.match(Namespace(other), "carrots", limit=9) == []
        assert (await stores.store.changes(Namespace(other), after=0)).records == []


async def test_a_superseded_record_is_history_from_when_its_successor_came_in(
    open_stores: OpenStores,
) -> None:
    async with open_stores() as stores:
        await stores.store.write([memory("old"), memory("new", at=NOON + HOUR, supersedes="old")])

        assert ids(await stores.store.current(ANN, at=NOON)) == ["old", "new"]
        assert ids(await stores.store.current(ANN, at=NOON + HOUR)) == ["new"]
        assert ids(await stores.store.get(ANN, [RecordId("old")])) == ["old"]


async def test_a_successor_that_holds_later_supersedes_later(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.store.write(
            [memory("old"), memory("new", supersedes="old", valid_from=NOON + 2 * HOUR)]
        )

        assert ids(await stores.store.current(ANN, at=NOON + HOUR)) == ["old"]
        assert ids(await stores.store.current(ANN, at=NOON + 2 * HOUR)) == ["new"]


async def test_a_successor_may_arrive_first(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.store.write([memory("new", supersedes="old")])
        await stores.store.write([memory("old")])

        assert ids(await stores.store.current(ANN, at=NOON)) == ["new"]


async def test_erasing_a_correction_does_not_bring_the_old_statement_back(
    open_stores: OpenStores,
) -> None:
    async with open_stores() as stores:
        await stores.store.write([memory("old"), memory("new", supersedes="old")])
        await stores.store.erase(ANN, [RecordId("new")])

        assert await stores.store.current(ANN, at=NOON) == []


async def test_validity_starts_inclusive_and_ends_exclusive(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.store.write([memory("r1", valid_from=NOON, valid_to=NOON + HOUR)])

        assert ids(await stores.store.current(ANN, at=NOON - HOUR)) == []
        assert ids(await stores.store.current(ANN, at=NOON)) == ["r1"]
        assert ids(await stores.store.current(ANN, at=NOON + HOUR)) == []


async def test_current_among_keeps_order_and_passes_over_what_does_not_hold(
    open_stores: OpenStores,
) -> None:
    asked = [RecordId(i) for i in ("r3", "gone", "r1", "expired")]
    async with open_stores() as stores:
        await stores.store.write(
            [memory("r1"), memory("expired", valid_to=NOON), memory("r3"), memory("other")]
        )

        assert ids(await stores.currency.current_among(ANN, asked, at=NOON)) == ["r3", "r1"]


async def test_changes_continue_where_they_stopped(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.store.write([memory("r1"), memory("r2")])
        first = await stores.store.changes(ANN, after=0)
        await stores.store.write([memory("b1", namespace=BEN), memory("r3")])
        await stores.store.erase(ANN, [RecordId("r1")])
        second = await stores.store.changes(ANN, after=first.version)
        third = await stores.store.changes(ANN, after=second.version)

    assert ids(first.records) == ["r1", "r2"]
    assert (ids(second.records), second.erased) == (["r3"], ["r1"])
    assert (third.records, third.erased, third.version) == ([], [], second.version)
    assert first.version < second.version


async def test_changes_of_an_empty_namespace_stay_at_the_version_asked(
    open_stores: OpenStores,
) -> None:
    async with open_stores() as stores:
        assert await stores.store.changes(ANN, after=7) == ([], [], 7)


async def test_erase_counts_what_was_there(open_stores: OpenStores) -> None:
    r1, never = RecordId("r1"), RecordId("never")
    async with open_stores() as stores:
        await stores.store.write([memory("r1"), memory("r2"), memory("r1", namespace=BEN)])

        assert await stores.store.erase(ANN, [r1, r1, never]) == 1
        assert await stores.store.erase(ANN, [r1]) == 0
        assert ids(await stores.store.current(ANN, at=NOON)) == ["r2"]
        assert ids(await stores.store.current(BEN, at=NOON)) == ["r1"]
        assert await stores.keywords.match(ANN, "carrots", limit=9) != []
        with pytest.raises(RecordNotFound):
            await stores.store.get(ANN, [r1])


async def test_an_erased_id_may_not_come_back(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.store.write([memory("r1")])
        await stores.store.erase(ANN, [RecordId("r1")])

        with pytest.raises(ConflictingWrite, match="erased"):
            await stores.store.write([memory("r2"), memory("r1")])

        assert await stores.store.current(ANN, at=NOON) == []


NAIVE = datetime(2026, 3, 1, 12)  # noqa: DTZ001 - what is to be refused


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (memory("r1", ""), "text must not be empty"),
        (memory("r1", " \n"), "text must not be empty"),
        (memory("r1", "a\0b"), "NUL"),
        (memory("r\0"), "NUL"),
        (memory("r1", "half \ud800"), "surrogate"),
        (memory("r1", namespace=Namespace("a\0")), "NUL"),
        (memory("r1", namespace=Namespace("")), "namespace must not be empty"),
        (memory("r1", derived_from=("a\0",)), "NUL"),
        (memory("r1", at=NAIVE), "ingested_at must be timezone-aware"),
        (memory("r1", valid_to=NAIVE), "valid_to must be timezone-aware"),
        (msgspec.structs.replace(memory("r1"), claimed_at=NAIVE), "claimed_at"),
        (memory("r1", supersedes="r1"), "supersede itself"),
    ],
)
async def test_what_cannot_be_kept_is_refused_before_any_effect(
    open_stores: OpenStores, bad: MemoryRecord, message: str
) -> None:
    async with open_stores() as stores:
        with pytest.raises(ValueError, match=message):
            await stores.store.write([memory("good"), bad])

        assert await stores.store.current(ANN, at=NOON) == []


async def test_a_naive_time_of_asking_is_refused(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        with pytest.raises(ValueError, match="timezone-aware"):
            await stores.store.current(ANN, at=NAIVE)


async def test_an_empty_batch_is_no_write(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.store.write([])

        assert (await stores.store.changes(ANN, after=0)).version == 0


async def test_an_id_that_nobody_can_write_is_nowhere(open_stores: OpenStores) -> None:
    impossible = RecordId("r\0")
    async with open_stores() as stores:
        await stores.store.write([memory("r1")])

        with pytest.raises(RecordNotFound):
            await stores.store.get(ANN, [impossible])
        assert await stores.currency.current_among(ANN, [impossible], at=NOON) == []
        assert await stores.store.erase(ANN, [impossible]) == 0
        assert await stores.cache.get(ANN, [impossible]) == {}
