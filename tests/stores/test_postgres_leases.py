"""Leases between processes: each has a pool of its own, as it would have on its own host."""

import random

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.errors import LeaseLost
from assay.stores.postgres.database import Postgres, in_transaction
from assay.stores.postgres.journal import append_entries
from assay.stores.postgres.mapping import FOREIGN
from assay.stores.protocols import JournalEntry, Lease
from assay.stores.records import SessionId

from .leasing import A_MINUTE, LeasePlace, memory_leases, postgres_leases
from .pg_waiting import somebody_waits

S1 = SessionId("ann/s1")
FIRST, SECOND = JournalEntry(0, b"first"), JournalEntry(1, b"second")


async def test_an_append_under_way_keeps_others_from_taking_over(clean_database: str) -> None:
    taken: list[Lease] = []
    async with (
        Postgres(clean_database) as database,
        postgres_leases(clean_database) as one,
        postgres_leases(clean_database) as two,
    ):
        lease = await one.take(S1, "one")
        await one.expire()

        async def take_over() -> None:
            taken.append(await two.take(S1, "two"))

        async with (
            anyio.create_task_group() as group,
            database.apart() as connection,
            in_transaction(connection),
        ):
            await append_entries(connection, S1, [FIRST], lease)
            group.start_soon(take_over)
            await somebody_waits(database)
            assert taken == []
            await append_entries(connection, S1, [SECOND], lease)

        assert taken == [(S1, "two", 2)]
        assert await two.journal.read(S1) == [FIRST, SECOND]


async def test_an_append_that_waits_for_a_takeover_is_refused(clean_database: str) -> None:
    async with Postgres(clean_database) as database, postgres_leases(clean_database) as one:
        lease = await one.take(S1, "one")
        await one.expire()
        refused = anyio.Event()

        async def append_late() -> None:
            with pytest.raises(LeaseLost, match="'one' held revision 1"):
                await one.leases.fenced(one.journal, lease).append(S1, [FIRST])
            refused.set()

        async with (
            anyio.create_task_group() as group,
            database.apart() as connection,
            in_transaction(connection),
        ):
            await connection.execute(
                "UPDATE leases SET owner = 'two', revision = 2 WHERE session = $1", S1
            )
            group.start_soon(append_late)
            await somebody_waits(database)
            assert not refused.is_set()

        assert refused.is_set()
        assert await one.journal.sessions() == []


async def test_an_owner_that_stops_in_the_middle_of_an_append_loses_it(clean_database: str) -> None:
    async with Postgres(clean_database) as database, postgres_leases(clean_database) as place:
        lease = await place.take(S1, "one")
        await place.expire()
        async with database.apart() as suspended:
            # As every connection has it, but sooner: the server ends what does not go on.
            await suspended.execute("SET idle_in_transaction_session_timeout = '100ms'")
            transaction = suspended.transaction()
            await transaction.start()
            await append_entries(suspended, S1, [FIRST], lease)
            with anyio.fail_after(10):
                taken = await place.take(S1, "two")

            with pytest.raises(FOREIGN):  # whatever the driver notices first
                await transaction.commit()

        await place.leases.fenced(place.journal, taken).append(S1, [JournalEntry(0, b"two")])
        assert await place.journal.read(S1) == [JournalEntry(0, b"two")]


async def test_every_connection_ends_what_does_not_go_on(clean_database: str) -> None:
    async with Postgres(clean_database) as database:
        [[pooled]] = await database.fetch("SHOW idle_in_transaction_session_timeout")
        async with database.apart() as connection:
            apart = await connection.fetchval("SHOW idle_in_transaction_session_timeout")

    assert (pooled, apart) == ("10s", "10s")


async def test_a_lease_expires_by_the_server_s_clock(clean_database: str) -> None:
    async with postgres_leases(clean_database) as one, postgres_leases(clean_database) as two:
        await one.leases.acquire(S1, owner="one", seconds=0.05)
        with anyio.fail_after(5):
            while (taken := await two.leases.acquire(S1, owner="two", seconds=A_MINUTE)) is None:
                pass

        assert taken == (S1, "two", 2)


class _Rival:
    """A process that takes the session whenever it can, and appends the revision it holds."""

    def __init__(self, place: LeasePlace, name: str, rng: random.Random) -> None:
        self.kept: list[bytes] = []
        self._place = place
        self._name = name
        self._rng = rng

    async def run(self, turns: int) -> None:
        while len(self.kept) < turns:
            lease = await self._place.leases.acquire(S1, owner=self._name, seconds=0.01)
            if lease is not None:
                await self._append(lease)

    async def _append(self, lease: Lease) -> None:
        journal = self._place.leases.fenced(self._place.journal, lease)
        entries = await journal.read(S1)
        # Some are slower than their lease: others take over meanwhile.
        await anyio.sleep(self._rng.choice([0.0, 0.0, 0.02]))
        payload = f"{lease.revision} {self._name} {len(self.kept)}".encode()
        try:
            await journal.append(S1, [JournalEntry(len(entries), payload)])
        except LeaseLost:
            return
        self.kept.append(payload)


async def test_rivals_never_write_behind_each_other(clean_database: str) -> None:
    async with (
        postgres_leases(clean_database) as one,
        postgres_leases(clean_database) as two,
        postgres_leases(clean_database) as three,
    ):
        rivals = [
            _Rival(place, f"rival{n}", random.Random(n))  # noqa: S311 - how slow, not a secret
            for n, place in enumerate([one, two, three])
        ]
        async with anyio.create_task_group() as group:
            for rival in rivals:
                group.start_soon(rival.run, 15)

        payloads = [entry.payload for entry in await one.journal.read(S1)]
        revisions = [int(payload.split()[0]) for payload in payloads]
        assert revisions == sorted(revisions)
        assert len(set(revisions)) > 1
        assert sorted(payloads) == sorted(payload for rival in rivals for payload in rival.kept)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["acquire", "acquire", "renew", "release", "expire"]),
        st.sampled_from(["ann/s1", "ann/s2"]),
        st.sampled_from(["one", "two", "three"]),
    ),
    max_size=16,
)


class _History:
    """Steps on one implementation, and what came of each."""

    def __init__(self, place: LeasePlace) -> None:
        self._place = place
        self._leases: dict[tuple[str, str], Lease] = {}

    async def step(self, name: str, session: str, owner: str) -> object:
        lease = self._leases.get((session, owner))
        match name:
            case "expire":
                await self._place.expire()
            case "acquire":
                return await self._acquire(SessionId(session), owner)
            case "renew" if lease is not None:
                return await self._renew(lease)
            case "release" if lease is not None:
                await self._place.leases.release(lease)
            case _:
                pass
        return None

    async def _acquire(self, session: SessionId, owner: str) -> Lease | None:
        lease = await self._place.leases.acquire(session, owner=owner, seconds=A_MINUTE)
        if lease is not None:
            self._leases[session, owner] = lease
        return lease

    async def _renew(self, lease: Lease) -> str:
        try:
            await self._place.leases.renew(lease, seconds=A_MINUTE)
        except LeaseLost as error:
            return str(error)
        return "renewed"


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
async def test_leases_in_postgres_agree_with_the_oracle(
    clean_database: str, steps: list[tuple[str, str, str]]
) -> None:
    async with memory_leases() as memory, postgres_leases(clean_database) as postgres:
        async with Postgres(clean_database) as database:
            await database.fetch("DELETE FROM leases")
        oracle, tested = _History(memory), _History(postgres)

        expected = [await oracle.step(*step) for step in steps]

        assert [await tested.step(*step) for step in steps] == expected
