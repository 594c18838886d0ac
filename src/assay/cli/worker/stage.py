"""A worker at work, until a signal stops it."""

import signal
from collections.abc import Sequence

import anyio

from assay.cli.served import opened
from assay.cli.worker.telling import Json, Lines
from assay.runtime.distributed.working import working
from assay.runtime.jobs import JobKind
from assay.runtime.settings import Settings
from assay.runtime.task_groups import tasks_beside
from assay.scenarios.replay_jobs import replay_handler


async def work(
    settings: Settings,
    guard: str | None,
    kinds: Sequence[JobKind],
    as_json: bool,  # noqa: FBT001  # anyio.run passes positions only
) -> signal.Signals | None:
    """Work until a signal comes; gives the signal.

    Raises:
        ConfigError: If bank, bus or model cannot be used.
        StoreError: If the bank cannot be opened.
        BusError: If the bus cannot be used.
    """
    served, teller = settings.serve, Json() if as_json else Lines()
    stopping = _Stopping()
    async with opened(settings, guard=guard) as runtime, tasks_beside() as listening:
        listening.start_soon(stopping.listen)
        with teller.at_work():
            try:
                async with working(
                    runtime,
                    kinds=kinds,
                    concurrency=served.jobs,
                    patience=served.stop_seconds,
                    hurry=stopping.hurry,
                    others={"replay": replay_handler(runtime)},
                    told=teller.ended,
                ):
                    teller.started(settings, kinds)
                    await stopping.asked.wait()
                    teller.stopping()
            finally:
                listening.cancel_scope.cancel()
    teller.stopped()
    return stopping.by


class _Stopping:
    """The first signal asks to stop, the second to stop at once."""

    def __init__(self) -> None:
        self.asked = anyio.Event()
        self.hurry = anyio.Event()
        self.by: signal.Signals | None = None

    async def listen(self) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for number in signals:
                if self.by is None:
                    self.by = number
                    self.asked.set()
                else:
                    self.hurry.set()
