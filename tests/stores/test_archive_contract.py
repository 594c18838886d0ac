"""What every ``Archive`` promises."""

import pytest

from assay.errors import ConflictingWrite
from assay.stores.records import ArchiveTurn, SessionId

from .support import ANN, BEN, HOUR, NOON, OpenStores, turn

S1 = SessionId("s1")


async def test_appended_turns_come_back_equal(open_stores: OpenStores) -> None:
    turns = [turn(0, "first"), turn(1, "second", speaker="assistant")]
    async with open_stores() as stores:
        await stores.archive.append(turns)

        assert await stores.archive.all(ANN) == turns


async def test_recent_gives_the_last_of_one_session_oldest_first(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.archive.append([turn(n) for n in (3, 1, 0, 2)])
        await stores.archive.append([turn(9, session="s2"), turn(8, namespace=BEN)])

        recent = await stores.archive.recent(ANN, S1, limit=2)
        everything = await stores.archive.recent(ANN, S1, limit=99)

        assert [t.position for t in recent] == [2, 3]
        assert [t.position for t in everything] == [0, 1, 2, 3]
        assert await stores.archive.recent(ANN, S1, limit=0) == []


async def test_all_is_in_order_of_time_then_position(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.archive.append(
            [turn(1, at=NOON), turn(0, at=NOON), turn(5, session="s0", at=NOON - HOUR)]
        )

        assert [t.position for t in await stores.archive.all(ANN)] == [5, 0, 1]


async def test_appending_again_is_harmless(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.archive.append([turn(0)])
        await stores.archive.append([turn(0), turn(1)])

        assert await stores.archive.all(ANN) == [turn(0), turn(1)]


async def test_a_turn_is_never_edited(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.archive.append([turn(0, "as it was said")])

        with pytest.raises(ConflictingWrite, match="'s1-0'"):
            await stores.archive.append([turn(1), turn(0, "as it should have been")])

        assert await stores.archive.all(ANN) == [turn(0, "as it was said")]


async def test_search_finds_by_words_and_by_speaker(open_stores: OpenStores) -> None:
    async with open_stores() as stores:
        await stores.archive.append(
            [
                turn(0, "my dog barked all night"),
                turn(1, "the dog is called Rex"),
                turn(2, "nothing to see"),
                turn(3, "I moved", speaker="Caroline"),
                turn(4, "dog", namespace=BEN),
            ]
        )

        [rex, caroline, nothing] = await stores.archive.search(
            ANN, ["Is Rex a dog?", "Where did Caroline go?", "?"], limit=9
        )

    assert [t.position for t in rex] == [1, 0]
    assert [t.position for t in caroline] == [3]
    assert nothing == []


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (turn(0, ""), "text must not be empty"),
        (turn(0, "a\0"), "NUL"),
        (turn(-1), "position must be at least 0"),
        (turn(0, at=NOON.replace(tzinfo=None)), "timezone-aware"),
    ],
)
async def test_what_cannot_be_kept_is_refused(
    open_stores: OpenStores, bad: ArchiveTurn, message: str
) -> None:
    async with open_stores() as stores:
        with pytest.raises(ValueError, match=message):
            await stores.archive.append([turn(7), bad])

        assert await stores.archive.all(ANN) == []
