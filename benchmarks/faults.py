"""Random faults while turns are taken: what is lost, what is doubled, and how long until it goes on.

    python benchmarks/faults.py [--turns 500] [--faults 200] [--seed 7] [--json]

Starts a PostgreSQL, a NATS server with JetStream on files, and ``assay worker`` processes in network
namespaces of their own (TCP proxies where the machine allows none). Users say the script of
``fault_script.py``; meanwhile, at seeded turns, workers are killed (kill -9) at a seeded step of a
turn or anywhere, either server is killed with all its processes and started again, and a worker's
network is cut. Afterwards what is left is compared with an embedded run of the same script: no
acknowledged reply is lost, no decision is made twice, same records, decisions and replies.

Recovery is the time from a fault to the next completed turn of each user whom it hit. A worker that
falls silent is given up after ``--lease`` seconds. The exit status is 1 if a check fails.
"""

import argparse
import json
import math
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import anyio
import numpy as np
from fault_outcome import Outcome, as_json, show
from fault_plan import ANYWHERE, Fault, every_point, planned
from fault_script import (
    Checks,
    Left,
    Said,
    Script,
    checked,
    differences,
    embedded,
    left_of,
    scripts,
)
from fault_stage import Stage, Worker, staged
from rich.console import Console
from tieless import TielessEmbedder

from assay.errors import BusError, StoreError, TurnError
from assay.runtime.facade import Runtime
from assay.runtime.session import Session
from assay.runtime.settings import GuardSettings, Settings, TurnSettings
from assay.runtime.streams import namespace_in
from assay.runtime.wiring import open_runtime
from assay.stores.records import SessionId

TRIES = 20
AHEAD = 5
"""Turns that may begin while a fault strikes that needs none."""
LONGEST_OUTAGE = 1.0
LEASED = "SELECT session FROM leases WHERE owner LIKE $1 AND expires > clock_timestamp()"


class Progress:
    """How many turns have begun, and how many may before the next fault has struck."""

    def __init__(self, turns: int) -> None:
        self.begun = 0
        self.over = anyio.Event()
        self._turns = turns
        self._ended = 0
        self._allowed = 0.0
        self._changed = anyio.Event()

    async def begin(self) -> None:
        """Wait until a turn may begin."""
        while self.begun >= self._allowed:
            await self._changed.wait()
        self.begun += 1
        self._wake()

    def end(self) -> None:
        """A turn is over."""
        self._ended += 1
        if self._ended == self._turns:
            self.over.set()

    async def reach(self, begun: int, *, ahead: float) -> None:
        """Wait until so many turns have begun; as many more may begin before the next call."""
        self._allowed = max(self.begun, begun) + ahead
        self._wake()
        while self.begun < begun:
            await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


