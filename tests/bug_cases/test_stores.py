"""Situations other memory stores got wrong: scopes, duplicates, erasure, search, batches."""

import itertools
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import anyio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import ConflictingWrite, RecordNotFound, StoreError
from assay.runtime.limits import namespace_of
from assay.runtime.remember import record_id
from assay.stores.bank import open_bank
from assay.stores.embeddings import HashingEmbedder
from assay.stores.erasure import erase
from assay.stores.exact import ExactIndex
from assay.stores.faiss import FaissIndex
from assay.stores.memory import InMemoryStore
from assay.stores.protocols import Bank, CacheRow, FloatMatrix, VectorIndex
from assay.stores.records import Namespace, Origin, RecordId, TurnId
from assay.stores.sqlite import Database
from assay.stores.sqlite_records import SqliteRecords

from ..runtime.rooms import over  # noqa: TID252
from ..stores.support import (  # noqa: TID252
    ANN,
    BEN,
    NOON,
    NoonClock,
    OpenBank,
    ids,
    memory,
    turn,
)

CHAT = Origin(writer="user", channel="chat")


async def found(bank: Bank, namespace: Namespace, text: str, limit: int = 20) -> list[str]:
    """Ids the retriever proposes."""
    hits = await bank.retriever.retrieve(namespace, text, limit=limit, at=NOON)
    return [hit.record.id for hit in hits]


async def test_o01_no_path_of_retrieval_shows_another_users_record(
    open_any_bank: OpenBank,
) -> None:
    async with open_any_bank() as bank:
        ours, theirs = memory("a", namespace=ANN), memory("b", "Rex likes it", namespace=BEN)
        await bank.store.write([ours, theirs])
        await bank.archive.append([turn(0, "Rex likes it", namespace=BEN)])
        row = CacheRow("k" * 64, b"1", b"{}", (theirs.id,))
        await bank.cache.put(BEN, [row])

        assert await found(bank, ANN, "What does Rex like?") == ["a"]
        assert ids(await bank.store.current(ANN, at=NOON)) == ["a"]
        assert ids((await bank.store.changes(ANN, after=0)).records) == ["a"]
        assert await bank.archive.search(ANN, ["Rex likes"], limit=5) == [[]]
        assert await bank.archive.all(ANN) == []
        assert await bank.cache.get(ANN, [row.key]) == {}
        with pytest.raises(RecordNotFound):
            await bank.store.get(ANN, [theirs.id])


async def test_o01_each_search_alone_keeps_to_its_user(tmp_path: Path) -> None:
    embedder = HashingEmbedder()
    async with Database(tmp_path / "stores.sqlite3") as database:
        store = SqliteRecords(database)
        await store.write([memory("a", namespace=ANN), memory("b", namespace=BEN)])
        faiss = FaissIndex(store=store, embedder=embedder, folder=tmp_path / "v", bank="b")
        vector = await embedder.embed(["Rex likes"], kind="query")
        dense: list[VectorIndex] = [ExactIndex(store=store, embedder=embedder), faiss]

        for index in dense:
            assert [hit.record_id for hit in await index.search(ANN, vector, limit=9)] == ["a"]
        assert [hit.record_id for hit in await store.match(ANN, "Rex", limit=9)] == ["a"]


names = st.text("ab/%@.:é", min_size=1, max_size=3)


@settings(max_examples=40)
@given(owners=st.lists(st.tuples(names, names), min_size=1, max_size=12), place=st.integers(0, 11))
async def test_o02_two_scopes_at_once_are_the_intersection_of_both(
    owners: list[tuple[str, str]], place: int
) -> None:
    store = InMemoryStore()
    tenant, user = owners[place % len(owners)]
    await store.write(
        [memory(f"r{i}", namespace=namespace_of(*owner)) for i, owner in enumerate(owners)]
    )

    both = set(ids(await store.current(namespace_of(tenant, user), at=NOON)))

    by_tenant = {f"r{i}" for i, owner in enumerate(owners) if owner[0] == tenant}
    by_user = {f"r{i}" for i, owner in enumerate(owners) if owner[1] == user}
    assert both == by_tenant & by_user


async def test_o03_erasing_one_user_leaves_the_others(open_any_bank: OpenBank) -> None:
    async with open_any_bank() as bank:
        await bank.store.write([memory("a", namespace=ANN), memory("b", namespace=BEN)])

        await erase(bank, ANN, [RecordId("a")])

        assert await bank.store.current(ANN, at=NOON) == []
        assert ids(await bank.store.current(BEN, at=NOON)) == ["b"]


@pytest.mark.parametrize("user", ["", " \t", "a\0b", "\ud83d"])
async def test_o03_erasing_without_a_scope_is_refused_and_changes_nothing(
    user: str, open_any_bank: OpenBank
) -> None:
    async with open_any_bank() as bank:
        await bank.store.write([memory("a", namespace=ANN)])

        with pytest.raises((ValueError, StoreError), match=r"\S"):
            await over(bank).forget(user, "a")

        assert ids(await bank.store.current(ANN, at=NOON)) == ["a"]


