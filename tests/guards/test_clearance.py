"""MeClear's filtration and choice, and what the minimal-deletion rule sees that a threshold misses."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.guards.attribution import exact_shapley
from assay.guards.clearance import (
    RIGHT,
    TAU,
    choose,
    filtration,
    harmful,
    harmful_by_deletion,
    minimal_deletions,
    ranked,
    undecided,
)
from assay.guards.coalitions import Coalition, coalition_of, grand, size, without

utilities = st.lists(st.floats(min_value=0, max_value=1), min_size=32, max_size=32)


@given(values=utilities)
def test_a_choice_never_loses_utility_and_is_the_smallest_with_the_largest_gain(
    values: list[float],
) -> None:
    known = {Coalition(c): v for c, v in enumerate(values)}
    family = filtration(ranked(exact_shapley(np.array(values))))

    choice = choose(family, known, 5)

    after = {c: known[without(grand(5), c)] for c in family}
    gains = {c: after[c] - known[grand(5)] for c in family}
    admissible = [c for c in family[1:] if gains[c] > 0 and after[c] >= RIGHT]
    best = max((gains[c] for c in admissible), default=0.0)
    smallest = min((c for c in admissible if gains[c] == best), key=size, default=Coalition(0))
    assert choice.cleared == smallest
    assert choice.gain == best
    assert choice.gain >= 0
    assert choice.recovered == bool(admissible)


@pytest.mark.parametrize(("evidence", "copies"), [(1, 4), (2, 3)])
def test_a_threshold_misses_harm_that_the_minimal_deletion_finds(
    evidence: int, copies: int
) -> None:
    n, delta = evidence + copies, 0.8
    gold = coalition_of(range(evidence))
    table = np.array([0.1 + delta * (c == gold) for c in range(1 << n)])
    factorial = math.factorial
    predicted = -delta * factorial(evidence) * factorial(copies - 1) / factorial(n)

    effects = exact_shapley(table)
    blamed = harmful_by_deletion({Coalition(c): float(v) for c, v in enumerate(table)}, n)

    assert effects[evidence:] == pytest.approx(np.full(copies, predicted))
    assert harmful(effects, TAU) == []
    assert blamed == coalition_of(range(evidence, n))


def test_both_parts_of_a_joint_fault_are_blamed() -> None:
    known = {Coalition(c): 0.1 if c & 0b11 == 0b11 else 0.9 for c in range(8)}

    assert minimal_deletions(known, 3) == [Coalition(0b01), Coalition(0b10)]
    assert harmful_by_deletion(known, 3) == Coalition(0b11)


def test_nothing_is_blamed_where_nothing_recovers() -> None:
    known = {Coalition(c): 0.1 for c in range(8)}

    assert minimal_deletions(known, 3) == []
    assert harmful_by_deletion(known, 3) == Coalition(0)


def test_an_unmeasured_context_is_never_chosen() -> None:
    known = {Coalition(0b11): 0.1, Coalition(0b10): math.nan, Coalition(0): 0.6}

    choice = choose([Coalition(0), Coalition(0b01), Coalition(0b11)], known, 2)

    assert choice.cleared == Coalition(0b11)


def test_small_and_unmeasured_effects_are_undecided_not_harmless() -> None:
    effects = np.array([0.04, -0.3, math.nan, 0.2])

    assert undecided(effects) == [0, 2]
    assert harmful(effects) == [1]


def test_equal_effects_are_taken_in_the_order_of_their_ids() -> None:
    assert filtration(ranked(np.array([-0.2, 0.1, -0.2]))) == [
        coalition_of(group) for group in ([], [0], [0, 2], [0, 1, 2])
    ]


def test_the_filtration_is_nested() -> None:
    family = filtration([2, 0, 1])

    assert all(without(a, b) == 0 for a, b in combinations(family, 2))
