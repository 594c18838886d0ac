"""A bank of many namespaces in PostgreSQL: write rate, disk, search, and recall in a large namespace.

    python benchmarks/postgres_scale.py [--records 1000000] [--namespaces 1000] [--large 0.05]
        [--vectors hashing|random] [--bank postgresql://...] [--json]

One namespace holds the share ``--large`` of all records, the others are of one size. Records of
twelve words with natural (Zipf) frequencies; their vectors have 384 dimensions: hashed words, or
random directions, the hardest for an approximate index. Without ``--bank`` it starts a PostgreSQL of
its own, with fsync. Searches are whole retrievals: embedding, vectors, words, fusion, records.
"""

import argparse
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import anyio
import msgspec
import numpy as np
from hybrid_search import DIMENSION, RandomEmbedder, record, texts_of
from rich.console import Console
from rich.table import Table
from servers import running_postgres

from assay.runtime.clock import SystemClock
from assay.stores.embeddings import HashingEmbedder
from assay.stores.postgres.bank import open_postgres_bank
from assay.stores.postgres.connection import SETTINGS, Connection
from assay.stores.postgres.database import Postgres
from assay.stores.postgres.hnsw import build
from assay.stores.protocols import Bank, Embedder
from assay.stores.records import MemoryRecord, Namespace

BATCH = 200
LOADERS = 4
WRITERS = 64
SEARCHERS = 8
LIMIT = 5
INDEX_SECONDS = 24 * 3600.0
DEPTH = 50
"""What a retrieval asks the vectors for."""
EMBEDDERS: dict[str, Callable[[], Embedder]] = {
    "hashing": lambda: HashingEmbedder(DIMENSION),
    "random": RandomEmbedder,
}


class Size(NamedTuple):
    """A namespace and how many records it gets."""

    namespace: Namespace
    records: int


