"""Attributions: identities by property, one hand-computed example each, and an outside package."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.guards.attribution import (
    exact_banzhaf,
    exact_shapley,
    hoeffding_bound,
    leave_one_out,
    membership,
    permutation_shapley,
    random_walks,
    sampled_banzhaf,
    shapley_interactions,
    single_ablations,
)
from assay.guards.clearance import pair_kind
from assay.guards.coalitions import Coalition, coalition_of, members
from assay.guards.lasso import surrogate

players = st.integers(min_value=1, max_value=6)
seeds = st.integers(min_value=0, max_value=2**32 - 1)


def random_table(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(1 << n)


def redundant_table(copies: int, harm: float) -> np.ndarray:
    return np.array([0.0] + [-harm] * ((1 << copies) - 1))


@given(n=players, seed=seeds)
def test_shapley_values_share_out_exactly_what_all_together_gain(n: int, seed: int) -> None:
    table = random_table(n, seed)

    assert exact_shapley(table).sum() == pytest.approx(table[-1] - table[0])


@given(n=players, seed=seeds)
def test_a_candidate_that_changes_nothing_has_no_effect(n: int, seed: int) -> None:
    table = np.repeat(random_table(n, seed), 2)

    assert exact_shapley(table)[0] == pytest.approx(0)
    assert exact_banzhaf(table)[0] == pytest.approx(0)


@given(
    copies=st.integers(min_value=2, max_value=7),
    harm=st.floats(min_value=0.1, max_value=1.0),
)
def test_redundant_copies_have_no_ablation_effect_and_equal_shapley_shares(
    copies: int, harm: float
) -> None:
    table = redundant_table(copies, harm)

    ablations = leave_one_out(table[np.array(single_ablations(copies))])

    assert np.all(ablations == 0)
    assert exact_shapley(table) == pytest.approx(np.full(copies, -harm / copies))


@given(n=st.integers(min_value=1, max_value=4), seed=seeds)
def test_each_permutation_is_an_unbiased_draw_of_the_shapley_values(n: int, seed: int) -> None:
    table = random_table(n, seed)
    known = {Coalition(c): float(v) for c, v in enumerate(table)}
    every = {walk.order: walk for walk in random_walks(n, 600, np.random.default_rng(seed))}

    mean = permutation_shapley(list(every.values()), known, n)

    assert len(every) == math.factorial(n)
    assert mean == pytest.approx(exact_shapley(table))


@settings(max_examples=30)
@given(seed=seeds)
def test_sampled_values_stay_inside_hoeffdings_bound(seed: int) -> None:
    table = random_table(5, seed)
    known = {Coalition(c): float(v) for c, v in enumerate(table)}
    walks = random_walks(5, 64, np.random.default_rng(seed))

    error = np.abs(permutation_shapley(walks, known, 5) - exact_shapley(table)).max()

    assert error <= hoeffding_bound(5, 64, delta=1e-6)


def test_sixteen_permutations_of_five_candidates_guarantee_only_four_fifths() -> None:
    assert hoeffding_bound(5, 16) == pytest.approx(0.81, abs=0.005)


def test_every_second_walk_reverses_the_one_before_when_antithetic() -> None:
    walks = random_walks(4, 6, np.random.default_rng(0), antithetic=True)

    assert [walk.order for walk in walks[1::2]] == [walk.order[::-1] for walk in walks[::2]]


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ([0.9, 0.1, 0.1, 0.1], "substitution"),
        ([0.9, 0.8, 0.8, 0.1], "joint interference"),
        ([0.1, 0.2, 0.2, 0.9], "complementarity"),
        ([0.1, 0.9, 0.9, 0.9], "none"),
    ],
)
def test_the_sign_of_a_pair_says_how_two_candidates_act(table: list[float], kind: str) -> None:
    values = np.array(table)

    assert pair_kind(exact_shapley(values), shapley_interactions(values), 0, 1) == kind


def test_an_unmeasured_context_leaves_the_effects_unmeasured_not_zero() -> None:
    table = np.array([0.1, math.nan, 0.3, 0.9])

    assert np.isnan(exact_shapley(table)).all()


def test_an_unmeasured_gain_is_left_out_of_a_sampled_mean() -> None:
    walks = random_walks(2, 2, np.random.default_rng(0), antithetic=True)
    known = {Coalition(0): 0.0, Coalition(1): math.nan, Coalition(2): 0.4, Coalition(3): 1.0}

    assert permutation_shapley(walks, known, 2) == pytest.approx([0.6, 0.4])


def test_membership_of_seventy_candidates_does_not_overflow() -> None:
    rows = membership([coalition_of([0, 63, 69]), Coalition(0)], 70)

    assert [list(np.flatnonzero(row)) for row in rows] == [[0, 63, 69], []]


def test_a_table_that_is_no_power_of_two_is_refused() -> None:
    with pytest.raises(ValueError, match=r"2 \*\* n utilities"):
        exact_shapley(np.zeros(3))


@given(seed=seeds)
def test_sampling_every_coalition_once_gives_the_exact_banzhaf_values(seed: int) -> None:
    table = random_table(4, seed)

    sampled = sampled_banzhaf([Coalition(c) for c in range(16)], table, 4)

    assert sampled == pytest.approx(exact_banzhaf(table))


def test_the_lasso_finds_the_one_candidate_that_matters() -> None:
    rows = membership([Coalition(c) for c in range(32)], 5)
    utilities = np.where(rows[:, 3], 0.1, 0.9)

    weights = surrogate(rows, utilities, penalty=0.01)

    assert members(coalition_of(int(i) for i in np.flatnonzero(weights))) == [3]
    assert weights[3] == pytest.approx(-0.76)


def test_the_lasso_measures_nothing_where_nothing_was_measured() -> None:
    assert np.isnan(surrogate(membership([Coalition(1)], 2), np.array([math.nan]))).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(120)  # the first import of the package compiles for a while
@pytest.mark.parametrize(("n", "seed"), [(2, 1), (3, 2), (4, 3), (5, 4)])
def test_exact_values_and_pairs_equal_those_of_shapiq(n: int, seed: int) -> None:
    reason = "needs the shapiq package: pip install 'assay[benchmark]'"
    shapiq = pytest.importorskip("shapiq", reason=reason)
    table = random_table(n, seed)
    weights = 1 << np.arange(n)

    def game(rows: np.ndarray) -> np.ndarray:
        return np.asarray(table[rows @ weights])

    computer = shapiq.ExactComputer(game, n_players=n)

    values = computer("SV", 1).get_n_order_values(1)
    pairs = computer("SII", 2).get_n_order_values(2)

    assert exact_shapley(table) == pytest.approx(values)
    assert shapley_interactions(table) == pytest.approx(pairs)
