"""Journal, cache and past turns in PostgreSQL against the in-memory oracle, on random histories."""

from collections.abc import AsyncIterator
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.stores.memory import InMemoryArchive, InMemoryCache, InMemoryJournal
from assay.stores.postgres.archive import PostgresArchive
from assay.stores.postgres.cache import PostgresCache
from assay.stores.postgres.database import Postgres
from assay.stores.postgres.journal import PostgresJournal
from assay.stores.protocols import CacheRow, JournalEntry
from assay.stores.records import ArchiveTurn, Namespace, RecordId, SessionId

from .support import HOUR, NOON, turn
from .test_oracle import CACHE_STEPS, ENTRIES, TEXTS, outcome

pytestmark = pytest.mark.timeout(60)

few_examples = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
EXAMPLES = count()
"""Each example has names of its own: the database is emptied once per test only."""


@few_examples
@given(st.lists(st.tuples(st.sampled_from(["s1", "s2"]), ENTRIES), max_size=8))
async def test_the_postgres_journal_agrees_with_the_oracle(
    clean_database: str, appends: list[tuple[str, list[JournalEntry]]]
) -> None:
    oracle, example = InMemoryJournal(), next(EXAMPLES)
    named = [(SessionId(f"{example}/{session}"), entries) for session, entries in appends]
    async with Postgres(clean_database) as database:
        journal = PostgresJournal(database)

        expected = [await outcome(oracle.append(*append)) for append in named]
        got = [await outcome(journal.append(*append)) for append in named]

        assert got == expected
        known = await oracle.sessions()
        assert [s for s in await journal.sessions() if s in known] == known
        assert [await journal.read(s) for s in known] == [await oracle.read(s) for s in known]


@few_examples
@given(CACHE_STEPS)
async def test_the_postgres_cache_agrees_with_the_oracle(
    clean_database: str, steps: list[tuple[Namespace, list[CacheRow], list[RecordId]]]
) -> None:
    oracle, example = InMemoryCache(), next(EXAMPLES)
    async with Postgres(clean_database) as database:
        cache = PostgresCache(database)
        for name, rows, forgotten in steps:
            namespace = Namespace(f"{example}{name}")
            await oracle.put(namespace, rows)
            await cache.put(namespace, rows)

            assert await cache.forget(namespace, forgotten) == await oracle.forget(
                namespace, forgotten
            )
            assert await all_of(cache.rows(namespace)) == await all_of(oracle.rows(namespace))


async def all_of(rows: AsyncIterator[CacheRow]) -> list[CacheRow]:
    return [row async for row in rows]


TURNS = st.builds(
    turn,
    st.integers(0, 4),
    TEXTS,
    session=st.sampled_from(["s1", "s2"]),
    at=st.integers(-2, 2).map(lambda hours: NOON + hours * HOUR),
)


@few_examples
@given(st.lists(st.lists(TURNS, max_size=4), max_size=5), st.lists(TEXTS, max_size=3))
async def test_past_turns_in_postgres_agree_with_the_oracle(
    clean_database: str, batches: list[list[ArchiveTurn]], questions: list[str]
) -> None:
    oracle, namespace = InMemoryArchive(), Namespace(f"u{next(EXAMPLES)}")
    async with Postgres(clean_database) as database:
        archive = PostgresArchive(database)
        named = [
            [turn(t.position, t.text, namespace=namespace, session=t.session, at=t.at) for t in b]
            for b in batches
        ]

        expected = [await outcome(oracle.append(batch)) for batch in named]
        got = [await outcome(archive.append(batch)) for batch in named]

        assert got == expected
        assert await archive.all(namespace) == await oracle.all(namespace)
        for limit in (1, 99):
            found = await archive.search(namespace, questions, limit=limit)
            assert found == await oracle.search(namespace, questions, limit=limit)
        for session in (SessionId("s1"), SessionId("s2")):
            recent = await archive.recent(namespace, session, limit=3)
            assert recent == await oracle.recent(namespace, session, limit=3)
