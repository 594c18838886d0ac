"""A worker at work: until a signal stops it, and what it says meanwhile."""

import json
import signal
import sys
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import anyio
from rich.console import Console
from rich.status import Status

from assay.cli.served import opened
from assay.runtime.distributed.worker import Ended
from assay.runtime.distributed.working import working
from assay.runtime.jobs import JobKind
from assay.runtime.nats.address import masked
from assay.runtime.settings import Settings
from assay.runtime.task_groups import tasks_beside
from assay.stores.banks import shown


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
    served, teller = settings.serve, _Json() if as_json else _Lines()
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


class _Lines:
    """Tells a person: a few lines, and in a terminal one that counts."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._status: Status | None = None
        self._done: Counter[str] = Counter()

    @contextmanager
    def at_work(self) -> Generator[None]:
        """While it works, a terminal shows what was done."""
        if not self._console.is_terminal:
            yield
            return
        with self._console.status("opening") as self._status:
            yield

    def started(self, settings: Settings, kinds: Sequence[JobKind]) -> None:
        served = settings.serve
        self._console.print(
            f"works with {served.model} over {shown(served.bank)} and {masked(served.bus)}: "
            f"{' and '.join(kinds)} jobs, {served.jobs} of each at once (Ctrl-C stops it)",
            markup=False,
            soft_wrap=True,
        )
        self._show()

    def ended(self, ended: Ended) -> None:
        self._done["failed" if ended.failure else ended.job.kind] += 1
        self._show()

    def stopping(self) -> None:
        self._console.print("stopping: ends what it has begun; again: hands it over at once")

    def stopped(self) -> None:
        self._console.print(f"stopped; {self._counted()}")

    def _show(self) -> None:
        if self._status is not None:
            self._status.update(self._counted())

    def _counted(self) -> str:
        done = self._done
        return (
            f"{done['turn']} turns, {done['evaluation']} evaluations done, {done['failed']} failed"
        )


class _Json:
    """Tells a program: one object a line; ids and figures, never texts."""

    @contextmanager
    def at_work(self) -> Generator[None]:
        yield

    def started(self, settings: Settings, kinds: Sequence[JobKind]) -> None:
        served = settings.serve
        self._say(
            "worker.started",
            model=served.model,
            bank=shown(served.bank),
            bus=masked(served.bus),
            kinds=list(kinds),
            concurrency=served.jobs,
        )

    def ended(self, ended: Ended) -> None:
        self._say(
            "job.ended",
            id=ended.job.id,
            kind=ended.job.kind,
            seconds=round(ended.seconds, 6),
            failure=ended.failure,
        )

    def stopping(self) -> None:
        self._say("worker.stopping")

    def stopped(self) -> None:
        self._say("worker.stopped")

    def _say(self, event: str, **fields: object) -> None:
        sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
        sys.stdout.flush()
