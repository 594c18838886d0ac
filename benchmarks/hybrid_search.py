"""Hybrid search in one namespace, beside FAISS Flat and FTS5 called directly.

    python benchmarks/hybrid_search.py [--records 10000 100000] [--queries 200] [--limit 5]

Records of twelve words with natural (Zipf) frequencies and random unit vectors of 384 dimensions.
A query is five words, of the same frequencies (``common``: most records match) or evenly out of
the vocabulary (``rare``: few match, so that what is around the searches weighs most). Both sides embed the query, take the 50 best of each list and fuse nothing
(direct) or fuse, check what holds and fetch the records (Assay). Queries alternate; medians are
compared, of wall time and of CPU time: on a busy machine a thread that has to be woken waits its
turn, which the direct calls, on one thread, never do. Target: at most 1.5 of the direct calls.
"""

import argparse
import sqlite3
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args

import anyio
import numpy as np
from rich.console import Console
from rich.table import Table

from assay.stores.bank import FILE_NAME, open_bank
from assay.stores.protocols import Bank, FloatMatrix
from assay.stores.records import MemoryRecord, Namespace, Origin, RecordId
from assay.stores.rows import match_expression

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANN = Namespace("ann")
DIMENSION = 384
DEPTH = 50
VOCABULARY = 20_000
BATCH = 1000


Words: TypeAlias = Literal["common", "rare"]


class Spent(NamedTuple):
    """Milliseconds of one search."""

    wall: float
    cpu: float


class Median(NamedTuple):
    """Medians over the queries of one kind."""

    words: Words
    ours: Spent
    direct: Spent


class NoonClock:
    """Always noon."""

    def now(self) -> datetime:
        """Noon."""
        return NOON

    def monotonic(self) -> float:
        """Zero."""
        return 0.0


class RandomEmbedder:
    """A random unit vector for each text, the same one every time."""

    name = "random@1"
    dimension = DIMENSION

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["query", "passage"]
    ) -> FloatMatrix:
        """Shape ``(len(texts), 384)``; ``kind`` makes no difference."""
        return np.stack([vector_of(text) for text in texts])


def vector_of(text: str) -> FloatMatrix:
    """A unit vector drawn with the text as the seed."""
    rng = np.random.default_rng(zlib.crc32(text.encode()))
    row = rng.standard_normal(DIMENSION, dtype=np.float32)
    return row / np.float32(np.linalg.norm(row))


def texts_of(
    rng: np.random.Generator, count: int, length: int, words: Words = "common"
) -> list[str]:
    """Texts of words with Zipf frequencies, or evenly out of the vocabulary."""
    shares = np.arange(1, VOCABULARY + 1) ** (-1.0 if words == "common" else 0.0)
    draws = rng.choice(VOCABULARY, size=(count, length), p=shares / shares.sum())
    return [" ".join(f"w{word}" for word in row) for row in draws]


def record(number: int, text: str) -> MemoryRecord:
    """A record."""
    return MemoryRecord(
        id=RecordId(f"r{number}"),
        namespace=ANN,
        text=text,
        origin=Origin(writer="user", channel="chat"),
        ingested_at=NOON,
    )


def direct_search(path: Path, texts: Sequence[str]) -> Callable[[str], None]:
    """FAISS and FTS5 with nothing around them."""
    faiss = import_module("faiss")  # untyped
    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(DIMENSION)
    index.add(np.stack([vector_of(text) for text in texts]))
    connection = sqlite3.connect(path)

    def search(query: str) -> None:
        index.search(vector_of(query)[None, :], DEPTH)
        connection.execute(
            "SELECT rowid, rank FROM records_words WHERE records_words MATCH ? "
            "AND rank MATCH 'bm25(0.0, 1.0)' ORDER BY rank LIMIT ?",
            (match_expression(ANN, query), DEPTH),
        ).fetchall()

    return search


async def medians(folder: Path, records: int, queries: int, limit: int) -> list[Median]:
    """Medians for both kinds of query."""
    rng = np.random.default_rng(7)
    texts = texts_of(rng, records, 12)
    async with open_bank(folder, embedder=RandomEmbedder(), clock=NoonClock()) as bank:
        for start in range(0, records, BATCH):
            batch = texts[start : start + BATCH]
            await bank.store.write([record(start + n, text) for n, text in enumerate(batch)])
        await bank.retriever.retrieve(ANN, texts[0], limit=limit, at=NOON)
        direct = direct_search(folder / FILE_NAME, texts)
        return [
            await median(bank, direct, words, texts_of(rng, queries, 5, words), limit)
            for words in get_args(Words)
        ]


async def median(
    bank: Bank, direct: Callable[[str], None], words: Words, queries: Sequence[str], limit: int
) -> Median:
    """Medians over queries, each asked of both."""
    ours: list[Spent] = []
    theirs: list[Spent] = []
    for query in queries:
        start = now()
        await bank.retriever.retrieve(ANN, query, limit=limit, at=NOON)
        between = now()
        direct(query)
        ours.append(Spent(between.wall - start.wall, between.cpu - start.cpu))
        end = now()
        theirs.append(Spent(end.wall - between.wall, end.cpu - between.cpu))
    return Median(words, middle(ours), middle(theirs))


def now() -> Spent:
    """Both clocks."""
    return Spent(1000 * time.perf_counter(), 1000 * time.process_time())


def middle(spent: Sequence[Spent]) -> Spent:
    """Median of each clock."""
    walls, cpus = zip(*spent, strict=True)
    return Spent(statistics.median(walls), statistics.median(cpus))


def main() -> None:
    """Run each size and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--limit", type=int, default=5)
    options = parser.parse_args()
    table = Table(title="One search in one namespace, median")
    for column in ("records", "words", "clock", "Assay, ms", "direct, ms", "ratio"):
        table.add_column(column, justify="right")
    for records in options.records:
        with tempfile.TemporaryDirectory() as folder:
            found = anyio.run(medians, Path(folder), records, options.queries, options.limit)
        for words, ours, direct in found:
            for clock, a, b in zip(Spent._fields, ours, direct, strict=True):
                table.add_row(f"{records:,}", words, clock, f"{a:.2f}", f"{b:.2f}", f"{a / b:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
