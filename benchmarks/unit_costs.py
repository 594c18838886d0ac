"""What one record, turn, cached answer and message costs, on a real PostgreSQL and NATS of its own.

    python benchmarks/unit_costs.py [--out benchmarks/units.json] [--turns 150] [--records 5000]

Scripted model, hashing embedder of 384 dimensions, guard ``panel``, K = 5, a namespace of 1,000
records, PostgreSQL with fsync. What model and embedder burn themselves is taken off. Sizes are of
tables with their indexes. The log of a turn is measured with a checkpoint before each, so that every
page it touches is logged whole: what a bank much larger than one turn's pages writes at most. Prints
the figures and writes them for ``capacity.py``.
"""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import msgspec
import numpy as np
from hybrid_search import DIMENSION, RandomEmbedder, record, texts_of
from servers import (
    Running,
    children,
    cpu_seconds,
    private_mb,
    resident_mb,
    running_nats,
    running_postgres,
)
from turn_cpu import FACTS, IMPORTED, Meter, MeteredEmbedder, MeteredModel

from assay.guards.protocols import Ledger
from assay.runtime.clock import SystemClock
from assay.runtime.distributed.hub import open_hub
from assay.runtime.jobs import Job, JobQueue
from assay.runtime.session import Session
from assay.runtime.wiring import open_runtime
from assay.stores.postgres.bank import open_postgres_bank
from assay.stores.protocols import Bank
from assay.stores.records import Namespace

UNITS = Path(__file__).with_name("units.json")
NAMESPACE_RECORDS = 1_000
WARM_UP = 10
LOGGED = 10
MESSAGES = 5_000
JOBS = 500
TENANTS = 8
CALLERS = 32
MESSAGE_BYTES = 300
BATCH = 500

SIZE = "SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest($1::text[]) AS name"
TURN_TABLES = ("journal", "sessions", "turns", "turn_postings", "leases")
RECORD_TABLES = ("records", "record_postings", "vectors", "superseded")
CACHE_TABLES = ("cache", "cache_records")


