"""Work that another process may do: what a job says, and the queue it waits in."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

import anyio

from assay.errors import AssayError, BusError, StoreError
from assay.stores.records import Namespace

JobKind: TypeAlias = Literal["turn", "evaluation", "replay"]
"""Which handler a job needs; a worker takes the kinds it can do."""


class Job(NamedTuple):
    """A piece of work on its way.

    Attributes:
        id: Names the work: who submits it again gets the same result, and it is done once in effect.
        kind: Which handler it needs.
        tenant: Whose it is; tenants take turns.
        namespace: Whose memories it is about; erasing the namespace drops the job.
        payload: What the handler reads.
    """

    id: str
    kind: JobKind
    tenant: str
    namespace: Namespace
    payload: bytes


class Piece(NamedTuple):
    """Part of a result, sent before the result is whole.

    Attributes:
        attempt: Which try of the job it comes from, from 1; a later try begins again.
        data: The part.
    """

    attempt: int
    data: bytes


PieceSink: TypeAlias = Callable[[Piece], None]
"""Takes pieces where the job was submitted; must not block."""

JobHandler: TypeAlias = Callable[[Job, Callable[[bytes], None]], Awaitable[bytes]]
"""Does a job and gives its result; the callable sends a piece and does not block.

It may run again for a job that is done, and at the same time as another try whose process is cut
off, so it keeps what it writes by the job's id.
"""


AWAY: tuple[type[AssayError], ...] = (StoreError, BusError)
"""What a handler raises when a server it needs is away, or a session changed hands: no fault of the job."""

PATIENCE = 2
"""A job that failed with one of ``AWAY`` has so many times the tries of one that failed by itself."""


class NotForThisWorker(AssayError):
    """A handler raises it for a job that another worker can do: it is given back, and was no try of it."""


class JobQueue(Protocol):
    """Where work waits for whoever can do it; done at least once, and once in effect."""

    async def submit(self, job: Job, *, deadline: float, sink: PieceSink | None = None) -> bytes:
        """Have a job done and wait for its result; waits for room where too many wait already.

        On cancel a job that has not begun is dropped, and the handler of one that has is cancelled.

        Args:
            job: What is to be done. Its id may be one submitted before: the result is the same.
            deadline: Seconds to wait; nobody begins the job after them.
            sink: Takes the pieces of the result as they come.

        Raises:
            JobFailed: If every try failed; the job is among the dead letters.
            BusError: If there is no room or no result within the deadline.
        """
        ...

    async def work(
        self,
        kinds: Sequence[JobKind],
        handler: JobHandler,
        *,
        concurrency: int = 1,
        stopping: anyio.Event | None = None,
    ) -> None:
        """Do jobs of these kinds, tenants in turn, until ``stopping`` is set and those begun are done.

        On cancel the handlers are cancelled and their jobs handed back at once.

        Args:
            kinds: What this process can do.
            handler: Does one job.
            concurrency: Jobs under way at once.
            stopping: Set it to take no more jobs.
        """
        ...