@pytest.mark.parametrize("times", range(1, 6))
async def test_o04_the_same_text_again_is_never_lost(times: int, open_any_bank: OpenBank) -> None:
    async with open_any_bank() as bank:
        for _ in range(times):
            await over(bank).remember("ann", "The lift is out of order.", origin=CHAT)
        for i in range(times):
            source = Origin(writer="user", channel="chat", source_turn=TurnId(f"t{i}"))
            await over(bank).remember("ben", "The lift is out of order.", origin=source)

        assert len(await found(bank, ANN, "lift")) == 1
        assert len(await found(bank, BEN, "lift")) == times


@settings(max_examples=25)
@given(factors=st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=3))
async def test_o09_the_length_of_a_vector_changes_no_ranking(factors: list[float]) -> None:
    vectors = {"a": [0.1, 0.0], "b": [0.5, 0.5], "c": [0.0, 0.3], "q": [1.0, 0.0]}
    scaled = {n: [x * f for x in vectors[n]] for n, f in zip("abc", factors, strict=True)}
    store = InMemoryStore()
    await store.write([memory(name, name) for name in "abc"])
    index = ExactIndex(store=store, embedder=Scaled({**vectors, **scaled}))

    hits = await index.search(ANN, np.array([[1.0, 0.0]], np.float32), limit=3)

    assert [hit.record_id for hit in hits] == ["a", "b", "c"]
    assert all(-1 - 1e-5 <= hit.score <= 1 + 1e-5 for hit in hits)


