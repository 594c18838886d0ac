"""What a worker says of its work: to a person, or to a program."""

import json
import sys
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from rich.console import Console
from rich.status import Status

from assay.runtime.distributed.worker import Ended
from assay.runtime.jobs import JobKind
from assay.runtime.nats.address import masked
from assay.runtime.settings import Settings
from assay.stores.banks import shown


class Teller(Protocol):
    """Is told what happens, in this order."""

    def at_work(self) -> AbstractContextManager[None]:
        """From the opening until the end of the work."""
        ...

    def started(self, settings: Settings, kinds: Sequence[JobKind]) -> None:
        """Jobs are taken."""
        ...

    def ended(self, ended: Ended) -> None:
        """One has ended."""
        ...

    def stopping(self) -> None:
        """No more are taken."""
        ...

    def stopped(self) -> None:
        """It is over."""
        ...


class Lines:
    """Tells a person: a few lines, and in a terminal one that counts."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._status: Status | None = None
        self._done: Counter[str] = Counter()
        self._refused: set[str] = set()

    @contextmanager
    def at_work(self) -> Generator[None]:
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
        if ended.refused:
            self._say_refused(ended)
            return
        self._done["failed" if ended.failure else ended.job.kind] += 1
        self._show()

    def stopping(self) -> None:
        self._console.print("stopping: ends what it has begun; again: hands it over at once")

    def stopped(self) -> None:
        self._console.print(f"stopped; {self._counted()}")

    def _say_refused(self, ended: Ended) -> None:
        """Once for each reason: the same job comes again and again while nobody else takes it."""
        if ended.refused not in self._refused:
            self._refused.add(ended.refused)
            said = f"{ended.job.kind} jobs are left to other workers: {ended.refused}"
            self._console.print(said, markup=False, soft_wrap=True)

    def _show(self) -> None:
        if self._status is not None:
            self._status.update(self._counted())

    def _counted(self) -> str:
        done = self._done
        return (
            f"{done['turn']} turns, {done['evaluation']} evaluations done, {done['failed']} failed"
        )


class Json:
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
            **({"message": ended.refused} if ended.refused else {}),
        )

    def stopping(self) -> None:
        self._say("worker.stopping")

    def stopped(self) -> None:
        self._say("worker.stopped")

    def _say(self, event: str, **fields: object) -> None:
        sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
        sys.stdout.flush()
