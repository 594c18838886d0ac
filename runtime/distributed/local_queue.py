"""A queue of jobs inside one process: the oracle of the contract tests, and what tests of workers take."""

from collections import OrderedDict, deque
from collections.abc import Sequence

import anyio

from assay.errors import BusError, JobFailed
from assay.runtime.jobs import (
    AWAY,
    PATIENCE,
    Job,
    JobHandler,
    JobKind,
    NotForThisWorker,
    Piece,
    PieceSink,
)
from assay.runtime.task_groups import first_of

TRIES = 5
"""How often a job is tried before it is put aside."""

_REFUSED_SECONDS = 0.02


class _Ticket:
    """A job on its way, and the place of its result."""

    def __init__(self, job: Job, sink: PieceSink | None) -> None:
        self.job = job
        self.result: bytes | None = None
        self.failure: JobFailed | None = None
        self.over = anyio.Event()
        self.doing = anyio.CancelScope()
        self.tries = 0
        self._sink = sink

    def send(self, data: bytes) -> None:
        """A piece of the result for whoever waits for it."""
        if self._sink is not None and not self.over.is_set():
            self._sink(Piece(self.tries, data))


class LocalQueue:
    """``JobQueue`` in memory; the tenant that has waited the longest is served next.

    Args:
        waiting: Jobs of one tenant and kind that may wait; more are refused.

    Attributes:
        put_aside: Jobs that were tried too often, oldest first.
    """

    def __init__(self, *, waiting: int = 256) -> None:
        self.put_aside: list[Job] = []
        self._most_waiting = waiting
        self._lines: dict[JobKind, OrderedDict[str, deque[_Ticket]]] = {}
        self._arrived = anyio.Event()

    async def submit(self, job: Job, *, deadline: float, sink: PieceSink | None = None) -> bytes:
        ticket = _Ticket(job, sink)
        self._join(ticket)
        try:
            with anyio.move_on_after(deadline):
                await ticket.over.wait()
        finally:
            ticket.over.set()
            ticket.doing.cancel()
        if ticket.result is not None:
            return ticket.result
        if ticket.failure is not None:
            raise ticket.failure
        raise BusError(f"no worker did the {job.kind} job {job.id!r} within {deadline:g} s")

    async def work(
        self,
        kinds: Sequence[JobKind],
        handler: JobHandler,
        *,
        concurrency: int = 1,
        stopping: anyio.Event | None = None,
    ) -> None:
        async with anyio.create_task_group() as group:
            for _ in range(concurrency):
                group.start_soon(self._slot, tuple(kinds), handler, stopping or anyio.Event())

    def _join(self, ticket: _Ticket) -> None:
        job = ticket.job
        line = self._lines.setdefault(job.kind, OrderedDict()).setdefault(job.tenant, deque())
        if len(line) >= self._most_waiting:
            raise BusError(f"{len(line)} {job.kind} jobs of tenant {job.tenant!r} wait already")
        line.append(ticket)
        self._arrived.set()

    async def _slot(
        self, kinds: tuple[JobKind, ...], handler: JobHandler, stopping: anyio.Event
    ) -> None:
        while not stopping.is_set():
            ticket = await self._next(kinds, stopping)
            if ticket is not None and not ticket.over.is_set():
                await self._done(ticket, handler)

    async def _next(self, kinds: tuple[JobKind, ...], stopping: anyio.Event) -> _Ticket | None:
        """The next job of these kinds; ``None``: something happened, look again."""
        for kind in kinds:
            if tenants := self._lines.get(kind):
                return _first(tenants)
        if self._arrived.is_set():
            self._arrived = anyio.Event()
        await first_of(self._arrived, stopping)
        return None

    async def _done(self, ticket: _Ticket, handler: JobHandler) -> None:
        ticket.tries += 1
        try:
            with ticket.doing:
                ticket.result = await handler(ticket.job, ticket.send)
            ticket.over.set()
        except NotForThisWorker:
            ticket.tries -= 1
            self._hand_back(ticket)
            await anyio.sleep(_REFUSED_SECONDS)  # others take it meanwhile
        except Exception as error:  # noqa: BLE001  # a failing handler is tried again
            self._failed(ticket, error)
        except BaseException:
            self._hand_back(ticket)
            raise

    def _failed(self, ticket: _Ticket, error: Exception) -> None:
        if ticket.tries < (TRIES * PATIENCE if isinstance(error, AWAY) else TRIES):
            self._hand_back(ticket)
            return
        self.put_aside.append(ticket.job)
        kind = type(error).__name__
        ticket.failure = JobFailed(
            f"the {ticket.job.kind} job {ticket.job.id!r} failed {ticket.tries} times and was put aside: "
            f"{kind}: {error}",
            kind=kind,
        )
        ticket.over.set()

    def _hand_back(self, ticket: _Ticket) -> None:
        tenants = self._lines.setdefault(ticket.job.kind, OrderedDict())
        tenants.setdefault(ticket.job.tenant, deque()).appendleft(ticket)
        self._arrived.set()


def _first(tenants: OrderedDict[str, deque[_Ticket]]) -> _Ticket:
    """The next job of the tenant that waits the longest, which goes to the end of the tenants."""
    tenant, line = tenants.popitem(last=False)
    ticket = line.popleft()
    if line:
        tenants[tenant] = line
    return ticket
