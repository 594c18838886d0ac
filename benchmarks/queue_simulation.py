"""Sessions, a fair queue, workers, leases and deaths, as a discrete-event simulation.

A session asks, waits for the reply, thinks, asks again. A turn waits in the queue, round robin over
tenants, for a free slot of any worker; there it takes processor time of its worker (one thread each)
and of the database, on ``cores`` shared cores, and waits for the model, round after round. A worker
that dies loses its turns: each is delivered again after what is left of ``redelivery_s``, waits in its
slot until the lease of its session has ended, and all of its work is done again.
``benchmarks/queueing.py`` runs it from the command line.
"""

import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, NamedTuple, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta

Action: TypeAlias = Callable[[], None]
Count: TypeAlias = Annotated[int, Meta(ge=1)]
Amount: TypeAlias = Annotated[float, Meta(ge=0)]
Positive: TypeAlias = Annotated[float, Meta(gt=0)]


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is simulated. Refused by ``msgspec.ValidationError`` when out of range."""

    sessions: Annotated[Count, Meta(description="sessions in all")] = 100
    turns: Annotated[Count, Meta(description="turns of each session")] = 20
    tenants: Annotated[Count, Meta(description="sessions belong to them in turn")] = 10
    think_s: Annotated[Amount, Meta(description="mean of the exponential think time")] = 1.0
    arrivals_per_s: Annotated[Amount, Meta(description="sessions begin; 0: all at once")] = 0.0
    workers: Annotated[Count, Meta(description="worker processes")] = 2
    slots: Annotated[Count, Meta(description="turns in flight in a worker")] = 16
    cores: Annotated[Count, Meta(description="shared by workers and database")] = 2
    rounds: Annotated[Count, Meta(description="model calls of a turn, one after another")] = 2
    model_s: Annotated[Amount, Meta(description="mean time of a model call")] = 0.05
    model_spread: Annotated[Amount, Meta(description="its standard deviation / mean")] = 0.0
    worker_cpu_s: Annotated[Amount, Meta(description="processor time of a worker, a turn")] = 0.0
    database_cpu_s: Annotated[Amount, Meta(description="of the database, a turn")] = 0.0
    stretch: Annotated[Positive, Meta(description="seconds for a second of processor")] = 1.0
    quantum_s: Annotated[Positive, Meta(description="processor time at once, in turn")] = 0.002
    latency_s: Annotated[Amount, Meta(description="commits and network, a turn")] = 0.0
    lease_s: Annotated[Amount, Meta(description="time of a session's lease")] = 10.0
    redelivery_s: Annotated[Amount, Meta(description="until an unheard job comes again")] = 10.0
    mean_life_s: Annotated[Amount, Meta(description="of a worker, exponential; 0: endless")] = 0.0
    restart_s: Annotated[Amount, Meta(description="from a death to the next worker")] = 5.0
    seed: int = 7


class Turn(msgspec.Struct):
    """One turn on its way; times in simulated seconds, NaN: not yet.

    Attributes:
        session: Which session asked.
        tenant: Whose.
        asked: When.
        started: When its work first began.
        finished: When the reply came.
        deliveries: How often a slot took it.
        orphaned: When the worker died that ran it; NaN again as soon as another runs it.
    """

    session: int
    tenant: int
    asked: float
    started: float = math.nan
    finished: float = math.nan
    deliveries: int = 0
    orphaned: float = math.nan


class Run(NamedTuple):
    """A simulation that ran until every session was done.

    Attributes:
        turns: Every turn, in order of finishing.
        seconds: From start to end.
        turn_seconds: Area under the number of turns in the system.
        slots_used: Share of the slots of living workers that held a turn.
        cores_used: Share of the cores that worked.
        deaths: Of workers.
        recoveries: Seconds from a death until an orphaned turn ran again, one for each.
    """

    turns: list[Turn]
    seconds: float
    turn_seconds: float
    slots_used: float
    cores_used: float
    deaths: int
    recoveries: list[float]


class Timeline:
    """Simulated time and what is to happen; equal times in the order of asking."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, Action]] = []
        self._numbers = itertools.count()

    def after(self, seconds: float, action: Action) -> None:
        """Do something later."""
        heapq.heappush(self._heap, (self.now + seconds, next(self._numbers), action))

    def step(self) -> None:
        """Go to the next thing and do it."""
        self.now, _, action = heapq.heappop(self._heap)
        action()