class Recoveries:
    """From each fault to the next completed turn of each user it hit.

    Attributes:
        seconds: By the fault's name.
        struck: How often each fault has struck.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.struck: Counter[str] = Counter()
        self._open: list[tuple[Fault, float, str, anyio.Event]] = []

    def strike(self, fault: Fault, users: Sequence[str], at: float) -> list[anyio.Event]:
        """A fault hits these users; gives what is set when each has recovered."""
        self.struck[fault.name] += 1
        hits = [(fault, at, user, anyio.Event()) for user in users]
        self._open += hits
        return [event for *_, event in hits]

    def completed(self, user: str) -> None:
        """A user has got a reply."""
        now = anyio.current_time()
        for fault, at, _, event in [hit for hit in self._open if hit[2] == user]:
            self.seconds[fault.name].append(now - at)
            event.set()
        self._open = [hit for hit in self._open if hit[2] != user]


class Replay:
    """Users who talk, and faults that strike meanwhile.

    Attributes:
        acknowledged: Replies by request.
        again: Why requests were sent again, and how often.
        failures: Turns that ended without a reply.
        recoveries: After each fault.
    """

    def __init__(
        self,
        stage: Stage,
        runtime: Runtime,
        lease: float,
        turns: int,
        told: Callable[[str], None],
    ) -> None:
        self.acknowledged: dict[str, str] = {}
        self.again: Counter[str] = Counter()
        self.failures: list[str] = []
        self.recoveries = Recoveries()
        self._stage = stage
        self._runtime = runtime
        self._lease = lease
        self._told = told
        self._progress = Progress(turns)
        self._waiting: set[str] = set()

    async def run(self, users: Sequence[Script], faults: Sequence[Fault]) -> None:
        """Take every turn, and strike every fault."""
        async with anyio.create_task_group() as group:
            for script in users:
                group.start_soon(self._talk, script)
            for number, fault in enumerate(faults, 1):
                self._told(f"{number}/{len(faults)} {fault.name}")
                # A fuse waits for a turn that comes to its point; all else strikes by itself.
                ahead = math.inf if fault.kind == "worker" else AHEAD
                await self._progress.reach(fault.at, ahead=ahead)
                await self._strike(fault)
            await self._progress.reach(0, ahead=math.inf)

    async def _talk(self, script: Script) -> None:
        for said in script.said:
            await self._progress.begin()
            session = self._runtime.session(user=script.user, session_id=said.session)
            self._waiting.add(script.user)
            await self._say(session, said)
            self._waiting.discard(script.user)
            self.recoveries.completed(script.user)
            self._progress.end()

    async def _say(self, session: Session, said: Said) -> None:
        """Until it is acknowledged, or has failed for good: the same request begins no second turn."""
        for _ in range(TRIES):
            try:
                reply = await session.send(said.text, request=said.request)
            except TurnError as error:
                self.failures.append(f"{said.request}: {error}")
                return
            except (BusError, StoreError) as error:
                self.again[f"{type(error).__name__}: {error}"] += 1
            else:
                self.acknowledged[said.request] = reply.text
                return
        self.failures.append(f"{said.request}: given up after {TRIES} tries")

    async def _strike(self, fault: Fault) -> None:
        match fault.kind:
            case "worker":
                await self._kill_worker(fault)
            case "network":
                await self._cut(fault)
            case _:
                crash = (
                    self._stage.crash_nats if fault.kind == "nats" else self._stage.crash_postgres
                )
                self.recoveries.strike(fault, list(self._waiting), anyio.current_time())
                await crash(fault.size * LONGEST_OUTAGE)

    async def _kill_worker(self, fault: Fault) -> None:
        """By a fuse, or by hand; another one is started in its place."""
        users: list[str] = []
        if fault.point == ANYWHERE:
            worker = self._chosen(fault)
            await worker.at_work()
            users = await self._users_of(worker)
            worker.kill()
        else:
            self._stage.light(fault.point)
        async with anyio.create_task_group() as group:
            group.start_soon(self._give_up_at_the_end, group.cancel_scope)
            async for death in self._stage.deaths:
                if death.whose or fault.point == ANYWHERE:
                    self.recoveries.strike(fault, users or [death.whose], death.at)
                    break
            group.cancel_scope.cancel()

    async def _give_up_at_the_end(self, strike: anyio.CancelScope) -> None:
        """No turn comes to a fuse any more."""
        await self._progress.over.wait()
        strike.cancel()

    async def _cut(self, fault: Fault) -> None:
        """For a moment, or until all whose turns were cut off have got a reply elsewhere."""
        worker, is_long = self._chosen(fault), fault.size * 7 % 1 < 0.5  # noqa: PLR2004 - half of them
        users = await self._users_of(worker)
        await self._stage.ways.cut(worker.number)
        recovered = self.recoveries.strike(fault, users, anyio.current_time())
        if is_long and len(self._stage.workers) > 1:
            with anyio.move_on_after(3 * self._lease):
                for event in recovered:
                    await event.wait()
        else:
            await anyio.sleep(fault.size * self._lease)
        await self._stage.ways.heal(worker.number)

    def _chosen(self, fault: Fault) -> Worker:
        workers = self._stage.workers
        return workers[int(fault.size * len(workers))]

    async def _users_of(self, worker: Worker) -> list[str]:
        """Users whose sessions a worker has just now."""
        rows = await self._stage.asked(LEASED, f"%/{worker.pid}/%")
        users = {namespace_in(SessionId(row[0])) for row in rows}
        return [user for user in users if user is not None and user in self._waiting]


class Options(NamedTuple):
    """The command line."""

    turns: int
    faults: int
    seed: int
    users: int
    workers: int
    jobs: int
    lease: float
    phases: bool
    proxies: bool
    evaluations: str


async def replayed(options: Options) -> Outcome:
    """Run the script with faults and without, and compare."""
    users = scripts(options.turns, options.users, options.seed)
    rng = np.random.default_rng(options.seed)
    faults = (
        every_point(options.turns)
        if options.phases
        else planned(options.faults, options.turns, options.users, rng)
    )
    settings = Settings(
        turn=TurnSettings(lease_seconds=options.lease), guard=GuardSettings(seconds=120.0)
    )
    async with _playing(options, settings) as (stage, replay, runtime):
        start = time.perf_counter()
        try:
            await replay.run(users, faults)
        except BaseException:
            print(stage.logs(), file=sys.stderr)
            raise
        seconds = time.perf_counter() - start
        left = {script.user: await left_of(runtime, script.user) for script in users}
        dead = await stage.put_aside()
        unplanned = sum(worker.unplanned for worker in stage.workers)
        if replay.failures:
            print(stage.logs(), file=sys.stderr)
    return Outcome(
        ways=stage.ways.kind,
        turns=len(replay.acknowledged),
        faults=replay.recoveries.struck.total(),
        missed=len(faults) - replay.recoveries.struck.total(),
        seconds=seconds,
        checks=await _compared(users, replay.acknowledged, left, settings),
        failures=replay.failures,
        dead=dead,
        again=dict(replay.again),
        unplanned=unplanned,
        recoveries=dict(replay.recoveries.seconds),
        struck=dict(replay.recoveries.struck),
    )


@asynccontextmanager
async def _playing(
    options: Options, settings: Settings
) -> AsyncGenerator[tuple[Stage, Replay, Runtime]]:
    toml = (
        f'[serve]\nevaluations = "{options.evaluations}"\n'
        f"[turn]\nlease_seconds = {settings.turn.lease_seconds}\n"
        f"[guard]\nseconds = {settings.guard.seconds}\n"
    )
    async with (
        staged(toml, workers=options.workers, jobs=options.jobs, proxies=options.proxies) as stage,
        open_runtime(
            model="scripted",
            bank=stage.bank,
            bus=stage.bus,
            embedder=TielessEmbedder(),
            settings=settings,
        ) as runtime,
    ):
        yield stage, Replay(stage, runtime, options.lease, options.turns, tell), runtime


def tell(what: str) -> None:
    """How far it is, for whoever waits."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


