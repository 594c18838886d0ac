"""CPU of one chat turn beside model and embedder: scripted model, hashing embedder, K = 5.

Run: ``python benchmarks/turn_cpu.py [--guard NAME]``. What the model and the embedder themselves burn is
measured by wrapping both, and taken off. Prints one JSON object with the ratio of a durable,
encrypted turn to one in memory; the target is under 8 ms.
"""

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import anyio

from assay.guards.protocols import Completion, DeltaSink, Request
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.session import Session
from assay.runtime.wiring import open_runtime
from assay.stores.embeddings import HashingEmbedder
from assay.stores.protocols import FloatMatrix
from assay.stores.records import Origin

TURNS = 60
WARM_UP = 10
FACTS = (
    "My cat is called Miso.",
    "My cat eats salmon on Sundays.",
    "The cat flap opens at seven.",
    "Our cat was born in Porto.",
    "The cat doctor is Dr. Alves.",
    "A neighbour thinks the cat is called Max.",
)
IMPORTED = Origin(writer="user", channel="import:benchmark")


class Meter:
    """CPU seconds spent inside what is measured apart."""

    def __init__(self) -> None:
        self.seconds = 0.0


class MeteredModel(ScriptedModel):
    """The plain reader, its own CPU counted."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self._meter = meter

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        start = time.thread_time()
        completion = await super().complete(request, sink=sink)
        self._meter.seconds += time.thread_time() - start
        return completion


class MeteredEmbedder(HashingEmbedder):
    """The hashing embedder, its own CPU counted; it yields once, which others may use."""

    def __init__(self, meter: Meter, dimension: int = 256) -> None:
        super().__init__(dimension)
        self._meter = meter

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["query", "passage"]
    ) -> FloatMatrix:
        start = time.thread_time()
        vectors = await super().embed(texts, kind=kind)
        self._meter.seconds += time.thread_time() - start
        return vectors


async def measure(guard: str, bank: Path | None) -> dict[str, float]:
    """Milliseconds of CPU per turn, medians over turns with different questions."""
    meter = Meter()
    async with open_runtime(
        model=MeteredModel(meter), embedder=MeteredEmbedder(meter), guard=guard, bank=bank
    ) as runtime:
        for fact in FACTS:
            await runtime.remember("u", fact, origin=IMPORTED)
        session = runtime.session(user="u")
        turns = [await _turn(session, meter, number) for number in range(WARM_UP + TURNS)]
    measured = turns[WARM_UP:]
    return {
        "turn_ms": round(statistics.median(own for own, _ in measured), 2),
        "model_and_embedder_ms": round(statistics.median(apart for _, apart in measured), 2),
    }


async def _turn(session: Session, meter: Meter, number: int) -> tuple[float, float]:
    apart, start = meter.seconds, time.process_time()
    reply = await session.send(f"What is the cat number {number} called?")
    spent = time.process_time() - start
    if len(reply.decision.judgements) != 5:  # noqa: PLR2004  # K
        raise SystemExit("expected five candidates")
    inside = meter.seconds - apart
    return (spent - inside) * 1000, inside * 1000


def main() -> None:
    """Measure in memory and on SQLite, and print both."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--guard", default="panel")
    guard = parser.parse_args().guard
    with TemporaryDirectory() as folder:
        in_memory = anyio.run(measure, guard, None)
        sqlite = anyio.run(measure, guard, Path(folder) / "bank")
    figures = {
        "guard": guard,
        "k": 5,
        "turns": TURNS,
        "in_memory": in_memory,
        "sqlite": sqlite,
        "durability_ratio": round(sqlite["turn_ms"] / in_memory["turn_ms"], 2),
        "target_ms": 8.0,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
