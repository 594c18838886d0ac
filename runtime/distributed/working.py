"""Working beside something else: jobs are done as long as a block runs, and none is lost at its end."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

import anyio

from assay.errors import ConfigError
from assay.runtime.distributed.relaying import relaying
from assay.runtime.distributed.worker import Told, Worker
from assay.runtime.facade import Runtime
from assay.runtime.jobs import JobHandler, JobKind, JobQueue
from assay.runtime.models.opening import likelihood_of
from assay.runtime.task_groups import first_of, tasks_beside


@asynccontextmanager
async def working(  # noqa: PLR0913  # what a worker is told
    runtime: Runtime,
    *,
    kinds: Sequence[JobKind],
    concurrency: int,
    patience: float,
    hurry: anyio.Event | None = None,
    others: Mapping[JobKind, JobHandler] | None = None,
    told: Told | None = None,
) -> AsyncGenerator[Worker]:
    """Do jobs for the length of the block, and tell of what is written, unless another process does.

    At its end no more are taken; those begun have time to end, then they are handed back, and other
    workers go on with them.

    Args:
        runtime: With a bus.
        kinds: What is done.
        concurrency: Jobs of each kind at once.
        patience: Seconds the jobs under way have to end.
        hurry: Set, it ends the patience.
        others: Who does jobs of other kinds than turns and evaluations.
        told: Told of each job that has ended.

    Raises:
        ConfigError: If the runtime has no bus.
        BusError: If the bus cannot be used any more.
    """
    if runtime.jobs is None:
        raise ConfigError("whoever works needs a bus: give --bus nats://...")
    worker = Worker(
        runtime, runtime.model, likelihood=likelihood_of(runtime.model), others=others, told=told
    )
    work = _Work(worker, runtime.jobs, kinds, concurrency)
    async with tasks_beside() as group:
        group.start_soon(work.run, group.cancel_scope)
        if runtime.hub is not None:
            group.start_soon(relaying, runtime.bank, runtime.hub, runtime.owner)
        try:
            yield worker
        finally:
            work.stopping.set()
            with anyio.move_on_after(patience, shield=True):
                await first_of(work.ended, hurry or anyio.Event())
            worker.let_go()
            group.cancel_scope.cancel()
    if work.failure is not None:
        raise work.failure


class _Work:
    """The task that works: what ends it ends the block, too."""

    def __init__(
        self, worker: Worker, jobs: JobQueue, kinds: Sequence[JobKind], concurrency: int
    ) -> None:
        self.stopping = anyio.Event()
        self.ended = anyio.Event()
        self.failure: Exception | None = None
        self._worker = worker
        self._jobs = jobs
        self._kinds = kinds
        self._concurrency = concurrency

    async def run(self, block: anyio.CancelScope) -> None:
        try:
            await self._worker.run(
                self._jobs, self._kinds, concurrency=self._concurrency, stopping=self.stopping
            )
        except Exception as error:  # noqa: BLE001  # raised by the block
            self.failure = error
            block.cancel()
        finally:
            self.ended.set()
