"""Where faults strike: a PostgreSQL and a NATS server, workers that are started again, and their network."""

import json
import os
import select
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from subprocess import PIPE
from typing import Any, NamedTuple, cast

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.text import TextReceiveStream
from fault_network import Ways, ways
from servers import SETTINGS, children, of_the_tests

from assay.runtime.nats.dead_letters import dead_letters
from assay.runtime.nats.streams import open_nats
from assay.stores.postgres.database import Postgres

FUSED_WORKER = Path(__file__).with_name("fused_worker.py")
START_SECONDS = 30.0
_KILLED = -signal.SIGKILL


class Death(NamedTuple):
    """The end of a worker.

    Attributes:
        worker: Its number.
        at: Seconds on anyio's clock.
        whose: The namespace whose turn came to a fuse; empty: it was another death.
    """

    worker: int
    at: float
    whose: str


class Worker:
    """A worker that is started again whenever it ends.

    Attributes:
        number: From 0.
        pid: Of the one that runs now.
        unplanned: How often it ended by itself.
    """

    def __init__(self, number: int, told: Callable[[Death], None], fuses: Path) -> None:
        self.number = number
        self.pid = 0
        self.unplanned = 0
        self._works = False
        self._changed = anyio.Event()
        self._told = told
        self._fuses = fuses

    async def follow(self, process: Process) -> None:
        """Read what it says until it says no more."""
        rest = ""
        async for text in TextReceiveStream(cast("ByteReceiveStream", process.stdout)):  # a pipe
            *lines, rest = (rest + text).split("\n")
            for line in lines:
                self._heard(json.loads(line))

    async def at_work(self) -> None:
        """Wait until it works."""
        while not self._works:
            await self._changed.wait()

    def kill(self) -> None:
        """End the one that runs now, without a word."""
        os.kill(self.pid, signal.SIGKILL)

    def _heard(self, said: Mapping[str, Any]) -> None:
        match said["event"]:
            case "process.started":
                self.pid = said["pid"]
            case "worker.started":
                self._works = True
                self._changed.set()
                self._changed = anyio.Event()
            case "process.ended":
                self._works = False
                self.unplanned += said["status"] != _KILLED
                self._told(Death(self.number, anyio.current_time(), self._burnt()))

    def _burnt(self) -> str:
        """Whose turn it was when a fuse burnt; each is counted once."""
        for file in self._fuses.glob("*.burnt"):
            whose = file.read_text()
            file.unlink()
            return whose
        return ""


class Stage:
    """All the processes, and what may happen to them.

    Attributes:
        bank: URL of the database.
        bus: URL of the bus.
        ways: From workers to servers.
        workers: In order of their numbers.
        deaths: Of workers, as they happen.
    """

    def __init__(self, folder: Path, postgres: Any, nats: Any, between: Ways) -> None:  # noqa: ANN401 - of the tests
        self.folder = folder
        self.fuses = folder / "fuses"
        self.fuses.mkdir()
        self.bank = postgres.fresh_database().replace("127.0.0.1", between.host)
        self.bus = nats.url
        self.ways = between
        self.workers: list[Worker] = []
        self._told, self.deaths = anyio.create_memory_object_stream[Death](1_000)
        self._arrived = anyio.Event()
        self._postgres = postgres
        self._nats = nats

    async def run_worker(
        self, number: int, model_ms: float, options: Sequence[str], scope: anyio.CancelScope
    ) -> None:
        """Keep one worker running until cancelled."""
        bank = await self.ways.url(number, self.bank)
        bus = await self.ways.url(number, self.bus)
        program = (sys.executable, str(FUSED_WORKER), str(self.fuses), str(model_ms))
        command = [*self.ways.command(number), *program, "--bank", bank, "--bus", bus, *options]
        worker = Worker(number, self._told.send_nowait, self.fuses)
        self.workers.append(worker)
        self._arrived.set()
        self._arrived = anyio.Event()
        with (self.folder / f"worker{number}.log").open("w") as log:
            process = await anyio.open_process(
                command, stdin=None, stdout=PIPE, stderr=log, start_new_session=True
            )
            try:
                await worker.follow(process)
                scope.cancel()  # it does not end by itself
            finally:
                os.killpg(process.pid, signal.SIGKILL)
                with anyio.CancelScope(shield=True):
                    await process.wait()

    @property
    def database_pid(self) -> int:
        """The first process of PostgreSQL."""
        return int(self._postgres.pid)

    async def worker(self, number: int) -> Worker:
        """One of them, as soon as there is such a process."""
        while number >= len(self.workers):
            await self._arrived.wait()
        return self.workers[number]

    async def asked(self, sql: str, *values: object) -> list[Any]:
        """The rows of a statement."""
        async with Postgres(self.bank, connections=1) as database:
            return await database.fetch(sql, *values)

    async def put_aside(self) -> int:
        """Jobs that were tried too often."""
        async with open_nats(self.bus) as connection:
            return len(await dead_letters(connection, limit=1_000))

    def light(self, point: str) -> None:
        """Let the next worker die that comes to this point of a turn."""
        (self.fuses / point).touch()

    async def crash_postgres(self, away: float) -> None:
        """Kill every process of the server, and start it again some seconds later."""
        await anyio.to_thread.run_sync(_kill_with_children, self._postgres.pid)
        await anyio.to_thread.run_sync(_unlock, self._postgres)
        await anyio.sleep(away)
        await anyio.to_thread.run_sync(self._postgres.start)

    async def crash_nats(self, away: float) -> None:
        """Kill the server, and start it again some seconds later."""
        await anyio.to_thread.run_sync(self._nats.kill)
        await anyio.sleep(away)
        await anyio.to_thread.run_sync(self._nats.start)

    def logs(self) -> str:
        """The last words of each worker on its standard error."""
        return "\n".join(
            f"{file.name}: {file.read_text()[-2000:]}" for file in self.folder.glob("worker*.log")
        )


