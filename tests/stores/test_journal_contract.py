"""What every ``Journal`` promises."""

import pytest

from assay.errors import ConflictingWrite
from assay.stores.protocols import JournalEntry
from assay.stores.records import SessionId

from .support import OpenStores

S1, S2 = SessionId("s1"), SessionId("s2")


def entries(*numbers: int) -> list[JournalEntry]:
    return [JournalEntry(n, f"event {n}".encode()) for n in numbers]


async def test_entries_come_back_in_order(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.journal.append(S1, entries(0, 1))
        await stores.journal.append(S1, entries(2))

        assert await stores.journal.read(S1) == entries(0, 1, 2)
        assert await stores.journal.read(S1, after=1) == entries(2)
        assert await stores.journal.read(S2) == []


async def test_sessions_are_apart_and_in_order_of_first_write(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.journal.append(S2, entries(0))
        await stores.journal.append(S1, entries(0))
        await stores.journal.append(S2, entries(1))

        assert await stores.journal.sessions() == [S2, S1]
        assert await stores.journal.read(S1) == entries(0)


async def test_the_same_entry_again_is_harmless(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.journal.append(S1, entries(0, 1))
        await stores.journal.append(S1, entries(0, 1, 2))

        assert await stores.journal.read(S1) == entries(0, 1, 2)


@pytest.mark.parametrize(
    "bad",
    [
        [JournalEntry(1, b"other")],
        entries(2, 3, 5),
        entries(4),
        entries(-1),
        [*entries(2), JournalEntry(2, b"other")],
    ],
)
async def test_other_content_or_a_gap_is_refused_whole(
    open_stores: OpenStores, bad: list[JournalEntry]
) -> None:
    async with open_stores() as stores:
        await stores.journal.append(S1, entries(0, 1))

        with pytest.raises(ConflictingWrite, match="s1"):
            await stores.journal.append(S1, bad)

        assert await stores.journal.read(S1) == entries(0, 1)


async def test_a_refused_first_entry_leaves_no_session(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        with pytest.raises(ConflictingWrite, match="expects entry 0"):
            await stores.journal.append(S1, entries(1))

        assert await stores.journal.sessions() == []
