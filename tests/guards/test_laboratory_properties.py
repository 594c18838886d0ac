"""Under random latencies, failures and cancellations, with the endpoint's own counters as judge."""

from collections import Counter
from collections.abc import Sequence

import anyio
from anyio.lowlevel import checkpoint
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import BudgetExceeded, ModelUnavailable
from assay.guards.budget import Budget, Limits
from assay.guards.coalitions import Coalition
from assay.guards.laboratory import Laboratory
from assay.guards.protocols import Ask, Completion

from .support import ANSWER_TOKENS, PROMPT_TOKENS, DictCache, TableModel, echo, laboratory

batches = st.lists(
    st.lists(st.integers(0, 7).map(Coalition).map(Ask), min_size=1, max_size=6),
    min_size=1,
    max_size=5,
)
latencies = st.dictionaries(st.integers(0, 3), st.integers(0, 6))
fuses = st.lists(st.one_of(st.none(), st.integers(0, 20)), min_size=5, max_size=5)
few = settings(max_examples=60, deadline=None)


def unreliable(failing: frozenset[int]) -> TableModel:
    """Fails on prompts of these lengths."""

    def answer(prompt: str) -> Completion | Exception:
        return ModelUnavailable("down") if len(prompt) % 4 in failing else echo(prompt)

    return TableModel(answer=answer)


async def ask_all(
    lab: Laboratory, asked: Sequence[Sequence[Ask]], fuses: Sequence[int | None]
) -> None:
    """One concurrent caller per batch; those with a fuse are cancelled after so many turns."""

    async def ask(batch: Sequence[Ask], fuse: int | None) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(attempt, lab, batch)
            if fuse is not None:
                for _ in range(fuse):
                    await checkpoint()
                group.cancel_scope.cancel()

    async with anyio.create_task_group() as callers:
        for batch, fuse in zip(asked, fuses, strict=False):
            callers.start_soon(ask, batch, fuse)


async def attempt(lab: Laboratory, batch: Sequence[Ask]) -> None:
    """A guard that is refused goes without."""
    try:
        await lab.outcomes(batch)
    except BudgetExceeded:
        return


@few
@given(
    asked=batches,
    latency=latencies,
    failing=st.frozensets(st.integers(0, 3)),
    fuses=fuses,
    calls=st.integers(0, 12),
    concurrency=st.integers(1, 4),
)
async def test_the_budget_is_never_exceeded(  # noqa: PLR0913, PLR0917  # one name per cause of trouble
    asked: list[list[Ask]],
    latency: dict[int, int],
    failing: frozenset[int],
    fuses: list[int | None],
    calls: int,
    concurrency: int,
) -> None:
    tokens = calls * (PROMPT_TOKENS + ANSWER_TOKENS)
    model = unreliable(failing)
    model.turns = lambda prompt: latency.get(len(prompt) % 4, 0)
    budget = Budget(Limits(calls=calls + 3, tokens=tokens))
    scope = budget.child(Limits(calls=calls))
    lab = laboratory(model, budget=scope, concurrency=concurrency)

    await ask_all(lab, asked, fuses)

    assert model.calls <= calls
    assert model.billed_tokens <= tokens
    assert model.most_running <= concurrency
    assert lab.ledger().live == model.calls == scope.spent().calls == budget.spent().calls
    assert model.billed_tokens <= scope.spent().tokens
    assert scope.left().calls == calls - model.calls
    assert lab.ledger().tokens <= model.billed_tokens


@few
@given(asked=batches, latency=latencies, fuses=fuses, concurrency=st.integers(1, 4))
async def test_no_coalition_is_paid_for_twice(
    asked: list[list[Ask]], latency: dict[int, int], fuses: list[int | None], concurrency: int
) -> None:
    cache = DictCache()
    model = TableModel(turns=lambda prompt: latency.get(len(prompt) % 4, 0))
    lab = laboratory(model, cache=cache, concurrency=concurrency)

    await ask_all(lab, asked, fuses)
    await ask_all(lab, asked, [None] * len(asked))

    distinct = {ask for batch in asked for ask in batch}
    assert set(Counter(model.answered).values()) == {1}
    assert len(model.answered) == lab.ledger().evaluations == len(distinct)
    assert len(cache.kept) <= len(distinct)


@few
@given(asked=batches, latency=latencies, concurrency=st.integers(1, 4))
async def test_what_is_counted_adds_up(
    asked: list[list[Ask]], latency: dict[int, int], concurrency: int
) -> None:
    cache = DictCache()
    model = TableModel(turns=lambda prompt: latency.get(len(prompt) % 4, 0))
    half = asked[: len(asked) // 2]
    await ask_all(laboratory(model, cache=cache), half, [None] * len(half))
    before = model.calls
    lab = laboratory(model, cache=cache, concurrency=concurrency)

    await ask_all(lab, asked, [None] * len(asked))

    spent = lab.ledger()
    assert spent.live == model.calls - before
    assert spent.evaluations == spent.live + spent.cache_hits
    assert spent.evaluations == len({ask for batch in asked for ask in batch})
    assert spent.evaluations <= spent.rounds * concurrency
    assert spent.rounds <= spent.evaluations
