"""Real servers for the benchmarks, those of the tests but as durable as in earnest, and what they burn."""

import os
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "shared_buffers": "512MB",
    "maintenance_work_mem": "512MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
}


class Running(NamedTuple):
    """A server.

    Attributes:
        url: Where it listens.
        pid: Its first process.
    """

    url: str
    pid: int


@contextmanager
def running_postgres() -> Generator[Running]:
    """A new cluster of PostgreSQL for a block, and an empty database in it."""
    tests = of_the_tests("servers")
    with tests.running_postgres() as server:
        for name, value in SETTINGS.items():
            server.sql(f"ALTER SYSTEM SET {name} = '{value}'")
        server.stop("fast")
        server.start()
        yield Running(server.fresh_database(), server.pid)


@contextmanager
def running_nats() -> Generator[Running]:
    """A server with JetStream on files for a block."""
    tests = of_the_tests("nats_servers")
    with tempfile.TemporaryDirectory() as folder, tests.running_nats(Path(folder)) as server:
        (pid,) = (child for child in children(os.getpid()) if _name(child) == "nats-server")
        yield Running(server.url, pid)


def of_the_tests(name: str) -> Any:  # noqa: ANN401 - a script has no package to import it from
    """A module of the tests."""
    sys.path.append(str(ROOT))
    return import_module(f"tests.{name}")


def cpu_seconds(pid: int) -> float:
    """Processor seconds of a process, its children, and those of them that have ended."""
    fields = _stat(pid)
    own = sum(fields[11:15])
    return (own + sum(sum(_stat(child)[11:13]) for child in children(pid))) / TICKS_A_SECOND


def stretch(seconds: float = 1.0) -> float:
    """Seconds that a second of processor time takes on this machine now: 1 if nobody else uses it."""
    start, burnt = time.perf_counter(), time.process_time()
    while time.process_time() - burnt < seconds:
        pass
    return (time.perf_counter() - start) / seconds


def children(pid: int) -> Sequence[int]:
    """The processes a process has started and that run."""
    tasks = Path(f"/proc/{pid}/task")
    return [
        int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()
    ]


def private_mb(pid: int) -> float:
    """Memory that a process shares with nobody, in MB of 10^6 bytes."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) * 1024 / 1e6


def resident_mb(pid: int) -> float:
    """Memory of a process that is not swapped out, in MB of 10^6 bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def _stat(pid: int) -> list[int]:
    """The numbers of /proc/PID/stat after the name; zeros if the process has just ended."""
    try:
        content = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return [0] * 50
    return [0, *map(int, content.rpartition(")")[2].split()[1:])]
