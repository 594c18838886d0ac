"""What every ``Leases`` promises."""

import pytest

from assay.errors import LeaseLost
from assay.stores.protocols import JournalEntry
from assay.stores.records import SessionId

from .leasing import A_MINUTE, OpenLeases, open_leases

__all__ = ["open_leases"]

S1, S2 = SessionId("ann/s1"), SessionId("ann/s2")


async def test_a_free_session_is_given_to_who_asks(open_leases: OpenLeases) -> None:
    async with open_leases() as place:
        lease = await place.leases.acquire(S1, owner="one", seconds=A_MINUTE)

        assert lease == (S1, "one", 1)


async def test_a_held_session_is_given_to_nobody_else(open_leases: OpenLeases) -> None:
    async with open_leases() as place:
        await place.leases.acquire(S1, owner="one", seconds=A_MINUTE)

        assert await place.leases.acquire(S1, owner="two", seconds=A_MINUTE) is None


async def test_who_holds_it_gets_it_again_with_the_same_revision(open_leases: OpenLeases) -> None:
    async with open_leases() as place:
        first = await place.leases.acquire(S1, owner="one", seconds=A_MINUTE)

        assert await place.leases.acquire(S1, owner="one", seconds=A_MINUTE) == first


async def test_sessions_are_held_apart(open_leases: OpenLeases) -> None:
    async with open_leases() as place:
        await place.leases.acquire(S1, owner="one", seconds=A_MINUTE)

        assert await place.leases.acquire(S2, owner="two", seconds=A_MINUTE) == (S2, "two", 1)


async def test_each_change_of_hands_raises_the_revision(open_leases: OpenLeases) -> None:
    async with open_leases() as place:
        await place.leases.acquire(S1, owner="one", seconds=A_MINUTE)
        await place.expire()
        second = await place.leases.acquire(S1, owner="two", seconds=A_MINUTE)
        await place.expire()
        third = await place.leases.acquire(S1, owner="one", seconds=A_MINUTE)

        assert second == (S1, "two", 2)
        assert third == (S1, "one", 3)


async def test_a_released_session_is_free_at_once(open_leases: OpenLeases) -> None:
    async with open_leases() as place:
        lease = await place.take(S1, "one")
        await place.leases.release(lease)

        assert await place.leases.acquire(S1, owner="two", seconds=A_MINUTE) == (S1, "two", 2)


async def test_an_expired_lease_that_nobody_took_may_be_renewed(open_leases: OpenLeases) -> None:
    async with open_leases() as place:
        lease = await place.take(S1, "one")
        await place.expire()
        await place.leases.renew(lease, seconds=A_MINUTE)

        assert await place.leases.acquire(S1, owner="two", seconds=A_MINUTE) is None


async def test_a_lease_that_was_taken_over_is_lost(open_leases: OpenLeases) -> None:
    async with open_leases() as place:
        lost = await place.take(S1, "one")
        await place.expire()
        taken = await place.take(S1, "two")

        with pytest.raises(LeaseLost, match="'one' held revision 1"):
            await place.leases.renew(lost, seconds=A_MINUTE)

        await place.leases.release(lost)
        assert await place.leases.acquire(S1, owner="three", seconds=A_MINUTE) is None
        assert await place.leases.acquire(S1, owner="two", seconds=A_MINUTE) == taken


async def test_who_lost_a_lease_appends_nothing(open_leases: OpenLeases) -> None:
    first, late, new = (
        JournalEntry(0, b"first"),
        JournalEntry(1, b"late"),
        JournalEntry(1, b"new"),
    )
    async with open_leases() as place:
        old = place.leases.fenced(place.journal, await place.take(S1, "one"))
        await old.append(S1, [first])
        await place.expire()
        current = place.leases.fenced(place.journal, await place.take(S1, "two"))

        with pytest.raises(LeaseLost, match="another process"):
            await old.append(S1, [late])

        await current.append(S1, [new])
        assert await old.read(S1) == [first, new]
        assert await old.sessions() == [S1]


async def test_an_expired_lease_still_appends_until_it_is_taken(open_leases: OpenLeases) -> None:
    async with open_leases() as place:
        journal = place.leases.fenced(place.journal, await place.take(S1, "one"))
        await place.expire()
        await journal.append(S1, [JournalEntry(0, b"first")])

        assert await place.journal.read(S1) == [JournalEntry(0, b"first")]


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
async def test_a_lease_of_no_time_is_refused(open_leases: OpenLeases, seconds: float) -> None:
    async with open_leases() as place:
        with pytest.raises(ValueError, match="seconds must be above 0"):
            await place.leases.acquire(S1, owner="one", seconds=seconds)


async def test_an_owner_without_a_name_is_refused(open_leases: OpenLeases) -> None:
    async with open_leases() as place:
        with pytest.raises(ValueError, match="owner must not be empty"):
            await place.leases.acquire(S1, owner=" ", seconds=A_MINUTE)
