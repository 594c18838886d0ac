"""What every ``Cache`` promises."""

from assay.stores.protocols import CacheRow
from assay.stores.records import RecordId

from .support import ANN, BEN, OpenStores


def row(key: str, value: bytes = b"answer", record_ids: tuple[str, ...] = ()) -> CacheRow:
    return CacheRow(key, value, b"question " + key.encode(), tuple(map(RecordId, record_ids)))


async def test_values_come_back_by_key(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.cache.put(ANN, [row("k1", b"one"), row("k2", b"")])

        found = await stores.cache.get(ANN, ["k2", "k1", "k3", "k1"])

    assert found == {"k1": b"one", "k2": b""}


async def test_no_row_crosses_a_namespace(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.cache.put(ANN, [row("k1")])

        assert await stores.cache.get(BEN, ["k1"]) == {}
        assert [r async for r in stores.cache.rows(BEN)] == []
        assert await stores.cache.forget(BEN, [RecordId("r1")]) == 0


async def test_the_first_value_of_a_key_stands(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.cache.put(ANN, [row("k1", b"first"), row("k1", b"second")])
        await stores.cache.put(ANN, [row("k1", b"third"), row("k2")])

        assert await stores.cache.get(ANN, ["k1"]) == {"k1": b"first"}


async def test_rows_come_in_order_of_writing(open_stores: OpenStores) -> None:
    written = [row(f"k{n}", record_ids=("b", "a")) for n in range(600)]
    async with open_stores() as stores:
        await stores.cache.put(ANN, written)

        assert [r async for r in stores.cache.rows(ANN)] == written


async def test_forget_drops_every_row_that_lists_a_record(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.cache.put(
            ANN,
            [
                row("k1", record_ids=("r1", "r2")),
                row("k2", record_ids=("r2", "r3", "r3")),
                row("k3", record_ids=("r3",)),
                row("k4"),
            ],
        )

        assert await stores.cache.forget(ANN, [RecordId("r1"), RecordId("r2")]) == 2
        assert [r.key async for r in stores.cache.rows(ANN)] == ["k3", "k4"]
        assert await stores.cache.forget(ANN, [RecordId("r1")]) == 0


async def test_a_forgotten_key_may_be_learned_again(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.cache.put(ANN, [row("k1", b"old", ("r1",))])
        await stores.cache.forget(ANN, [RecordId("r1")])
        await stores.cache.put(ANN, [row("k1", b"new")])

        assert await stores.cache.get(ANN, ["k1"]) == {"k1": b"new"}
        assert await stores.cache.forget(ANN, [RecordId("r1")]) == 0