class Server:
    """What a database says of itself, over one connection apart."""

    def __init__(self, running: Running, connection: Any) -> None:  # noqa: ANN401 - asyncpg is untyped
        self.pid = running.pid
        self._connection = connection

    async def value(self, sql: str, *values: object) -> Any:  # noqa: ANN401 - the statement decides
        """The one value of a statement."""
        return await self._connection.fetchval(sql, *values)

    async def size(self, tables: Sequence[str]) -> int:
        """Bytes of tables with their indexes."""
        return int(await self.value(SIZE, list(tables)))

    async def rows(self, table: str) -> int:
        """How many rows a table has."""
        return int(await self.value(f"SELECT count(*) FROM {table}"))  # noqa: S608 - our own words

    async def logged(self) -> int:
        """Bytes of log ever written."""
        return int(await self.value("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))


async def fill(bank: Bank, namespace: Namespace, records: int, seed: int) -> None:
    """Write records of twelve ordinary words, and have their vectors made."""
    texts = texts_of(np.random.default_rng(seed), records, 12)
    for start in range(0, records, BATCH):
        batch = enumerate(texts[start : start + BATCH], start)
        await bank.store.write(
            [msgspec.structs.replace(record(n, text), namespace=namespace) for n, text in batch]
        )
    await bank.retriever.retrieve(namespace, texts[0], limit=5, at=SystemClock().now())


async def record_costs(server: Server, url: str, records: int) -> dict[str, float]:
    """Bytes of a record with everything that finds it, and of its vector in an approximate index."""
    async with open_postgres_bank(url, embedder=RandomEmbedder(), clock=SystemClock()) as bank:
        for first in range(0, records, NAMESPACE_RECORDS):
            await fill(bank, Namespace(f"n{first}"), min(NAMESPACE_RECORDS, records - first), first)
    size = await server.size(RECORD_TABLES)
    await server.value(f"CREATE TABLE scratch (e vector({DIMENSION}))")
    await server.value("INSERT INTO scratch SELECT embedding FROM vectors")
    await server.value("CREATE INDEX scratch_index ON scratch USING hnsw (e vector_ip_ops)")
    approximate = await server.value("SELECT pg_relation_size('scratch_index')")
    return {"record_bytes": size / records, "hnsw_bytes": approximate / records}


async def turn_costs(server: Server, url: str, turns: int) -> dict[str, float]:
    """What a turn costs the worker, the database and the disk."""
    meter = Meter()
    embedder = MeteredEmbedder(meter, DIMENSION)
    async with open_postgres_bank(url, embedder=embedder, clock=SystemClock()) as bank:
        await fill(bank, Namespace("u"), NAMESPACE_RECORDS, 1)
    model = MeteredModel(meter)
    async with open_runtime(model=model, embedder=embedder, guard="panel", bank=url) as runtime:
        for fact in FACTS:
            await runtime.remember("u", fact, origin=IMPORTED)
        session = runtime.session(user="u")
        await ask(session, range(WARM_UP))
        before = await state(server, meter)
        guarded = await ask(session, range(WARM_UP, WARM_UP + turns))
        after = await state(server, meter)
        spent = {name: (after[name] - before[name]) / turns for name in before}
        log = await logged_turns(server, session, WARM_UP + turns)
        backends = [private_mb(pid) for pid in await backends_of(server)]
    rows = spent["cache_rows"] or 1.0
    return {
        "turn_bytes": spent["turn_size"],
        "cache_row_bytes": spent["cache_size"] / rows,
        "turn_wal_bytes": log,
        "turn_evaluations": guarded.evaluations / turns,
        "turn_rounds": guarded.rounds / turns + 1,
        "turn_entries": spent["entries"],
        "turn_worker_cpu_ms": 1000 * spent["worker_cpu"],
        "turn_database_cpu_ms": 1000 * spent["database_cpu"],
        "worker_mb": resident_mb(os.getpid()),
        "backend_mb": statistics.mean(backends),
    }


async def ask(session: Session, numbers: range) -> Ledger:
    """Take turns; gives what the guard spent."""
    spent = Ledger()
    for number in numbers:
        reply = await session.send(f"What is the cat number {number} called?")
        spent += reply.decision.spent
    return spent


async def state(server: Server, meter: Meter) -> dict[str, float]:
    """Everything that grows with the turns."""
    return {
        "turn_size": await server.size(TURN_TABLES),
        "cache_size": await server.size(CACHE_TABLES),
        "cache_rows": await server.rows("cache"),
        "entries": await server.rows("journal"),
        "worker_cpu": time.process_time() - meter.seconds,
        "database_cpu": cpu_seconds(server.pid),
    }


async def logged_turns(server: Server, session: Session, first: int) -> float:
    """Bytes of log a turn writes when each page is touched for the first time."""
    written: list[int] = []
    for number in range(first, first + LOGGED):
        await server.value("CHECKPOINT")
        before = await server.logged()
        await ask(session, range(number, number + 1))
        written.append(await server.logged() - before)
    return statistics.mean(written)


async def backends_of(server: Server) -> list[int]:
    """The server's processes that serve our pool."""
    listed = "SELECT array_agg(pid) FROM pg_stat_activity WHERE application_name = 'assay'"
    alive = set(children(server.pid))
    return [pid for pid in await server.value(listed) if pid in alive]


async def bus_costs(running: Running) -> dict[str, float | str]:
    """What a message kept in a stream on files costs the server, and what a whole job does."""
    nats = import_module("nats")  # heavy, as everywhere
    client = await nats.connect(running.url)
    stream = client.jetstream()
    await stream.add_stream(name="costs", subjects=["costs.>"])
    body = b"x" * MESSAGE_BYTES

    async def publish(number: int) -> None:
        await stream.publish(f"costs.{number}", body, headers={"Nats-Msg-Id": str(number)})

    message = await each_costs(running.pid, publish, MESSAGES)
    version = str(client.connected_server_version).strip("<>")
    await client.close()
    async with open_hub(running.url) as hub, working(hub.jobs):

        async def submit(number: int) -> None:
            namespace = Namespace(f"n{number % TENANTS}")
            job = Job(f"job{number}", "turn", namespace, namespace, body)
            await hub.jobs.submit(job, deadline=60.0)

        job = await each_costs(running.pid, submit, JOBS)
    return {
        "nats": version,
        "bus_messages_per_s": message.a_second,
        "bus_message_cpu_us": message.cpu_us,
        "bus_jobs_per_s": job.a_second,
        "bus_job_cpu_us": job.cpu_us,
    }


@asynccontextmanager
async def working(jobs: JobQueue) -> AsyncGenerator[None]:
    """A worker that answers at once, for a block."""
    async with anyio.create_task_group() as group:
        stopping = anyio.Event()
        group.start_soon(partial(jobs.work, ["turn"], echo, concurrency=CALLERS, stopping=stopping))
        yield
        stopping.set()


async def echo(job: Job, _: Callable[[bytes], None]) -> bytes:
    """Do a job of no work."""
    return job.payload


class Costs(NamedTuple):
    """How many of one kind were done a second, and the processor time of the server for each."""

    a_second: float
    cpu_us: float


async def each_costs(pid: int, work: Callable[[int], Awaitable[None]], count: int) -> Costs:
    """Do something many times, several at once."""

    async def call(first: int) -> None:
        for number in range(first, count, CALLERS):
            await work(number)

    burnt, start = cpu_seconds(pid), time.perf_counter()
    async with anyio.create_task_group() as group:
        for caller in range(CALLERS):
            group.start_soon(call, caller)
    seconds = time.perf_counter() - start
    return Costs(count / seconds, 1e6 * (cpu_seconds(pid) - burnt) / count)


async def measured(turns: int, records: int) -> dict[str, float | str]:
    """Every unit cost."""
    costs: dict[str, float | str] = {}
    asyncpg = import_module("asyncpg")  # heavy, as everywhere
    for measure, count in ((turn_costs, turns), (record_costs, records)):
        with running_postgres() as running:
            connection = await asyncpg.connect(running.url)
            server = Server(running, connection)
            version = await server.value("SHOW server_version")
            costs |= await measure(server, running.url, count)
            await connection.close()
    with running_nats() as running:
        costs |= await bus_costs(running)
    servers = f"PostgreSQL {version}, {costs.pop('nats')}"
    where = f"{servers}, Python {platform.python_version()}, {os.cpu_count()} cores"
    return {"measured_on": where} | costs


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=UNITS, help="file to write (units.json)")
    parser.add_argument("--turns", type=int, default=150)
    parser.add_argument("--records", type=int, default=5_000)
    options = parser.parse_args()
    command = f"benchmarks/unit_costs.py --turns {options.turns} --records {options.records}"
    costs = anyio.run(measured, options.turns, options.records)
    kept = {
        name: float(f"{value:.4g}") if isinstance(value, float) else value
        for name, value in (costs | {"command": command}).items()
    }
    content = json.dumps(kept, indent=2)
    options.out.write_text(content + "\n")
    print(content)


if __name__ == "__main__":
    main()
