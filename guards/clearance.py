"""MeClear's verified clearance: from attributions to the smallest nested withholding that recovers.

Source: "MeClear: Cooperative Game-Theoretic Attribution and Risk-Aware Memory Clearance"
(2609.09115). Arithmetic only; the searches in ``assay.guards.clearing`` ask the questions.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from assay.guards.attribution import Interactions
from assay.guards.coalitions import (
    EMPTY,
    Attributions,
    Coalition,
    coalition_of,
    grand,
    size,
    union,
    without,
)

TAU = 0.05
"""A candidate is held harmful when its effect is below minus this, in units of utility."""

KAPPA = 0.05
"""A leave-one-out effect up to this size is locally inconclusive, in units of utility."""

RIGHT = 0.5
"""The task counts as done at this utility and above."""

PairKind: TypeAlias = Literal["substitution", "joint interference", "complementarity", "none"]


class Choice(NamedTuple):
    """What to withhold, and what was tested on the way.

    Attributes:
        cleared: Candidates to withhold; empty when nothing admissible was found.
        recovered: Whether the task was done on the chosen context; False for an empty choice.
        gain: ``v(all without cleared) - v(all)``; 0 for an empty choice.
    """

    cleared: Coalition
    recovered: bool
    gain: float


def harmful(effects: Attributions, tau: float = TAU) -> list[int]:
    """Candidates with an effect below ``-tau``, most negative first, ties by index."""
    return [i for i in ranked(effects) if effects[i] < -tau]


def ranked(effects: Attributions) -> list[int]:
    """All candidates, most harmful first; unmeasured ones stand between harmful and helpful."""
    finite = np.nan_to_num(effects, nan=0.0)
    return [int(i) for i in np.argsort(finite, kind="stable")]


def undecided(effects: Attributions, kappa: float = KAPPA) -> list[int]:
    """Candidates whose effect is unmeasured or no larger than ``kappa`` either way."""
    return [i for i, effect in enumerate(effects) if not abs(effect) > kappa]


def filtration(order: Sequence[int]) -> list[Coalition]:
    """The nested family: nothing, then the j most harmful for each j; ``h + 1`` sets, not ``2 ** h``."""
    return [coalition_of(order[:j]) for j in range(len(order) + 1)]


def choose(family: Sequence[Coalition], utilities: Mapping[Coalition, float], n: int) -> Choice:
    """The verified member of the family with the largest gain, then the smallest.

    Args:
        family: Withholdings from small to large; the first is empty.
        utilities: Of the grand coalition without each of them; NaN: no measurement, inadmissible.
        n: Number of candidates.
    """
    everyone = grand(n)
    before = utilities[everyone]
    best = Choice(EMPTY, recovered=False, gain=0.0)
    for cleared in family[1:]:
        after = utilities[without(everyone, cleared)]
        gain = after - before
        if gain > best.gain and after >= RIGHT:
            best = Choice(cleared, recovered=True, gain=gain)
    return best


def minimal_deletions(utilities: Mapping[Coalition, float], n: int) -> list[Coalition]:
    """Every smallest recovering deletion among the contexts already asked, in numeric order.

    Where a threshold on Shapley values fails (harm that needs its evidence present is spread thin),
    the same values still show which deletion brings the task back.

    Returns:
        All deletions of the one smallest size; ``[EMPTY]`` if the grand coalition is right; ``[]``
        if no context asked is right.
    """
    everyone = grand(n)
    right = [without(everyone, asked) for asked, value in utilities.items() if value >= RIGHT]
    smallest = min(map(size, right), default=0)
    return sorted(deleted for deleted in right if size(deleted) == smallest)


def harmful_by_deletion(utilities: Mapping[Coalition, float], n: int) -> Coalition:
    """Candidates in some smallest recovering deletion: both parts of a joint fault, every copy."""
    blamed = EMPTY
    for deleted in minimal_deletions(utilities, n):
        blamed = union(blamed, deleted)
    return blamed


def pair_kind(effects: Attributions, pairs: Interactions, i: int, j: int) -> PairKind:
    """What an interaction of two candidates means, from its sign and the signs of their effects.

    Both harmful and positive: substitution (redundant harm: the second adds little). Both harmful
    and negative: joint interference. Both helpful and positive: complementarity.
    """
    pair = pairs[i, j]
    if effects[i] < 0 and effects[j] < 0 and pair != 0:
        return "substitution" if pair > 0 else "joint interference"
    if effects[i] > 0 and effects[j] > 0 and pair > 0:
        return "complementarity"
    return "none"
