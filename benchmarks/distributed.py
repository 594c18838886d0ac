"""Sessions a second and the time of a turn, against the number of workers; beside the embedded run.

    python benchmarks/distributed.py [--workers 1 2] [--sessions 32] [--turns 5] [--seed 7] [--json]

Every session talks without a pause, each for a user of its own, by the script of ``fault_script.py``;
the plain reader takes ``--model-ms`` for each call. A turn's time is that of whoever waits for its
reply. The embedded run is the same script in one process over a bank in a folder. Servers are real,
PostgreSQL with fsync; workers are ``assay worker`` processes. ``--json`` prints what
``queueing.py --against`` reads.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import numpy as np
from fault_script import TENANTS, Script, scripts
from fault_stage import Stage, staged
from rich.console import Console
from rich.table import Table
from servers import cpu_seconds
from tieless import SlowReader, TielessEmbedder

from assay.runtime.facade import Runtime
from assay.runtime.limits import namespace_of
from assay.runtime.settings import Settings
from assay.runtime.wiring import open_runtime

WARM_UP = "warm up"


class Options(NamedTuple):
    """The command line; ``turns`` of each session."""

    workers: list[int]
    sessions: int
    turns: int
    jobs: int
    model_ms: float
    seed: int


class Case(NamedTuple):
    """What one number of workers comes to; 0 workers: the embedded run. Times in seconds.

    Attributes:
        workers: Worker processes.
        sessions: In all, and at the same time.
        turns: In all.
        seconds: Of the whole run.
        turns_per_s: Turns a second.
        sessions_per_s: Sessions a second.
        p50: Median time of a turn.
        p99: Its 99th percentile.
        rounds: Model calls of a turn, one after another.
        worker_cpu_s: Processor time of all workers, a turn.
        database_cpu_s: Of PostgreSQL, a turn.
        caller_cpu_s: Of the process that asks, a turn; 0 where it is the worker.
    """

    workers: int
    sessions: int
    turns: int
    seconds: float
    turns_per_s: float
    sessions_per_s: float
    p50: float
    p99: float
    rounds: float
    worker_cpu_s: float
    database_cpu_s: float
    caller_cpu_s: float


class Burnt(NamedTuple):
    """Processor seconds of workers, of the database, and of who asks."""

    workers: float
    database: float
    caller: float


class Talk:
    """Sessions that talk, and how long their turns take."""

    def __init__(self, runtime: Runtime) -> None:
        self.seconds: list[float] = []
        self.rounds = 0
        self._runtime = runtime

    async def all(self, users: Sequence[Script]) -> None:
        """Every session, at the same time."""
        async with anyio.create_task_group() as group:
            for script in users:
                group.start_soon(self._one, script)

    async def _one(self, script: Script) -> None:
        session = self._runtime.session(user=script.user, session_id="session")
        for said in script.said:
            start = time.perf_counter()
            reply = await session.send(said.text)
            self.seconds.append(time.perf_counter() - start)
            self.rounds += reply.ledger.rounds


def warm_up(options: Options) -> list[Script]:
    """Other users, whose turns open what is opened at the first turn."""
    users = scripts(2 * options.jobs, 2 * options.jobs, options.seed + 1)
    return [
        Script(namespace_of(WARM_UP, str(number)), script.said)
        for number, script in enumerate(users)
    ]


async def embedded(options: Options) -> Case:
    """One process over a bank in a folder."""
    with tempfile.TemporaryDirectory(prefix="assay-embedded-") as folder:
        async with open_runtime(
            model=SlowReader(options.model_ms / 1000),
            bank=Path(folder),
            embedder=TielessEmbedder(),
        ) as runtime:
            return await measured(runtime, options, None)


async def distributed(options: Options, workers: int) -> Case:
    """So many workers over the servers."""
    async with (
        staged("", workers=workers, jobs=options.jobs, model_ms=options.model_ms) as stage,
        _asking(stage) as runtime,
    ):
        return await measured(runtime, options, stage)


@asynccontextmanager
async def _asking(stage: Stage) -> AsyncGenerator[Runtime]:
    async with open_runtime(
        model="scripted",
        bank=stage.bank,
        bus=stage.bus,
        embedder=TielessEmbedder(),
        settings=Settings(),
    ) as runtime:
        yield runtime


async def measured(runtime: Runtime, options: Options, stage: Stage | None) -> Case:
    """Let every session talk."""
    await Talk(runtime).all(warm_up(options))
    users = scripts(options.sessions * options.turns, options.sessions, options.seed)
    talk, before, start = Talk(runtime), burnt(stage), time.perf_counter()
    await talk.all(users)
    seconds, after = time.perf_counter() - start, burnt(stage)
    turns = len(talk.seconds)
    p50, p99 = np.percentile(talk.seconds, [50, 99])
    return Case(
        workers=len(stage.workers) if stage else 0,
        sessions=options.sessions,
        turns=turns,
        seconds=seconds,
        turns_per_s=turns / seconds,
        sessions_per_s=options.sessions / seconds,
        p50=float(p50),
        p99=float(p99),
        rounds=talk.rounds / turns,
        worker_cpu_s=(after.workers - before.workers) / turns,
        database_cpu_s=(after.database - before.database) / turns,
        caller_cpu_s=(after.caller - before.caller) / turns,
    )


def burnt(stage: Stage | None) -> Burnt:
    """What was burnt so far; the embedded run is its own worker."""
    if stage is None:
        return Burnt(time.process_time(), 0.0, 0.0)
    workers = sum(cpu_seconds(worker.pid) for worker in stage.workers)
    return Burnt(workers, cpu_seconds(stage.database_pid), time.process_time())


def plan(case: Case, options: Options) -> dict[str, Any]:
    """A case as ``queueing.py --against`` takes it, and no field that is not of its plan."""
    return {
        "workers": case.workers,
        "sessions": case.sessions,
        "turns": case.turns,
        "turns_per_s": case.turns_per_s,
        "p50": case.p50,
        "p99": case.p99,
        "model_ms": options.model_ms,
        "sessions_per_s": case.sessions_per_s,
        "tenants": TENANTS,
        "think_s": 0.0,
        "slots": options.jobs,
        "cores": os.cpu_count(),
        "rounds": round(case.rounds),
        "worker_cpu_s": case.worker_cpu_s,
        "database_cpu_s": case.database_cpu_s,
    }


def table(cases: Sequence[Case], options: Options) -> Table:
    """All cases, each beside the first, the embedded run."""
    title = f"{options.sessions} sessions of {options.turns} turns, {options.model_ms:g} ms a call"
    shown = Table(title=f"{title}, {options.jobs} turns a worker at once")
    columns = ("workers", "sess/s", "turns/s", "p50 s", "p99 s", "CPU ms")
    for column in (*columns, "x turns/s", "x p50"):
        shown.add_column(column, justify="right")
    first = cases[0]
    for case in cases:
        spent = (case.worker_cpu_s, case.database_cpu_s, case.caller_cpu_s)
        shown.add_row(
            str(case.workers or "-"),
            f"{case.sessions_per_s:.2f}",
            f"{case.turns_per_s:.1f}",
            f"{case.p50:.3f}",
            f"{case.p99:.3f}",
            "+".join(f"{1000 * seconds:.0f}" for seconds in spent if seconds),
            f"{case.turns_per_s / first.turns_per_s:.2f}",
            f"{case.p50 / first.p50:.2f}",
        )
    shown.caption = (
        "- is the embedded run, x how many times it. CPU of a turn: workers + database + who asks"
    )
    return shown


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--sessions", type=int, default=32)
    parser.add_argument("--turns", type=int, default=5, help="of each session")
    parser.add_argument("--jobs", type=int, default=16, help="turns a worker takes at once")
    parser.add_argument("--model-ms", type=float, default=50.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    given = vars(parser.parse_args())
    wants_json = given.pop("json")
    options = Options(**given)
    cases = [anyio.run(embedded, options)]
    cases += [anyio.run(distributed, options, workers) for workers in options.workers]
    if wants_json:
        print(json.dumps([plan(case, options) for case in cases if case.workers]))
    else:
        Console().print(table(cases, options))


if __name__ == "__main__":
    main()
