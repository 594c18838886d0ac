"""CPU time the laboratory adds to an evaluation, beside a model that answers at once.

Run: ``python benchmarks/laboratory_overhead.py``. Prints CPU microseconds per evaluation: asking the
model directly; through the laboratory, live (rendered, looked up, reserved, asked, settled, counted
and kept in an in-memory cache), in one batch and one by one; answered by the cache; and put again to
the same laboratory. Garbage collection is off while a block is timed; the best of several is shown.
"""

import gc
import time
from collections.abc import Awaitable, Callable, Sequence

import anyio

from assay.guards.budget import Budget, Limits
from assay.guards.coalitions import Coalition, members
from assay.guards.laboratory import Laboratory
from assay.guards.protocols import (
    Ask,
    Completion,
    DeltaSink,
    Message,
    Parameters,
    Renderer,
    Request,
    Usage,
)
from assay.stores.memory import InMemoryCache
from assay.stores.protocols import Cache
from assay.stores.records import Namespace, RecordId

CANDIDATES = 11
EVALUATIONS = 1 << CANDIDATES
REPEATS = 5
TARGET = 100.0
ANSWER = Completion(text="Lisbon", usage=Usage(prompt_tokens=200, completion_tokens=4))
TEXTS = [f"Record {i}: a statement of ordinary length about one thing." for i in range(CANDIDATES)]


class InstantModel:
    """Answers without awaiting anything."""

    identity = "instant"
    context_tokens = 8192

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """An estimate of no cost."""
        return 200

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        """The same for all."""
        return ANSWER


def render(ask: Ask) -> Request:
    """A prompt of the usual shape: instructions, then the coalition's texts."""
    shown = "\n".join(TEXTS[i] for i in members(ask.coalition))
    return Request(
        model="instant",
        messages=(
            Message(role="system", content="Answer from the memories."),
            Message(role="user", content=f"{shown}\nWhere does Ann live?"),
        ),
        parameters=Parameters(max_tokens=64, seed=ask.draw),
    )


def bench(cache: Cache, *, renderer: Renderer = render) -> Laboratory:
    """A laboratory with every limit set, as in a turn."""
    return Laboratory(
        model=InstantModel(),
        render=renderer,
        cache=cache,
        namespace=Namespace("bench"),
        budget=Budget(Limits(calls=10**6, tokens=10**9, seconds=3600.0)).child(Limits()),
        concurrency=8,
        record_ids=[RecordId(str(i)) for i in range(CANDIDATES)],
    )


async def measured(block: Callable[[], Awaitable[object]]) -> float:
    """CPU microseconds per evaluation of one run."""
    gc.collect()
    gc.disable()
    started = time.process_time()
    await block()
    spent = time.process_time() - started
    gc.enable()
    return spent * 1e6 / EVALUATIONS


async def one_run() -> dict[str, float]:
    """Every way once, each on asks of its own."""
    asks = [Ask(Coalition(bits)) for bits in range(EVALUATIONS)]
    model = InstantModel()
    cache = InMemoryCache()
    live = bench(cache)
    alone = bench(InMemoryCache())
    cached = bench(cache)

    async def direct() -> None:
        for ask in asks:
            await model.complete(render(ask))

    async def one_by_one() -> None:
        for ask in asks:
            await alone.outcome(ask)

    return {
        "direct call, with rendering": await measured(direct),
        "live, in one batch": await measured(lambda: live.outcomes(asks)),
        "live, one by one": await measured(one_by_one),
        "cached, in one batch": await measured(lambda: cached.outcomes(asks)),
        "asked again": await measured(lambda: cached.outcomes(asks)),
    }


async def main() -> None:
    """Print the table."""
    runs = [await one_run() for _ in range(REPEATS)]
    best = {way: min(run[way] for run in runs) for way in runs[0]}
    base = best["direct call, with rendering"]
    print(f"CPU us per evaluation, {EVALUATIONS} evaluations, best of {REPEATS}")
    for way, spent in best.items():
        print(f"{way:28} {spent:7.1f}   over direct {spent - base:+7.1f}")
    worst = max(best.values()) - base
    verdict = "within" if worst <= TARGET else "OVER"
    print(f"largest overhead {worst:.1f} us: {verdict} the target of {TARGET:.0f} us")


if __name__ == "__main__":
    anyio.run(main)
