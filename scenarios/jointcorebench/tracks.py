"""Harder tracks: the same records with worse scores, unequal costs, other rules, noise, more of them.

Every draw is derived from the condition's own text, so a track is reproducible from the seed base.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import NamedTuple

from assay.guards.coalitions import Coalition, coalition_of, contains
from assay.guards.protocols import Ask
from assay.guards.reduction.search import Oracle, Problem
from assay.scenarios.jointcorebench.conditions import (
    Axes,
    Condition,
    Coordinates,
    condition,
    coordinates,
    hashed,
    uniform,
)


class Trial(NamedTuple):
    """One reduction to run, and how to judge it.

    Attributes:
        problem: Costs and scores, as the method gets them.
        same: Whether the decision with a retained set is that with all records; exact.
        least: Cost of the cheapest sufficient set; ``None`` where it is not known in closed form.
        error: Probability that the evaluator answers wrongly, in [0, 1).
        persistent: Errors belong to the retained set and its rendering, not to the draw.
        name: What the evaluator's errors are derived from.
    """

    problem: Problem
    same: Callable[[Coalition], bool]
    least: float | None
    error: float
    persistent: bool
    name: str

    def evaluator(self) -> Oracle:
        """Answers with the truth, or with probability ``error`` with its opposite.

        A fresh error belongs to the time of asking: the same question again draws again.
        """
        times: Counter[Ask] = Counter()

        def answer(ask: Ask) -> bool:
            truth = self.same(ask.coalition)
            if not self.error:
                return truth
            time = 0 if self.persistent else times[ask]
            draw = 0 if self.persistent else ask.draw
            times[ask] += 1
            chance = uniform(self.name, "flip", ask.coalition, ask.rendering, draw, time)
            return truth != (chance < self.error)

        return answer


class Variant(NamedTuple):
    """One row group of the table: a condition made harder in one way.

    Attributes:
        label: As printed.
        trial: Makes the trial of a condition.
        axes: Which conditions it runs over.
    """

    label: str
    trial: Callable[[Condition], Trial]
    axes: Axes = Axes(horizons=(1,))

    def points(self) -> list[Coordinates]:
        """The conditions it runs over."""
        return list(coordinates(self.axes))


def trial_of(variant: Variant, at: Coordinates, *, base: int) -> Trial:
    """The trial at one point of a variant."""
    return variant.trial(condition(at, base=base))


def tracks() -> dict[str, tuple[Variant, ...]]:
    """The tracks by name, each with its variants."""
    return {
        "scores": (*map(_degraded, (0.1, 0.2, 0.4)), Variant("random scores", _random_scores)),
        "costs": (Variant("unequal channel costs", _unequal_costs, _CHANNELS),),
        "rules": (
            Variant("parity", _parity, _ONE_RULE),
            Variant("veto with override", _veto, _ONE_RULE),
            Variant("exactly k", _exactly_k, _ONE_RULE),
            Variant("random gate", _random_gate, _ONE_RULE),
        ),
        "size": tuple(_large(n) for n in (256, 1024, 4096)),
        "fresh": tuple(_noisy(error, persistent=False) for error in (0.01, 0.05, 0.1)),
        "persistent": tuple(_noisy(error, persistent=True) for error in (0.01, 0.05, 0.1)),
    }


NOISY = frozenset({"fresh", "persistent"})
"""Tracks whose evaluator errs."""

_CHANNELS = Axes(families=("redundant_or", "multiple_minimal_sets"), horizons=(1,))
_ONE_RULE = Axes(families=("synergy_and",), supports=(4,))
_LARGE = Axes(domains=("orders", "database"), horizons=(1,), blocks=(0, 1))


def _exact(one: Condition, problem: Problem | None = None) -> Trial:
    task = one.task
    given = problem or Problem(task.costs, task.scores)
    least = given.cost(task.rule.cheapest(given.costs))
    return _judged(one, given, task.rule.__call__, least)


def _judged(
    one: Condition, problem: Problem, same: Callable[[Coalition], bool], least: float | None
) -> Trial:
    return Trial(problem, same, least, error=0.0, persistent=False, name=one.id)


def _degraded(deviation: float) -> Variant:
    def trial(one: Condition) -> Trial:
        normal = NormalDist(0, deviation)
        return _rescored(
            one, lambda i, score: score + normal.inv_cdf(_inner(uniform(one.id, "noise", i)))
        )

    return Variant(f"score noise sd {deviation}", trial)


def _random_scores(one: Condition) -> Trial:
    return _rescored(one, lambda i, _: uniform(one.id, "random-score", i))


def _rescored(one: Condition, score: Callable[[int, float], float]) -> Trial:
    task = one.task
    scores = [score(i, given) for i, given in enumerate(task.scores)]
    return _exact(one, Problem(task.costs, scores))


def _unequal_costs(one: Condition) -> Trial:
    task = one.task
    costs = list(task.costs)
    for i in task.support:
        costs[i] = 3 + int(7 * uniform(one.id, "channel-cost", i))
    return _exact(one, Problem(costs, task.scores))


def _parity(one: Condition) -> Trial:
    """The decision is the parity of three records; an odd number, or nothing would suffice."""
    three = coalition_of(one.task.support[:3])
    return _ruled(one, lambda kept: (kept & three).bit_count() % 2 == 1)


def _veto(one: Condition) -> Trial:
    """One record authorises, one vetoes, one overrides the veto."""
    grant, veto, override = one.task.support[:3]
    return _ruled(
        one,
        lambda kept: (
            contains(kept, grant) and (contains(kept, override) or not contains(kept, veto))
        ),
    )


def _exactly_k(one: Condition) -> Trial:
    """Two of the four or all of them; three make the decision waver."""
    support = one.task.rule.groups[0]
    return _ruled(one, lambda kept: (kept & support).bit_count() in {2, support.bit_count()})


def _random_gate(one: Condition) -> Trial:
    """An arbitrary truth table over the support; the decision with all of them is the reference."""
    support = one.task.support
    table = hashed(one.id, "gate") & 0xFFFF

    def output(kept: Coalition) -> int:
        row = sum(1 << at for at, i in enumerate(support) if contains(kept, i))
        return table >> row & 1

    reference = table >> 15
    return _ruled(one, lambda kept: output(kept) == reference)


def _ruled(one: Condition, same: Callable[[Coalition], bool]) -> Trial:
    task = one.task
    problem = Problem(task.costs, task.scores)
    return _judged(one, problem, same, _least_over(problem, task.support, same))


def _least_over(
    problem: Problem, support: Sequence[int], same: Callable[[Coalition], bool]
) -> float:
    """Cheapest sufficient set where only the support matters: ``2 ** s`` subsets, s at most 4."""
    subsets = [Coalition(0)]
    for i in support:
        subsets += [Coalition(subset | 1 << i) for subset in subsets]
    return min(problem.cost(subset) for subset in subsets if same(subset))


def _large(n: int) -> Variant:
    return Variant(f"n = {n:,}", _exact, _LARGE._replace(sizes=(n,)))


def _noisy(error: float, *, persistent: bool) -> Variant:
    def trial(one: Condition) -> Trial:
        return _exact(one)._replace(error=error, persistent=persistent)

    kind = "persistent" if persistent else "fresh"
    return Variant(f"{kind} errors, eps {error}", trial)


def _inner(share: float) -> float:
    """Keeps a uniform draw away from the two ends, where a normal quantile is infinite."""
    return min(max(share, 1e-12), 1 - 1e-12)
