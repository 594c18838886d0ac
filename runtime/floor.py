"""Who has the floor: the right to take turns of a session, where several processes share a bank."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import anyio

from assay.errors import LeaseLost, StoreError
from assay.runtime.task_groups import tasks_beside
from assay.stores.protocols import Journal, JournalEntry, Lease, Leases
from assay.stores.records import SessionId

_FIRST_WAIT = 0.005
"""Seconds until the second look whether the floor is free."""

_CLEAN_UP_SECONDS = 5.0


class Held:
    """The floor while it is had: a journal that may be written as long as it is.

    Attributes:
        revision: Changes whenever another process had the floor in between.
    """

    def __init__(self, journal: Journal, revision: int) -> None:
        self.revision = revision
        self._journal = journal
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """Whether nothing may be written any more."""
        return self._is_over

    def let_go(self) -> None:
        """Write nothing more; the turn under way is finished by whoever has the floor next."""
        self._is_over = True

    async def append(self, session: SessionId, entries: Sequence[JournalEntry]) -> None:
        """As the journal does.

        Raises:
            LeaseLost: If the floor was lost or let go.
        """
        if self._is_over:
            raise LeaseLost(f"session {session!r} was let go; another process goes on with it")
        await self._journal.append(session, entries)

    async def read(self, session: SessionId, *, after: int = -1) -> list[JournalEntry]:
        """As the journal does."""
        return await self._journal.read(session, after=after)

    async def sessions(self) -> list[SessionId]:
        """As the journal does."""
        return await self._journal.sessions()


class Floor:
    """The floor of one session; without leases this process always has it.

    Args:
        journal: Of the bank.
        leases: Who has which session; ``None``: no other process shares the bank.
        session: The session's name in the journal.
        owner: Names this process.
        seconds: How long the floor stays with a process that is not heard of; renewed at a third.
        longest_wait: Seconds between two looks whether it is free, once it was not for a while.
    """

    def __init__(  # noqa: PLR0913  # what a lease says
        self,
        journal: Journal,
        leases: Leases | None,
        session: SessionId,
        *,
        owner: str,
        seconds: float,
        longest_wait: float = 0.25,
    ) -> None:
        self._longest_wait = longest_wait
        self._journal = journal
        self._leases = leases
        self._session = session
        self._owner = owner
        self._seconds = seconds

    @property
    def is_shared(self) -> bool:
        """Whether other processes may take turns of the session."""
        return self._leases is not None

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[Held]:
        """Have the floor for the length of the block; waits while another process has it.

        When it is lost, what runs in the block is cancelled, and nothing of it is written.

        Raises:
            LeaseLost: If it was lost before the block had ended.
            StoreError: If the leases cannot be read.
        """
        if self._leases is None:
            yield Held(self._journal, 0)
            return
        lease = await self._acquired(self._leases)
        held = Held(self._leases.fenced(self._journal, lease), lease.revision)
        is_done = False
        try:
            async with tasks_beside() as group:
                group.start_soon(self._keep, self._leases, lease, held, group.cancel_scope)
                try:
                    yield held
                    is_done = True
                finally:
                    group.cancel_scope.cancel()
        finally:
            await _released(self._leases, lease)
        if not is_done:
            raise LeaseLost(
                f"session {self._session!r} was not heard of for {self._seconds:g} s "
                "(turn.lease_seconds) and is lost; its turn is finished by the next that has it"
            )

    async def _acquired(self, leases: Leases) -> Lease:
        lease, wait = None, _FIRST_WAIT
        while True:
            with anyio.CancelScope(shield=True):  # cut off in the middle it might be had by nobody
                lease = await leases.acquire(
                    self._session, owner=self._owner, seconds=self._seconds
                )
            if lease is not None:
                return lease
            await anyio.sleep(wait)
            wait = min(2 * wait, self._longest_wait)

    async def _keep(
        self, leases: Leases, lease: Lease, held: Held, turn: anyio.CancelScope
    ) -> None:
        """Renew until cancelled; when it is lost, stop the turn before anything else is written."""
        until = anyio.current_time() + self._seconds
        while anyio.current_time() < until:
            await anyio.sleep(min(self._seconds / 3, until - anyio.current_time()))
            asked = anyio.current_time()
            try:
                with anyio.fail_after(until - asked):
                    await leases.renew(lease, seconds=self._seconds)
                until = asked + self._seconds
            except LeaseLost:
                break
            except (StoreError, TimeoutError):
                continue  # it may answer again before the time is over
        held.let_go()
        turn.cancel()


async def _released(leases: Leases, lease: Lease) -> None:
    """Give it back; where that fails it runs out by itself."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(_CLEAN_UP_SECONDS):
        try:
            await leases.release(lease)
        except StoreError:
            return