class Scaled:
    """Vectors of any length, as an endpoint may send them, made unit rows as the contract asks."""

    name = "scaled@1"
    dimension = 2

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        self._vectors = vectors

    async def embed(self, texts: Sequence[str], *, kind: str) -> FloatMatrix:
        rows = np.array([self._vectors[text] for text in texts], np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


async def test_o10_words_are_searched_within_a_scope_as_a_plain_filter_would(
    tmp_path: Path,
) -> None:
    rng, vocabulary = np.random.default_rng(7), ["alpha", "hello", "or", "and", "not", "near"]
    records = [
        memory(
            f"r{i}",
            " ".join(rng.choice(vocabulary, size=3)),
            namespace=Namespace(f"g{int(rng.integers(3))}"),
        )
        for i in range(200)
    ]
    async with Database(tmp_path / "stores.sqlite3") as database:
        store = SqliteRecords(database)
        await store.write(records)
        for group, word in itertools.product(["g0", "g1", "g2"], vocabulary):
            hits = await store.match(Namespace(group), word, limit=200)
            plain = {r.id for r in records if r.namespace == group and word in r.text.split()}
            assert {hit.record_id for hit in hits} == plain


@settings(max_examples=30)
@given(order=st.permutations(["e1", "e2"] * 2), restart=st.integers(0, 3))
async def test_o12_an_event_delivered_again_is_one_record(order: list[str], restart: int) -> None:
    store = InMemoryStore()
    texts = {"e1": "Signed the lease.", "e2": "Paid the deposit."}
    for event in [*order, *order[:restart]]:
        known = record_id(ANN, TurnId(event), 0)
        await store.write([memory(known, texts[event])])

    assert len(await store.current(ANN, at=NOON)) == 2
    with pytest.raises(ConflictingWrite):
        await store.write([memory(record_id(ANN, TurnId("e1"), 0), "Signed nothing.")])


async def test_o12_a_restart_in_between_changes_nothing(open_any_bank: OpenBank) -> None:
    for event in ("e1", "e2", "e1", "e2"):
        async with open_any_bank() as bank:
            await bank.store.write([memory(event, f"Text of {event}.")])

    async with open_any_bank() as bank:
        assert sorted(ids(await bank.store.current(ANN, at=NOON))) == ["e1", "e2"]


async def test_o19_opening_that_is_cancelled_leaves_no_file_open(tmp_path: Path) -> None:
    async def open_and_stay() -> None:
        async with open_bank(tmp_path / "bank", embedder=HashingEmbedder(), clock=NoonClock()):
            await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(open_and_stay)
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()

    assert open_files(tmp_path) == []


def open_files(folder: Path) -> list[str]:
    """Files of a folder this process has open."""
    found: list[str] = []
    for number in os.listdir("/proc/self/fd"):  # noqa: PTH208 - entries may vanish
        try:
            target = os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115
        except OSError:
            continue
        found += [target] if target.startswith(str(folder)) else []
    return found


@pytest.mark.parametrize("size", [0, 1, 3])
async def test_o21_asking_for_more_than_there_is_gives_what_there_is(
    size: int, tmp_path: Path
) -> None:
    store, embedder = InMemoryStore(), HashingEmbedder(8)
    await store.write([memory(f"r{i}", f"text {i}") for i in range(size)])
    index = FaissIndex(store=store, embedder=embedder, folder=tmp_path, bank="b")
    query = await embedder.embed(["text"], kind="query")

    hits = await index.search(ANN, query, limit=8)
    nothing = await index.search(ANN, np.zeros((1, 8), np.float32), limit=8)

    known = {f"r{i}" for i in range(size)}
    assert {hit.record_id for hit in hits} == known
    assert {hit.record_id for hit in nothing} <= known
    assert all(abs(hit.score) <= 1 + 1e-5 for hit in (*hits, *nothing))
    with pytest.raises(ValueError, match="finite"):
        await index.search(ANN, np.full((1, 8), np.nan, np.float32), limit=8)


async def test_o22_after_any_changes_each_vector_finds_its_own_record(tmp_path: Path) -> None:
    store, embedder, rng = InMemoryStore(), HashingEmbedder(64), np.random.default_rng(7)
    index = FaissIndex(store=store, embedder=embedder, folder=tmp_path, bank="b")
    live: dict[str, str] = {}

    for step in range(500):
        if live and rng.random() < 0.4:
            name = sorted(live)[int(rng.integers(len(live)))]
            await store.erase(ANN, [RecordId(name)])
            del live[name]
        else:
            name, text = f"r{step}", f"word{step} thing{int(rng.integers(1_000_000))}"
            await store.write([memory(name, text)])
            live[name] = text
        if step % 10 == 9:
            vectors = await embedder.embed(list(live.values()), kind="passage")
            for name, vector in zip(live, vectors, strict=True):
                [hit] = await index.search(ANN, vector[None, :], limit=1)
                assert hit.record_id == name
            everything = await index.search(ANN, vectors[:1], limit=1000)
            assert sorted(hit.record_id for hit in everything) == sorted(live)


NASTY = [
    "kind') OR 1=1 --",
    "$or",
    "a.b[0]",
    "note' OR 'a'='a",
    '"; DROP TABLE records; --',
    "a* NEAR(b)",
    "x" * 500,
    "%",
    "ann/",
]


@pytest.mark.parametrize("name", NASTY)
async def test_o23_a_name_is_never_part_of_a_statement(name: str, open_any_bank: OpenBank) -> None:
    async with open_any_bank() as bank:
        await bank.store.write([memory("a", namespace=ANN)])
        await bank.store.write([memory(name, f"about {name}", namespace=Namespace(name))])

        assert await found(bank, Namespace(name), "Rex") == [name]
        assert await found(bank, ANN, name) == ["a"]
        assert await bank.archive.search(ANN, [name], limit=5) == [[]]
        assert ids(await bank.store.get(Namespace(name), [RecordId(name)])) == [name]


async def test_o23_a_name_that_cannot_be_kept_is_refused(open_any_bank: OpenBank) -> None:
    async with open_any_bank() as bank:
        for bad in ("", "a\0b", "\ud83d"):
            with pytest.raises(ValueError, match=r"\S"):
                await found(bank, Namespace(bad), "Rex")


@pytest.mark.parametrize("order", list(itertools.permutations(["red", "blue"])))
async def test_o24_the_same_text_of_two_owners_is_two_records(
    order: tuple[str, str], open_any_bank: OpenBank
) -> None:
    async with open_any_bank() as bank:
        for owner in ("red", "blue"):
            await bank.store.write([memory("g", "Gate code 41", namespace=Namespace(owner))])
        first, second = (Namespace(owner) for owner in order)

        await erase(bank, first, [RecordId("g")])

        assert await found(bank, first, "Gate code") == []
        assert await found(bank, second, "Gate code") == ["g"]

        await erase(bank, second, [RecordId("g")])

        assert await found(bank, second, "Gate code") == []


@pytest.mark.parametrize("place", range(4))
async def test_o25_a_batch_that_cannot_be_stored_leaves_what_was_there(
    place: int, open_any_bank: OpenBank
) -> None:
    async with open_any_bank() as bank:
        await bank.store.write([memory("m1"), memory("m2")])
        batch = [memory(f"n{i}") for i in range(4)]
        batch[place] = memory("bad", "half \ud83d a pair")

        with pytest.raises(ValueError, match="surrogate"):
            await bank.store.write(batch)

        assert ids(await bank.store.current(ANN, at=NOON)) == ["m1", "m2"]


@pytest.mark.parametrize("place", range(4))
async def test_o25_a_batch_that_fails_on_the_way_leaves_what_was_there(
    place: int, tmp_path: Path
) -> None:
    path = tmp_path / "stores.sqlite3"
    async with Database(path) as database:
        store = SqliteRecords(database)
        await store.write([memory("m1"), memory("m2")])
        _refuse_inserts_of(path, f"n{place}")

        with pytest.raises(StoreError):
            await store.write([memory(f"n{i}") for i in range(4)])

        assert ids(await store.current(ANN, at=NOON)) == ["m1", "m2"]


def _refuse_inserts_of(path: Path, record: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(
            f"CREATE TRIGGER refuse BEFORE INSERT ON records WHEN NEW.id = '{record}' "
            "BEGIN SELECT RAISE(ABORT, 'refused'); END"
        )
    connection.close()


async def test_o08_half_a_surrogate_pair_is_refused_at_the_edge(open_any_bank: OpenBank) -> None:
    async with open_any_bank() as bank:
        with pytest.raises(ValueError, match="surrogate"):
            await over(bank).remember("ann", "caf\ud83d open", origin=CHAT)

        assert await bank.store.current(ANN, at=NOON) == []
