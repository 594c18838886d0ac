"""Effects and interactions from whatever contexts a search asked; no further question is needed."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from assay.guards.attribution import Interactions, exact_shapley, shapley_interactions
from assay.guards.coalitions import (
    Attributions,
    Coalition,
    coalition_of,
    contains,
    members,
    subsets,
    union,
)

PAIRS_UP_TO = 16
"""Candidates up to which every pair is looked for among the contexts asked."""


class Measured(NamedTuple):
    """What the contexts asked tell about each candidate.

    Attributes:
        effects: Shape ``(n,)``, in units of utility; NaN where no two contexts tell.
        pairs: Shape ``(n, n)``, likewise.
    """

    effects: Attributions
    pairs: Interactions


def measured(known: Mapping[Coalition, float], n: int, blamed: Coalition) -> Measured:
    """Effects and interactions of all candidates.

    The blamed ones play a game of their own, everything else withheld from it being shown: where
    every context of that game was asked, theirs are exact Shapley values of it, so that redundant
    copies share the harm. The others' are mean gains over the pairs (squares) of contexts asked.
    With every context
    measured, all are exact Shapley values.

    Args:
        known: Utilities of the contexts asked; NaN: no measurement.
        n: Number of candidates.
        blamed: Candidates held harmful.
    """
    finite = {context: value for context, value in known.items() if np.isfinite(value)}
    if len(finite) == 1 << n:
        table = np.array([finite[Coalition(bits)] for bits in range(1 << n)])
        return Measured(exact_shapley(table), shapley_interactions(table))
    found = Measured(_gains(finite, n), _squares(finite, n, blamed))
    return _with_own_game(found, finite, n, blamed)


def own_game(n: int, blamed: Coalition) -> list[Coalition]:
    """The contexts of the game among the blamed: everything else, and any of them."""
    rest = coalition_of(i for i in range(n) if not contains(blamed, i))
    return [union(rest, part) for part in subsets(blamed)]


def _with_own_game(
    found: Measured, finite: Mapping[Coalition, float], n: int, blamed: Coalition
) -> Measured:
    players = members(blamed)
    contexts = own_game(n, blamed) if len(players) <= PAIRS_UP_TO else []
    if not contexts or not all(context in finite for context in contexts):
        return found
    table = np.array([finite[context] for context in contexts])
    found.effects[players] = exact_shapley(table)
    found.pairs[np.ix_(players, players)] = shapley_interactions(table)
    return found


def _gains(finite: Mapping[Coalition, float], n: int) -> Attributions:
    totals, counts = np.zeros(n), np.zeros(n)
    for context, value in finite.items():
        for i in members(context):
            before = finite.get(Coalition(context & ~(1 << i)))
            if before is not None:
                totals[i] += value - before
                counts[i] += 1
    return np.where(counts > 0, totals / np.maximum(counts, 1), np.nan)


def _squares(finite: Mapping[Coalition, float], n: int, blamed: Coalition) -> Interactions:
    players: Sequence[int] = range(n) if n <= PAIRS_UP_TO else members(blamed)[:PAIRS_UP_TO]
    result = np.full((n, n), np.nan)
    np.fill_diagonal(result, 0.0)
    for i, j in combinations(players, 2):
        sums = [
            value - finite[without_i] - finite[without_j] + finite[neither]
            for context, value in finite.items()
            if contains(context, i)
            and contains(context, j)
            and (without_i := Coalition(context & ~(1 << i))) in finite
            and (without_j := Coalition(context & ~(1 << j))) in finite
            and (neither := Coalition(without_i & ~(1 << j))) in finite
        ]
        if sums:
            result[i, j] = result[j, i] = float(np.mean(sums))
    return result
