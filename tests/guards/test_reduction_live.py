from collections.abc import Sequence

from assay.errors import BudgetExceeded
from assay.guards.protocols import Ask, Ledger, Outcome
from assay.guards.reduction.core import core
from assay.guards.reduction.live import reduce_live
from assay.guards.reduction.search import Problem
from assay.guards.reduction.verification import verify

from .support_reduction import Rule, is_one_minimal, monotone

PROBLEM = Problem([4.0, 3.0, 2.0, 1.0, 1.0], [0.9, 0.8, 0.7, 0.6, 0.1])


class Bench:
    """A laboratory whose model executes iff the rule holds, and sometimes fails."""

    def __init__(
        self, rule: Rule, *, calls: int = 100, failing: frozenset[int] = frozenset()
    ) -> None:
        self.rule = rule
        self.left = calls
        self.failing = failing

    async def outcomes(self, asks: Sequence[Ask]) -> list[Outcome]:
        if len(asks) > self.left:
            raise BudgetExceeded("calls", needed=len(asks), left=self.left)
        self.left -= len(asks)
        return [self.outcome(ask) for ask in asks]

    def outcome(self, ask: Ask) -> Outcome:
        if ask.coalition in self.failing:
            return Outcome(status="unavailable")
        return Outcome(status="answered", text="EXECUTE" if self.rule(ask.coalition) else "HOLD")

    def ledger(self) -> Ledger:
        return Ledger()


def executes(outcome: Outcome) -> bool:
    return outcome.text == "EXECUTE"


async def test_a_laboratory_reduces_like_an_oracle() -> None:
    bench = Bench(monotone([0b0110]))

    found = await reduce_live(
        lambda told: core(PROBLEM, told=told), bench, executes, problem=PROBLEM, concurrency=4
    )

    assert found.reduction.kept == 0b0110
    assert found.rounds < found.reduction.evaluations


async def test_a_failed_outcome_counts_as_a_different_decision() -> None:
    bench = Bench(monotone([0b0001]), failing=frozenset({0b0001}))

    found = await reduce_live(
        lambda told: verify(PROBLEM, told=told), bench, executes, problem=PROBLEM, concurrency=1
    )

    def measured(kept: int) -> bool:
        return bench.rule(kept) and kept not in bench.failing

    assert is_one_minimal(measured, found.reduction.kept)


async def test_a_budget_too_small_to_ask_ahead_still_buys_single_questions() -> None:
    bench = Bench(monotone([0b0110]), calls=3)

    found = await reduce_live(
        lambda told: core(PROBLEM, told=told), bench, executes, problem=PROBLEM, concurrency=4
    )

    assert found.reduction.evaluations == 3
    assert bench.rule(found.reduction.kept)
    assert not found.reduction.finished


async def test_an_exhausted_budget_leaves_everything_unreduced() -> None:
    bench = Bench(monotone([0b0110]), calls=0)

    found = await reduce_live(
        lambda told: core(PROBLEM, told=told), bench, executes, problem=PROBLEM, concurrency=4
    )

    assert found.reduction.kept == PROBLEM.everything
    assert found.reduction.certificate == "unreduced"
