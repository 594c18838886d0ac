"""SQLite against the in-memory oracle, on random histories."""

import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import AssayError
from assay.stores.memory import InMemoryCache, InMemoryJournal, InMemoryStore
from assay.stores.protocols import CacheRow, JournalEntry
from assay.stores.records import MemoryRecord, Namespace, RecordId, SessionId
from assay.stores.sqlite import Database
from assay.stores.sqlite_cache import SqliteCache
from assay.stores.sqlite_journal import SqliteJournal
from assay.stores.sqlite_records import SqliteRecords

from .support import HOUR, NOON, memory

Step: TypeAlias = Callable[[InMemoryStore | SqliteRecords], Awaitable[object]]

NAMESPACES = st.sampled_from([Namespace("ann"), Namespace("an"), Namespace("Ann'")])
IDS = st.sampled_from(["r1", "r2", "r3", "r4", "r5"])
TEXTS = st.lists(
    st.sampled_from(["rex", "likes", "carrots", "Caf\u00e9", "and", "moved", "\u5bff\u53f8"]),
    min_size=1,
    max_size=6,
).map(" ".join)
TIMES = st.integers(-2, 2).map(lambda hours: NOON + hours * HOUR)

RECORDS = st.builds(
    memory,
    IDS,
    TEXTS,
    namespace=NAMESPACES,
    at=TIMES,
    valid_from=st.none() | TIMES,
    valid_to=st.none() | TIMES,
    supersedes=st.none() | st.just("r0") | st.just("r9"),
)


def writing(records: list[MemoryRecord]) -> Step:
    return lambda store: store.write(records)


def erasing(namespace: Namespace, record_ids: list[str]) -> Step:
    return lambda store: store.erase(namespace, [RecordId(i) for i in record_ids])


def superseding(namespace: Namespace, old: str, time_hours: int) -> Step:
    new = memory(
        f"{old}-new{time_hours}",
        "moved",
        namespace=namespace,
        at=NOON + time_hours * HOUR,
        supersedes=old,
    )
    return lambda store: store.write([new])


STEPS = st.lists(
    st.one_of(
        st.builds(writing, st.lists(RECORDS, max_size=3)),
        st.builds(erasing, NAMESPACES, st.lists(IDS, max_size=3)),
        st.builds(superseding, NAMESPACES, IDS, st.integers(-1, 1)),
    ),
    max_size=12,
)


async def outcome(step: Awaitable[object]) -> object:
    try:
        return await step
    except AssayError as error:
        return type(error), str(error)


async def seen(store: InMemoryStore | SqliteRecords, namespace: Namespace) -> list[object]:
    """Everything the contract lets one see of a namespace."""
    hits = await store.match(namespace, "rex carrots CAFE moved \u5bff", limit=99)
    return [
        await store.changes(namespace, after=0),
        await store.changes(namespace, after=3),
        *[await store.current(namespace, at=NOON + h * HOUR) for h in (-2, -1, 0, 1, 2)],
        [(hit.record_id, pytest.approx(hit.score, rel=1e-6, abs=1e-9)) for hit in hits],
    ]


@settings(max_examples=30, deadline=None)
@given(STEPS)
async def test_sqlite_records_agree_with_the_oracle(steps: list[Step]) -> None:
    oracle = InMemoryStore()
    with tempfile.TemporaryDirectory() as folder:
        async with Database(Path(folder) / "bank.sqlite3") as database:
            store = SqliteRecords(database)

            expected = [await outcome(step(oracle)) for step in steps]
            got = [await outcome(step(store)) for step in steps]

            assert got == expected
            for namespace in ("ann", "an", "Ann'"):
                assert await seen(store, Namespace(namespace)) == await seen(
                    oracle, Namespace(namespace)
                )


ENTRIES = st.lists(
    st.builds(JournalEntry, st.integers(0, 4), st.sampled_from([b"x", b"y"])), max_size=4
)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["s1", "s2"]), ENTRIES), max_size=8))
async def test_the_sqlite_journal_agrees_with_the_oracle(
    appends: list[tuple[str, list[JournalEntry]]],
) -> None:
    oracle = InMemoryJournal()
    with tempfile.TemporaryDirectory() as folder:
        async with Database(Path(folder) / "bank.sqlite3") as database:
            journal = SqliteJournal(database)

            expected = [await outcome(oracle.append(SessionId(s), e)) for s, e in appends]
            got = [await outcome(journal.append(SessionId(s), e)) for s, e in appends]

            assert got == expected
            assert await journal.sessions() == await oracle.sessions()
            assert [await journal.read(SessionId(s)) for s in ("s1", "s2")] == [
                await oracle.read(SessionId(s)) for s in ("s1", "s2")
            ]


ROWS = st.builds(
    CacheRow,
    st.sampled_from(["k1", "k2", "k3"]),
    st.binary(max_size=3),
    st.just(b"question"),
    st.lists(IDS.map(RecordId), max_size=3).map(tuple),
)
CACHE_STEPS = st.lists(
    st.tuples(NAMESPACES, st.lists(ROWS, max_size=3), st.lists(IDS.map(RecordId), max_size=1)),
    max_size=8,
)


@settings(max_examples=30, deadline=None)
@given(CACHE_STEPS)
async def test_the_sqlite_cache_agrees_with_the_oracle(
    steps: list[tuple[Namespace, list[CacheRow], list[RecordId]]],
) -> None:
    oracle = InMemoryCache()
    with tempfile.TemporaryDirectory() as folder:
        async with Database(Path(folder) / "cache.sqlite3") as database:
            cache = SqliteCache(database)
            for namespace, rows, forgotten in steps:
                await oracle.put(namespace, rows)
                await cache.put(namespace, rows)

                assert await cache.forget(namespace, forgotten) == await oracle.forget(
                    namespace, forgotten
                )
                assert [r async for r in cache.rows(namespace)] == [
                    r async for r in oracle.rows(namespace)
                ]
