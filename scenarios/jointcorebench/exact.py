"""The exact stage: every method on every condition, judged by the rule itself."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np

from assay.guards.protocols import Ask
from assay.guards.reduction.search import Problem, Reduction, drive
from assay.guards.reduction.speculation import drive_in_rounds
from assay.scenarios.jointcorebench.conditions import Coordinates, condition
from assay.scenarios.jointcorebench.methods import EXACT, Setting, Start, setting_for
from assay.scenarios.jointcorebench.parallel import in_processes
from assay.scenarios.jointcorebench.rules import Rule

CONCURRENCIES = (1, 4, 8, 16)
"""Questions in flight for which rounds are counted."""


class Measured(NamedTuple):
    """One method on one condition.

    Attributes:
        evaluations: Questions, as the method asks them; the reference is not counted.
        sufficient: The kept set satisfies the rule.
        least_cost: And no sufficient set costs less.
        savings: One minus the kept share of the full cost, in [0, 1].
        rounds: Sequential batches at each of ``CONCURRENCIES``, equal questions asked once.
        spent: Questions asked in those batches.
    """

    evaluations: int
    sufficient: bool
    least_cost: bool
    savings: float
    rounds: tuple[int, ...]
    spent: tuple[int, ...]


class MethodSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A method's means over the conditions.

    Attributes:
        evaluations: Questions per condition.
        rounds: Batches per condition by concurrency.
        spent: Questions asked in those batches by concurrency.
        sufficiency: Share of conditions with a sufficient set.
        min_cost: Share with a cheapest one.
        savings: Mean share of the cost saved.
        by_n: Questions per condition by number of records.
        by_family: Questions per condition by family.
    """

    evaluations: float
    rounds: dict[str, float]
    spent: dict[str, float]
    sufficiency: float
    min_cost: float
    savings: float
    by_n: dict[str, float]
    by_family: dict[str, float]


class ExactReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the exact stage prints as JSON."""

    suite: str
    stage: str
    seed: int
    conditions: int
    methods: dict[str, MethodSummary]


def run_exact(
    points: Sequence[Coordinates],
    *,
    base: int,
    processes: int,
    advance: Callable[[int], None] = lambda _: None,
) -> ExactReport:
    """Run all methods on these conditions; the result does not depend on ``processes``.

    Args:
        points: The conditions.
        base: Seed base.
        processes: How many processes share the work, at least 1.
        advance: Told how many more conditions are done.
    """
    rows = in_processes(partial(measure, base=base), points, processes=processes, advance=advance)
    return summarize(points, rows, base=base)


def measure(at: Coordinates, *, base: int) -> dict[str, Measured]:
    """All methods on one condition."""
    one = condition(at, base=base)
    setting, rule = setting_for(one), one.task.rule
    return {name: _measure(start, setting, rule) for name, start in EXACT.items()}


def summarize(
    points: Sequence[Coordinates], rows: Sequence[dict[str, Measured]], *, base: int
) -> ExactReport:
    """Means by method, and of the questions by number of records and by family."""
    methods = {name: _summary(points, [row[name] for row in rows]) for name in EXACT}
    return ExactReport(
        suite="jointcorebench",
        stage="exact",
        seed=base,
        conditions=len(points),
        methods=methods,
    )


def is_least_cost(kept: Reduction, rule: Rule, setting: Setting) -> bool:
    """Whether a sufficient set of the least cost was kept; equal costs count as equal."""
    problem: Problem = setting.problem
    least = problem.cost(setting.oracle)
    return rule(kept.kept) and problem.cost(kept.kept) <= least * (1 + 1e-12)


def _measure(start: Start, setting: Setting, rule: Rule) -> Measured:
    problem = setting.problem

    def oracle(ask: Ask) -> bool:
        return rule(ask.coalition)

    reduction = drive(start(setting, {}), oracle, problem=problem)
    batches = [
        drive_in_rounds(partial(start, setting), oracle, problem=problem, concurrency=concurrency)
        for concurrency in (CONCURRENCIES if reduction.steps else ())
    ]
    return Measured(
        evaluations=reduction.evaluations,
        sufficient=rule(reduction.kept),
        least_cost=is_least_cost(reduction, rule, setting),
        savings=1 - problem.cost(reduction.kept) / problem.cost(problem.everything),
        rounds=tuple(batch.rounds for batch in batches) or (0,) * len(CONCURRENCIES),
        spent=tuple(b.reduction.evaluations for b in batches) or (0,) * len(CONCURRENCIES),
    )


def _summary(points: Sequence[Coordinates], rows: Sequence[Measured]) -> MethodSummary:
    evaluations = [row.evaluations for row in rows]
    rounds = np.array([row.rounds for row in rows]).mean(axis=0)
    spent = np.array([row.spent for row in rows]).mean(axis=0)
    return MethodSummary(
        evaluations=_mean(evaluations),
        rounds={str(c): float(r) for c, r in zip(CONCURRENCIES, rounds, strict=True)},
        spent={str(c): float(s) for c, s in zip(CONCURRENCIES, spent, strict=True)},
        sufficiency=_mean(row.sufficient for row in rows),
        min_cost=_mean(row.least_cost for row in rows),
        savings=_mean(row.savings for row in rows),
        by_n=_grouped([str(point.n) for point in points], evaluations),
        by_family=_grouped([point.family for point in points], evaluations),
    )


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _grouped(labels: Sequence[str], values: Sequence[int]) -> dict[str, float]:
    groups: dict[str, list[int]] = {}
    for label, value in zip(labels, values, strict=True):
        groups.setdefault(label, []).append(value)
    return {label: _mean(group) for label, group in groups.items()}
