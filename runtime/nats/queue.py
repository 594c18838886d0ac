"""The queue of jobs over JetStream: submitted anywhere, done anywhere, tenants in turn.

A job is one message under a subject of its own in a stream of work, so the server itself refuses a second
one while the first is under way. It is taken out when its result is kept in another stream, where who
submitted it finds it, also after a break. A worker that falls silent loses its jobs to another one.
Back-pressure: who submits waits while its tenant has too many jobs, or the stream is full.
"""

from collections.abc import Sequence

import anyio

from assay.errors import BusError
from assay.runtime.jobs import Job, JobHandler, JobKind, PieceSink
from assay.runtime.nats.connection import Connection
from assay.runtime.nats.consumers import Consumers
from assay.runtime.nats.streams import DEFAULT_LIMITS, Limits
from assay.runtime.nats.submitting import Submission
from assay.runtime.nats.working import Worker


class NatsQueue:
    """``JobQueue`` over one connection.

    Args:
        connection: To the server.
        limits: Of waiting jobs, silence and tries.
    """

    def __init__(self, connection: Connection, limits: Limits = DEFAULT_LIMITS) -> None:
        self._connection = connection
        self._limits = limits
        self._consumers = Consumers(connection, limits)

    async def submit(self, job: Job, *, deadline: float, sink: PieceSink | None = None) -> bytes:
        with anyio.move_on_after(deadline):
            return await Submission(self._connection, self._consumers, job, deadline, sink).result()
        raise BusError(
            f"no worker did the {job.kind} job {job.id!r} within {deadline:g} s; "
            "start more of `assay worker`, or wait longer"
        )

    async def work(
        self,
        kinds: Sequence[JobKind],
        handler: JobHandler,
        *,
        concurrency: int = 1,
        stopping: anyio.Event | None = None,
    ) -> None:
        worker = Worker(self._connection, self._limits, kinds, handler)
        await worker.run(concurrency, stopping or anyio.Event())
