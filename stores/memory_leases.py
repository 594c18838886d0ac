"""Leases in memory: the oracle of the contract tests, and what a test of sessions takes."""

from collections.abc import Sequence
from typing import NamedTuple

from assay.errors import LeaseLost
from assay.stores.checks import checked_text
from assay.stores.protocols import Clock, Journal, JournalEntry, Lease
from assay.stores.records import SessionId


class InMemoryLeases:
    """``Leases`` in a dictionary, timed by the monotonic clock; as long as the process lives."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[SessionId, _Held] = {}

    async def acquire(self, session: SessionId, *, owner: str, seconds: float) -> Lease | None:
        checked_holding(session, owner, seconds)
        held = self._held.get(session)
        if held is not None and held.lease.owner != owner and self._clock.monotonic() < held.until:
            return None
        lease = _next(session, owner, None if held is None else held.lease)
        self._hold(lease, seconds)
        return lease

    async def renew(self, lease: Lease, *, seconds: float) -> None:
        checked_seconds(seconds)
        self.check(lease)
        self._hold(lease, seconds)

    async def release(self, lease: Lease) -> None:
        held = self._held.get(lease.session)
        if held is not None and held.lease == lease:
            self._hold(lease, 0.0)

    def fenced(self, journal: Journal, lease: Lease) -> Journal:
        return _FencedJournal(journal, self, lease)

    def check(self, lease: Lease) -> None:
        """Look whether the session changed hands since.

        Raises:
            LeaseLost: If it did.
        """
        held = self._held.get(lease.session)
        if held is None or held.lease != lease:
            raise lease_lost(lease)

    def _hold(self, lease: Lease, seconds: float) -> None:
        self._held[lease.session] = _Held(lease, self._clock.monotonic() + seconds)


def lease_lost(lease: Lease) -> LeaseLost:
    """What to raise when a session changed hands."""
    return LeaseLost(
        f"session {lease.session!r} was taken over by another process: {lease.owner!r} held "
        f"revision {lease.revision} and was not heard of in time; what it did since is not kept"
    )


def checked_holding(session: SessionId, owner: str, seconds: float) -> None:
    """Refuse what no lease can say.

    Raises:
        ValueError: If the session or the owner has no name, or the time is not above 0.
    """
    checked_text("session", session)
    checked_text("owner", owner)
    checked_seconds(seconds)


def checked_seconds(seconds: float) -> None:
    """Refuse a time that is over at once.

    Raises:
        ValueError: If it is not above 0.
    """
    if not seconds > 0:
        raise ValueError(f"seconds must be above 0, got {seconds!r}")


class _Held(NamedTuple):
    lease: Lease
    until: float


def _next(session: SessionId, owner: str, last: Lease | None) -> Lease:
    if last is not None and last.owner == owner:
        return last
    return Lease(session, owner, 1 if last is None else last.revision + 1)


class _FencedJournal:
    """A journal behind a lease; check and append are one step, as nothing in them awaits."""

    def __init__(self, journal: Journal, leases: InMemoryLeases, lease: Lease) -> None:
        self._journal = journal
        self._leases = leases
        self._lease = lease

    async def append(self, session: SessionId, entries: Sequence[JournalEntry]) -> None:
        self._leases.check(self._lease)
        await self._journal.append(session, entries)

    async def read(self, session: SessionId, *, after: int = -1) -> list[JournalEntry]:
        return await self._journal.read(session, after=after)

    async def sessions(self) -> list[SessionId]:
        return await self._journal.sessions()
