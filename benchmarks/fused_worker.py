"""``assay worker``, started again whenever it dies, with fuses at the steps of a turn.

    python benchmarks/fused_worker.py FUSES MODEL_MS OPTIONS_OF_ASSAY_WORKER...

A fuse is a file in the folder FUSES, named after one of ``POINTS`` in ``fault_plan.py``. The first worker whose turn comes
to that point takes the file away, writes into ``POINT.burnt`` whose turn it was, and kills itself
with SIGKILL. So a worker dies exactly between two steps, and nobody has to hit the moment. Embedder
and the model are those of ``tieless.py``; each call of the model takes MODEL_MS milliseconds.

Everything is imported once; each worker is a fork of that. Prints one JSON object a line: those of
``assay worker --json`` and, around them, ``process.started`` and ``process.ended`` with the pid.
"""

import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

from tieless import SlowReader, TielessEmbedder

from assay.guards.protocols import ChatModel
from assay.runtime import wiring
from assay.runtime.events import AnyEvent, decode
from assay.runtime.streams import namespace_in
from assay.stores.protocols import (
    Archive,
    Bank,
    Cache,
    CacheRow,
    Embedder,
    Journal,
    JournalEntry,
    Lease,
    Leases,
    MemoryStore,
)
from assay.stores.records import ArchiveTurn, MemoryRecord, Namespace, SessionId


def named(event: type[AnyEvent]) -> str:
    """An event as points name it."""
    return str(event.__struct_config__.tag)


class Fuses(NamedTuple):
    """The fuses of a folder."""

    folder: Path

    def come_to(self, point: str, whose: Namespace | None) -> None:
        """Die here if there is a fuse at this point."""
        burnt = self.folder / f"{point}.burnt"
        try:
            (self.folder / point).rename(burnt)
        except FileNotFoundError:
            return
        burnt.write_text(whose or "")
        os.kill(os.getpid(), signal.SIGKILL)


class Fused:
    """Anything behind a protocol, with fuses; what is not fused is as it was."""

    def __init__(self, inner: Any, fuses: Fuses) -> None:  # noqa: ANN401 - of any protocol
        self._inner = inner
        self._fuses = fuses

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as above
        return getattr(self._inner, name)


class FusedJournal(Fused):
    """A journal with a fuse before and after each append."""

    async def append(self, session: SessionId, entries: Sequence[JournalEntry]) -> None:
        """As ``Journal`` does."""
        whose, name = namespace_in(session), named(type(decode(entries[-1].payload)))
        self._fuses.come_to(f"before {name}", whose)
        await self._inner.append(session, entries)
        self._fuses.come_to(f"after {name}", whose)


class FusedLeases(Fused):
    """Leases whose journals have fuses."""

    def fenced(self, journal: Journal, lease: Lease) -> Journal:
        """As ``Leases`` does."""
        return cast("Journal", FusedJournal(self._inner.fenced(journal, lease), self._fuses))


class FusedCache(Fused):
    """A cache with a fuse before each write."""

    async def put(self, namespace: Namespace, rows: Sequence[CacheRow]) -> None:
        """As ``Cache`` does."""
        self._fuses.come_to("before an answer is cached", namespace)
        await self._inner.put(namespace, rows)


class FusedArchive(Fused):
    """An archive with a fuse before each write."""

    async def append(self, turns: Sequence[ArchiveTurn]) -> None:
        """As ``Archive`` does."""
        self._fuses.come_to("before the turns are archived", turns[0].namespace if turns else None)
        await self._inner.append(turns)


class FusedStore(Fused):
    """A store of records with a fuse before each write."""

    async def write(self, records: Sequence[MemoryRecord]) -> None:
        """As ``MemoryStore`` does."""
        if records:
            self._fuses.come_to("before the records are written", records[0].namespace)
        await self._inner.write(records)


def fused(bank: Bank, fuses: Fuses) -> Bank:
    """A bank with fuses; what is behind its protocols stays the same."""
    return bank._replace(
        store=cast("MemoryStore", FusedStore(bank.store, fuses)),
        archive=cast("Archive", FusedArchive(bank.archive, fuses)),
        cache=cast("Cache", FusedCache(bank.cache, fuses)),
        leases=cast("Leases", FusedLeases(bank.leases, fuses)),
    )


def say(event: str, **fields: object) -> None:
    """One line for whoever started this."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def work(fuses: Fuses, model_ms: float, options: Sequence[str]) -> None:
    """Be ``assay worker`` over a bank with fuses."""
    opening = wiring.open_bank_at

    @asynccontextmanager
    async def opened(*place: Any, **kind: Any) -> AsyncGenerator[Bank]:  # noqa: ANN401 - as given
        async with opening(*place, **kind) as bank:
            yield fused(bank, fuses)

    @asynccontextmanager
    async def embedder(*_: Any, **__: Any) -> AsyncGenerator[Embedder]:  # noqa: ANN401 - not asked
        yield TielessEmbedder()

    @asynccontextmanager
    async def model(*_: Any, **__: Any) -> AsyncGenerator[ChatModel]:  # noqa: ANN401 - not asked
        yield SlowReader(model_ms / 1000)

    # The command composes its own parts, and has no option for this on purpose.
    wiring.open_model = model
    wiring.open_bank_at = opened
    wiring.open_embedding = embedder
    sys.argv = ["assay", "worker", "--json", *options]
    import_module("assay.cli").main()


def main() -> None:
    """Fork workers, one after the other, for ever."""
    folder, model_ms, *options = sys.argv[1:]
    for name in ("assay.cli.app", "assay.cli.worker.stage", "asyncpg", "nats", "numpy"):
        import_module(name)
    for name in ("assay.runtime.nats.queue", "assay.stores.postgres.bank", "assay.runtime.wiring"):
        import_module(name)
    while True:
        pid = os.fork()
        if pid == 0:
            work(Fuses(Path(folder)), float(model_ms), options)
            os._exit(0)
        say("process.started", pid=pid)
        _, status = os.waitpid(pid, 0)
        say("process.ended", pid=pid, status=os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
