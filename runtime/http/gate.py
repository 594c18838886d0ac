"""Who goes next: so many turns at once, the tenants in turn, and a clear no when too many wait."""

from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from assay.runtime.http.errors import ApiError

RETRY_SECONDS = 1
"""Least told to a client that has to come again."""


class Gate:
    """Lets turns through: at most ``turns`` at once, waiting ones in order and fair between tenants.

    A place that becomes free goes to the tenant that has waited for its turn the longest, so one
    tenant's flood delays another tenant's next turn by one turn at most.

    Args:
        turns: Turns under way at once.
        waiting: Turns of one tenant that may wait.
    """

    def __init__(self, *, turns: int, waiting: int) -> None:
        self._turns = turns
        self._most_waiting = waiting
        self._active = 0
        self._queues: OrderedDict[str, deque[anyio.Event]] = OrderedDict()

    @property
    def active(self) -> int:
        """Turns under way."""
        return self._active

    @property
    def waiting(self) -> int:
        """Turns that wait, of all tenants."""
        return sum(map(len, self._queues.values()))

    @asynccontextmanager
    async def turn(self, tenant: str) -> AsyncGenerator[None]:
        """Hold a place for the length of the block.

        On cancel while it waits, it is as if it had never come.

        Raises:
            ApiError: 429 at once, if too many turns of the tenant wait already.
        """
        await self._enter(tenant)
        try:
            yield
        finally:
            self._leave()

    async def _enter(self, tenant: str) -> None:
        if self._active < self._turns:
            self._active += 1
            return
        queue = self._queues.setdefault(tenant, deque())
        if len(queue) >= self._most_waiting:
            raise overloaded(
                f"{len(queue)} requests wait already; send fewer at once", RETRY_SECONDS
            )
        ticket = anyio.Event()
        queue.append(ticket)
        try:
            await ticket.wait()
        except BaseException:
            if ticket.is_set():
                self._leave()
            else:
                self._forget(tenant, ticket)
            raise

    def _forget(self, tenant: str, ticket: anyio.Event) -> None:
        queue = self._queues[tenant]
        queue.remove(ticket)
        if not queue:
            del self._queues[tenant]

    def _leave(self) -> None:
        """Hand the place to the next in line, or give it back."""
        if not self._queues:
            self._active -= 1
            return
        tenant, queue = self._queues.popitem(last=False)
        queue.popleft().set()
        if queue:
            self._queues[tenant] = queue  # to the end of the line of tenants


def overloaded(message: str, seconds: float) -> ApiError:
    """What a client is told that has to come again."""
    wait = max(RETRY_SECONDS, round(seconds))
    return ApiError(
        429, message, kind="rate_limit_error", code="rate_limit_exceeded", retry_after=wait
    )