class Level:
    """A count over time, and the area under it."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._value = 0
        self._since = 0.0
        self._area = 0.0

    def add(self, change: int) -> None:
        """Change the count now."""
        self._area = self.area
        self._since = self._timeline.now
        self._value += change

    @property
    def area(self) -> float:
        """Count times seconds until now."""
        return self._area + self._value * (self._timeline.now - self._since)


class FairQueue:
    """Round robin over the tenants that have a turn waiting, first come first served within one."""

    def __init__(self) -> None:
        self._waiting: dict[int, deque[Turn]] = {}

    def __len__(self) -> int:
        """Tenants with something waiting."""
        return len(self._waiting)

    def put(self, turn: Turn) -> None:
        """Let a turn wait; one that comes again waits before the others of its tenant."""
        line = self._waiting.setdefault(turn.tenant, deque())
        if turn.deliveries:
            line.appendleft(turn)
        else:
            line.append(turn)

    def take(self) -> Turn:
        """The next turn; its tenant goes to the end of the round."""
        tenant = next(iter(self._waiting))
        line = self._waiting.pop(tenant)
        turn = line.popleft()
        if line:
            self._waiting[tenant] = line
        return turn


class Host:
    """A process that runs at most ``threads`` pieces of work at once."""

    def __init__(self, threads: int) -> None:
        self.free = threads
        self.waiting: deque[tuple[float, Action]] = deque()
        self.listed = False


class Cores:
    """Shared processor cores: hosts with work and a free thread are served in turn.

    Pieces of work of one host share its thread: each runs for ``quantum`` seconds at most, then the
    next one does, as the tasks of an event loop.
    """

    def __init__(self, timeline: Timeline, count: int, quantum: float) -> None:
        self._timeline = timeline
        self._free = count
        self._quantum = quantum
        self._ready: deque[Host] = deque()
        self.busy = Level(timeline)

    def run(self, host: Host, seconds: float, then: Action) -> None:
        """Run a piece of work of a host to its end, then do ``then``."""
        host.waiting.append((seconds, then))
        self._list(host)
        self._serve()

    def _list(self, host: Host) -> None:
        if host.waiting and host.free and not host.listed:
            host.listed = True
            self._ready.append(host)

    def _serve(self) -> None:
        while self._free and self._ready:
            host = self._ready.popleft()
            host.listed = False
            self._start(host, *host.waiting.popleft())
            self._list(host)

    def _start(self, host: Host, seconds: float, then: Action) -> None:
        part = min(seconds, self._quantum)
        self._take(host, 1)
        self._timeline.after(part, lambda: self._end(host, seconds - part, then))

    def _end(self, host: Host, left: float, then: Action) -> None:
        self._take(host, -1)
        if left:
            host.waiting.append((left, then))
        self._list(host)
        self._serve()
        if not left:
            then()

    def _take(self, host: Host, cores: int) -> None:
        self._free -= cores
        host.free -= cores
        self.busy.add(cores)


Step: TypeAlias = tuple[Host | None, float]
"""A part of a turn: seconds of processor time of a host, or of waiting where there is none."""


class Worker:
    """A worker process and the turns in its slots, by session."""

    def __init__(self) -> None:
        self.host = Host(1)
        self.alive = True
        self.attempts: dict[int, Attempt] = {}


class Attempt(msgspec.Struct):
    """A turn in a slot; it begins once the lease of its session is free."""

    turn: Turn
    worker: Worker
    steps: Iterator[Step]
    began: bool = False


class Simulation:
    """One run of a plan; ``run`` may be called once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._rng = np.random.default_rng(plan.seed)
        self._timeline = Timeline()
        self._cores = Cores(self._timeline, plan.cores, plan.quantum_s)
        self._database = Host(plan.cores)
        self._queue = FairQueue()
        self._free: deque[Worker] = deque()
        self._leased_until = [0.0] * plan.sessions
        self._left = [plan.turns] * plan.sessions
        self._in_system = Level(self._timeline)
        self._held = Level(self._timeline)
        self._offered = Level(self._timeline)
        self._finished: list[Turn] = []
        self._recoveries: list[float] = []
        self._deaths = 0

    def run(self) -> Run:
        """Run until every session has had its turns."""
        for _ in range(self._plan.workers):
            self._begin_worker()
        self._begin_sessions()
        while len(self._finished) < self._plan.sessions * self._plan.turns:
            self._timeline.step()
        return Run(
            turns=self._finished,
            seconds=self._timeline.now,
            turn_seconds=self._in_system.area,
            slots_used=self._held.area / (self._offered.area or 1.0),
            cores_used=self._cores.busy.area / (self._timeline.now * self._plan.cores or 1.0),
            deaths=self._deaths,
            recoveries=self._recoveries,
        )

    def _begin_sessions(self) -> None:
        begin = 0.0
        for session in range(self._plan.sessions):
            if self._plan.arrivals_per_s:
                begin += self._rng.exponential(1 / self._plan.arrivals_per_s)
                self._timeline.after(begin, partial(self._ask, session))
            else:
                self._think(session)

    def _think(self, session: int) -> None:
        seconds = self._rng.exponential(self._plan.think_s)
        self._timeline.after(seconds, lambda: self._ask(session))

    def _ask(self, session: int) -> None:
        self._left[session] -= 1
        self._in_system.add(1)
        self._offer(Turn(session, session % self._plan.tenants, self._timeline.now))

    def _offer(self, turn: Turn) -> None:
        self._queue.put(turn)
        self._dispatch()

    def _dispatch(self) -> None:
        while self._queue and self._free:
            worker = self._free.popleft()
            if worker.alive:
                self._hold(worker, self._queue.take())

    def _hold(self, worker: Worker, turn: Turn) -> None:
        self._held.add(1)
        turn.deliveries += 1
        attempt = Attempt(turn, worker, self._steps(worker.host))
        worker.attempts[turn.session] = attempt
        lease_s = max(0.0, self._leased_until[turn.session] - self._timeline.now)
        self._timeline.after(lease_s, lambda: self._begin(attempt))

    def _steps(self, host: Host) -> Iterator[Step]:
        plan = self._plan
        for _ in range(plan.rounds):
            yield (host, plan.stretch * plan.worker_cpu_s / plan.rounds)
            yield (None, self._model_seconds())
        yield (self._database, plan.stretch * plan.database_cpu_s)
        yield (None, plan.latency_s)

    def _model_seconds(self) -> float:
        mean, spread = self._plan.model_s, self._plan.model_spread
        if not spread:
            return mean
        return self._rng.gamma(spread**-2, mean * spread**2)

    def _begin(self, attempt: Attempt) -> None:
        if not attempt.worker.alive:
            return
        attempt.began = True
        turn, now = attempt.turn, self._timeline.now
        if not math.isnan(turn.orphaned):
            self._recoveries.append(now - turn.orphaned)
            turn.orphaned = math.nan
        if math.isnan(turn.started):
            turn.started = now
        self._go_on(attempt)

    def _go_on(self, attempt: Attempt) -> None:
        if not attempt.worker.alive:
            return
        host, seconds = next((step for step in attempt.steps if step[1]), (None, 0.0))
        if host is not None:
            self._cores.run(host, seconds, lambda: self._go_on(attempt))
        elif seconds:
            self._timeline.after(seconds, lambda: self._go_on(attempt))
        else:
            self._finish(attempt)

    def _finish(self, attempt: Attempt) -> None:
        turn, worker = attempt.turn, attempt.worker
        turn.finished = self._timeline.now
        self._finished.append(turn)
        self._in_system.add(-1)
        self._held.add(-1)
        del worker.attempts[turn.session]
        self._free.append(worker)
        if self._left[turn.session]:
            self._think(turn.session)
        self._dispatch()

    def _begin_worker(self) -> None:
        worker = Worker()
        self._offered.add(self._plan.slots)
        self._free.extend([worker] * self._plan.slots)
        if self._plan.mean_life_s:
            life = self._rng.exponential(self._plan.mean_life_s)
            self._timeline.after(life, lambda: self._die(worker))
        self._dispatch()

    def _die(self, worker: Worker) -> None:
        worker.alive = False
        self._deaths += 1
        self._offered.add(-self._plan.slots)
        for attempt in worker.attempts.values():
            self._orphan(attempt)
        self._timeline.after(self._plan.restart_s, self._begin_worker)

    def _orphan(self, attempt: Attempt) -> None:
        turn, now = attempt.turn, self._timeline.now
        self._held.add(-1)
        if attempt.began:
            turn.orphaned = now
            self._leased_until[turn.session] = now + self._left_of(self._plan.lease_s)
        self._timeline.after(self._left_of(self._plan.redelivery_s), lambda: self._offer(turn))

    def _left_of(self, seconds: float) -> float:
        """What a lease or a delivery has left, which is renewed at a third of its time."""
        return seconds * self._rng.uniform(2 / 3, 1)
