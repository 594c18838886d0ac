"""The cheapest set that meets every one of some sets, exactly, without looking at every record."""

from collections.abc import Sequence

from assay.guards.coalitions import Coalition
from assay.guards.reduction.search import Problem


def cheapest_hitting_set(problem: Problem, sets: Sequence[int]) -> Coalition:
    """A cheapest coalition that shares a record with each of the sets.

    Exact: records that lie in the same sets are interchangeable, so only the cheapest of each such
    class is tried, in branch and bound over the sets.

    Raises:
        ValueError: If one of the sets is empty.
    """
    if not all(sets):
        raise ValueError("an empty set cannot be hit")
    choices = [(problem.costs[i], i, _signature(i, sets)) for i in _representatives(problem, sets)]
    choices.sort()
    best = _Best(problem.cost(problem.everything) + 1.0)
    _branch(choices, (1 << len(sets)) - 1, Coalition(0), 0.0, best)
    return best.chosen


class _Best:
    """The cheapest complete choice so far."""

    __slots__ = ("chosen", "cost")

    def __init__(self, cost: float) -> None:
        self.cost = cost
        self.chosen = Coalition(0)


def _branch(
    choices: Sequence[tuple[float, int, int]],
    open_sets: int,
    chosen: int,
    cost: float,
    best: _Best,
) -> None:
    if cost >= best.cost:
        return
    if not open_sets:
        best.chosen, best.cost = Coalition(chosen), cost
        return
    rarest = min(_bits(open_sets), key=lambda s: sum(hits >> s & 1 for _, _, hits in choices))
    for price, record, hits in choices:
        if hits >> rarest & 1:
            _branch(choices, open_sets & ~hits, chosen | 1 << record, cost + price, best)


def _representatives(problem: Problem, sets: Sequence[int]) -> list[int]:
    """The cheapest record of every class of records that lie in the same sets."""
    classes = [0]
    seen = 0
    for one in sets:
        classes = [part for whole in classes for part in (whole & one, whole & ~one) if part]
        classes += [one & ~seen] if one & ~seen else []
        seen |= one
    return [
        min(_bits(part), key=lambda i: (problem.costs[i], i)) for part in classes if part & seen
    ]


def _signature(record: int, sets: Sequence[int]) -> int:
    return sum(1 << s for s, one in enumerate(sets) if one >> record & 1)


def _bits(mask: int) -> list[int]:
    found: list[int] = []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return found