async def _compared(
    users: Sequence[Script], acknowledged: dict[str, str], left: dict[str, Left], settings: Settings
) -> Checks:
    every: list[Checks] = []
    with tempfile.TemporaryDirectory(prefix="assay-embedded-") as folder:
        for number, script in enumerate(users):
            place = Path(folder) / str(number)
            expected = await embedded(script, settings, TielessEmbedder(), place)
            every.append(checked(acknowledged, script.said, left[script.user], expected))
            for difference in differences(left[script.user], expected):
                tell(f"{script.user} {difference}")
    return Checks(*map(sum, zip(*every, strict=True)))


def parsed() -> tuple[Options, bool]:
    """The command line, and whether it asks for JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=500)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--users", type=int, default=10, help="who talk at the same time")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=4, help="turns a worker takes at once")
    parser.add_argument("--lease", type=float, default=2.0, help="turn.lease_seconds")
    parser.add_argument("--phases", action="store_true", help="kill a worker at each step, once")
    parser.add_argument("--proxies", action="store_true", help="no network namespaces")
    parser.add_argument(
        "--evaluations", choices=("here", "queue"), default="here", help="where guards experiment"
    )
    parser.add_argument("--json", action="store_true")
    given = vars(parser.parse_args())
    wants_json = given.pop("json")
    return Options(**given), wants_json


def main() -> None:
    """Run, print, and say by the exit status whether all is well."""
    options, wants_json = parsed()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that nothing is left running
    outcome = anyio.run(replayed, options)
    if wants_json:
        print(json.dumps(as_json(outcome)))
    else:
        show(outcome, Console())
    sys.exit(0 if outcome.is_well else 1)


if __name__ == "__main__":
    main()