def _unlock(server: Any) -> None:  # noqa: ANN401 - of the tests
    """Remove the locks of a dead server: as long as nobody reaps it, its pid looks alive."""
    (server.data / "postmaster.pid").unlink()
    (server.folder / f".s.PGSQL.{server.port}.lock").unlink()


def _kill_with_children(pid: int) -> None:
    """Kill a process and its children, which need not be ours, and wait until none is left."""
    os.kill(pid, signal.SIGSTOP)  # so that it starts no more of them
    pids = [pid, *children(pid)]
    handles: list[int] = []
    for one in pids:
        with suppress(ProcessLookupError):
            handles.append(os.pidfd_open(one))
    for handle in handles:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    for handle in handles:
        select.select([handle], [], [])
        os.close(handle)


@asynccontextmanager
async def staged(
    toml: str, *, workers: int, jobs: int, proxies: bool = False, model_ms: float = 0.0
) -> AsyncGenerator[Stage]:
    """Servers and workers for the length of the block; every worker works when it begins.

    Args:
        toml: Settings of the workers.
        workers: How many.
        jobs: Turns that each takes at once.
        proxies: Cut the network by proxies, whatever the machine allows.
        model_ms: Time of a call of the model.
    """
    async with AsyncExitStack() as stack:
        between = await stack.enter_async_context(ways(workers, proxies=proxies))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-faults-")))
        postgres = stack.enter_context(of_the_tests("servers").running_postgres())
        await anyio.to_thread.run_sync(_prepare, postgres, between.host)
        nats_folder = folder / "nats"
        nats_folder.mkdir()
        nats = of_the_tests("nats_servers").NatsServer(nats_folder, host=between.host)
        nats.start()
        stack.callback(nats.kill)
        stage = Stage(folder, postgres, nats, between)
        config = folder / "assay.toml"
        config.write_text(toml)
        options = ("--config", str(config), "--model", "scripted", "--embedder", "hashing")
        async with anyio.create_task_group() as group:
            for number in range(workers):
                words = (*options, "--concurrency", str(jobs))
                group.start_soon(stage.run_worker, number, model_ms, words, group.cancel_scope)
            await _all_work(stage, workers)
            yield stage
            group.cancel_scope.cancel()


async def _all_work(stage: Stage, workers: int) -> None:
    with anyio.move_on_after(START_SECONDS):
        for number in range(workers):
            await (await stage.worker(number)).at_work()
        return
    raise SystemExit(f"the workers did not start within {START_SECONDS:g} s:\n{stage.logs()}")


def _prepare(server: Any, host: str) -> None:  # noqa: ANN401 - of the tests
    """As durable as in earnest, and reachable from the workers."""
    with (server.data / "pg_hba.conf").open("a") as file:
        file.write(f"host all all {host}/24 scram-sha-256\n")
    for name, value in {**SETTINGS, "listen_addresses": host, "shared_buffers": "128MB"}.items():
        server.sql(f"ALTER SYSTEM SET {name} = '{value}'")
    server.stop("fast")
    server.start()
