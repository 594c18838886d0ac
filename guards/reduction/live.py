"""A search driven by the laboratory: questions become asks, outcomes become same or different."""

from collections.abc import Callable
from typing import TypeAlias

from assay.errors import BudgetExceeded
from assay.guards.protocols import Experimenter, Outcome
from assay.guards.reduction.search import Problem, SearchFactory
from assay.guards.reduction.speculation import Rounds, Speculator

SameDecision: TypeAlias = Callable[[Outcome], bool]
"""Whether an outcome is the decision made with all records; a failed outcome never is."""


async def reduce_live(
    start: SearchFactory,
    laboratory: Experimenter,
    same: SameDecision,
    *,
    problem: Problem,
    concurrency: int,
) -> Rounds:
    """Run a search on a laboratory, asking ahead as far as the concurrency allows.

    Args:
        start: Starts the search.
        laboratory: Answers the questions; asked in batches of at most ``concurrency``.
        same: Compares an outcome with the decision made with all records. Only outcomes that were
            answered are shown to it; any other counts as different.
        problem: The records.
        concurrency: Most questions in a batch, at least 1.

    Returns:
        The reduction and its rounds. Where the laboratory's budget ends first, the cheapest set confirmed so
        far, or all records marked ``unreduced``; never an error.
    """
    speculator = Speculator(start, problem, concurrency=concurrency)
    while batch := speculator.batch():
        try:
            outcomes = await laboratory.outcomes(batch)
        except BudgetExceeded:
            if len(batch) == 1:
                break
            # What lies ahead did not fit; the one question that is certainly needed may.
            speculator.narrow()
            continue
        speculator.learn(
            {
                ask: outcome.status == "answered" and same(outcome)
                for ask, outcome in zip(batch, outcomes, strict=True)
            }
        )
    return Rounds(speculator.result(), speculator.rounds)