def sizes_of(records: int, namespaces: int, large: float) -> list[Size]:
    """The large namespace first; the others share the rest evenly.

    Raises:
        ValueError: If a namespace would be empty.
    """
    first = round(records * large) if namespaces > 1 else records
    others = max(1, namespaces - 1)
    if min(first, (records - first) // others if namespaces > 1 else 1) < 1:
        raise ValueError(f"each namespace needs a record: {records} for {namespaces}, {large=}")
    parts = np.array_split(np.arange(records - first), others)
    small = [Size(Namespace(f"n{n}"), len(part)) for n, part in enumerate(parts, 1)]
    return [Size(Namespace("n0"), first), *(small if namespaces > 1 else ())]


def batches(size: Size) -> Iterator[list[MemoryRecord]]:
    """The records of a namespace; the same ones every time."""
    rng = np.random.default_rng(int(size.namespace[1:]))
    texts = texts_of(rng, size.records, 12)
    for start in range(0, size.records, BATCH):
        part = enumerate(texts[start : start + BATCH], start)
        yield [written(size.namespace, n, text) for n, text in part]


def written(namespace: Namespace, number: int, text: str) -> MemoryRecord:
    """A record of a namespace."""
    return msgspec.structs.replace(record(number, text), namespace=namespace)


async def each(
    work: Callable[[Any], Awaitable[None]], items: Sequence[Any], callers: int
) -> list[float]:
    """Work on every item, some at a time; gives the seconds of each."""
    seconds: list[float] = []
    waiting = iter(items)

    async def call() -> None:
        for item in waiting:
            start = time.perf_counter()
            await work(item)
            seconds.append(time.perf_counter() - start)

    async with anyio.create_task_group() as group:
        for _ in range(callers):
            group.start_soon(call)
    return seconds


async def timed(
    work: Callable[[Any], Awaitable[None]], items: Sequence[Any], callers: int
) -> float:
    """Seconds for all items."""
    start = time.perf_counter()
    await each(work, items, callers)
    return time.perf_counter() - start


async def load(bank: Bank, sizes: Sequence[Size]) -> dict[str, float]:
    """Write everything and make the vectors; both in records a second."""
    records = sum(size.records for size in sizes)

    async def write(size: Size) -> None:
        for batch in batches(size):
            await bank.store.write(batch)

    async def embed(size: Size) -> None:
        await bank.retriever.retrieve(size.namespace, "w1", limit=LIMIT, at=SystemClock().now())

    return {
        "load_records_per_s": records / await timed(write, sizes, LOADERS),
        "embed_records_per_s": records / await timed(embed, sizes, LOADERS),
    }


async def write_one_by_one(bank: Bank, sizes: Sequence[Size], count: int) -> dict[str, float]:
    """Acknowledged single writes a second into a full bank, namespaces in turn."""

    async def write(number: int) -> None:
        namespace = sizes[number % len(sizes)].namespace
        await bank.store.write([written(namespace, 10**9 + number, f"one more w{number}")])

    return {"writes_per_s": count / await timed(write, range(count), WRITERS)}


async def search(bank: Bank, sizes: Sequence[Size], count: int, name: str) -> dict[str, float]:
    """Retrievals in some namespaces: milliseconds of one at a time, and a second by several."""
    rng = np.random.default_rng(3)
    questions = texts_of(rng, count, 5)
    chosen = [sizes[int(place)] for place in rng.integers(len(sizes), size=count)]

    async def ask(number: int) -> None:
        await bank.retriever.retrieve(
            chosen[number].namespace, questions[number], limit=LIMIT, at=SystemClock().now()
        )

    await each(ask, range(min(count, 20)), 1)
    alone = 1000 * np.array(await each(ask, range(count), 1))
    together = await timed(ask, range(count), SEARCHERS)
    return {
        f"{name}_p50_ms": float(np.percentile(alone, 50)),
        f"{name}_p99_ms": float(np.percentile(alone, 99)),
        f"{name}_per_s": count / together,
    }


async def disk(connection: Connection) -> int:
    """Bytes of the database."""
    return int(await connection.fetchval("SELECT pg_database_size(current_database())"))


NUMBER = "SELECT number FROM namespaces WHERE name = $1"
_HNSW = ("hnsw.iterative_scan", "hnsw.ef_search")
ARMS = {
    "no_iteration": "SET hnsw.iterative_scan = off; SET hnsw.ef_search = 40",
    "as_the_bank": "; ".join(f"SET {name} = {SETTINGS[name]}" for name in _HNSW),
}
"""pgvector's defaults, and what the bank's own connections say."""
GLOBAL_INDEX = (
    f"CREATE INDEX ON vectors USING hnsw ((embedding::vector({DIMENSION})) vector_ip_ops)"
)
NEAREST = """
SELECT v.version FROM vectors v JOIN namespaces n ON n.number = v.namespace AND n.name = $2
ORDER BY v.embedding <#> $1::text::vector LIMIT $3
"""
APPROXIMATE = f"""
SELECT version FROM vectors WHERE namespace = {{number}}
ORDER BY embedding::vector({DIMENSION}) <#> $1::text::vector({DIMENSION}) LIMIT $2
"""  # noqa: S608 - our own words


async def recall(
    connection: Connection,
    size: Size,
    vectors: Sequence[str],
    name: str,
) -> dict[str, float]:
    """Share of the exact nearest that an approximate index gives, and how many rows it gives."""
    number = await connection.fetchval(NUMBER, size.namespace)
    depth = min(DEPTH, size.records)
    exact = [
        {row[0] for row in await connection.fetch(NEAREST, vector, size.namespace, depth)}
        for vector in vectors
    ]
    figures: dict[str, float] = {}
    # Sorting is what an exact search does: the planner shall not.
    await connection.execute("SET enable_sort = off")
    for arm, settings in ARMS.items():
        await connection.execute(settings)
        found = [
            {row[0] for row in await connection.fetch(APPROXIMATE.format(number=number), v, depth)}
            for v in vectors
        ]
        shares = [len(a & b) / len(a) for a, b in zip(exact, found, strict=True)]
        figures[f"{name}_{arm}_recall"] = float(np.mean(shares))
        figures[f"{name}_{arm}_rows_of_{depth}"] = float(np.mean([len(rows) for rows in found]))
    await connection.execute("RESET enable_sort")
    return figures


async def recalls(
    connection: Connection,
    sizes: Sequence[Size],
    embedder: Embedder,
    options: argparse.Namespace,
) -> dict[str, float]:
    """Recall of the large namespace's own index, and of one index over all, filtered."""
    texts = texts_of(np.random.default_rng(5), options.recall_queries, 5)
    rows = await embedder.embed(texts, kind="query")
    vectors = [str(row.tolist()) for row in rows]
    figures = await recall(connection, sizes[0], vectors, "own_index")
    if options.global_index:
        await connection.execute(GLOBAL_INDEX, timeout=INDEX_SECONDS)
        figures |= await recall(connection, sizes[-1], vectors, "global_index")
    return figures


async def measured(url: str, options: argparse.Namespace) -> dict[str, float]:
    """Every figure, in order of measuring."""
    sizes = sizes_of(options.records, options.namespaces, options.large)
    embedder = EMBEDDERS[options.vectors]()
    figures: dict[str, float] = {"records": options.records, "namespaces": len(sizes)}
    async with (
        open_postgres_bank(url, embedder=embedder, clock=SystemClock()) as bank,
        Postgres(url) as database,
        database.apart() as connection,
    ):
        empty = await disk(connection)
        figures |= await load(bank, sizes)
        start = time.perf_counter()
        await build(connection, await connection.fetchval(NUMBER, sizes[0].namespace), DIMENSION)
        figures |= {"index_seconds": time.perf_counter() - start}
        size = await disk(connection) - empty
        figures |= {"disk_gb": size / 1e9, "disk_bytes_a_record": size / options.records}
        figures |= await write_one_by_one(bank, sizes, options.writes)
        figures |= await search(bank, sizes[1:] or sizes, options.queries, "small")
        figures |= await search(bank, sizes[:1], options.queries, "large")
        figures |= await recalls(connection, sizes, embedder, options)
    return figures


def main() -> None:
    """Measure on the server asked for, or on one of our own, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--namespaces", type=int, default=1_000)
    parser.add_argument("--large", type=float, default=0.05, help="share of the large namespace")
    parser.add_argument("--vectors", choices=list(EMBEDDERS), default="hashing")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument(
        "--writes", type=int, default=2_000, help="single writes into the full bank"
    )
    parser.add_argument("--recall-queries", type=int, default=50)
    parser.add_argument(
        "--global-index", action="store_true", help="also one index over all, for comparison"
    )
    parser.add_argument("--bank", help="URL of an empty database; default: a server of our own")
    parser.add_argument("--json", action="store_true", help="one JSON object, and no table")
    options = parser.parse_args()
    with ExitStack() as stack:
        url = options.bank or stack.enter_context(running_postgres()).url
        figures = anyio.run(measured, url, options)
    if options.json:
        print(json.dumps(figures))
        return
    table = Table(title=f"PostgreSQL, vectors: {options.vectors}")
    table.add_column("figure")
    table.add_column("measured", justify="right")
    for name, value in figures.items():
        table.add_row(name, f"{value:,.2f}" if isinstance(value, float) else f"{value:,}")
    Console().print(table)


if __name__ == "__main__":
    main()
