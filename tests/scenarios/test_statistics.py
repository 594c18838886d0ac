from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.scenarios.statistics import bootstrap_interval, holm, mcnemar, sign_flip, wilson

stats: Any = import_module("scipy.stats")  # scipy ships no types


def each(n: int) -> list[str]:
    return [f"c{i}" for i in range(n)]


@given(a=st.integers(0, 40), b=st.integers(0, 40))
def test_mcnemar_is_the_two_sided_binomial_test(a: int, b: int) -> None:
    expected = stats.binomtest(a, a + b, 0.5).pvalue if a + b else 1.0

    assert mcnemar(a, b) == pytest.approx(expected)


@settings(max_examples=25)
@given(st.lists(st.integers(-5, 5), min_size=2, max_size=8))
def test_the_sign_flip_test_is_the_exact_permutation_test_of_one_sample(
    differences: list[int],
) -> None:
    values = [float(value) for value in differences]
    expected = stats.permutation_test(
        (np.array(values),), np.mean, permutation_type="samples", n_resamples=np.inf
    )

    assert sign_flip(values, each(len(values)), seed=0) == pytest.approx(expected.pvalue)


def test_examples_of_one_conversation_are_flipped_together() -> None:
    together = sign_flip([1.0, 1.0, 1.0, 1.0], ["a", "a", "b", "b"], seed=0)

    assert together == 0.5  # 2 of the 4 flips of two conversations are as extreme


def test_many_conversations_are_flipped_at_random_and_repeatably() -> None:
    values = [0.2, -0.1, 0.4, 0.3] * 6

    first = sign_flip(values, each(24), seed=3)

    assert first == sign_flip(values, each(24), seed=3)
    assert 0 < first < 0.05


def test_no_difference_at_all_has_a_p_value_of_1() -> None:
    assert sign_flip([0.0] * 5, each(5), seed=0) == 1.0
    assert sign_flip([], [], seed=0) == 1.0


def test_the_interval_of_independent_examples_meets_the_one_of_scipy() -> None:
    values = np.random.default_rng(1).normal(3.0, 1.0, size=60).tolist()
    expected = stats.bootstrap(
        (np.array(values),),
        np.mean,
        method="percentile",
        n_resamples=9999,
        rng=np.random.default_rng(2),
    ).confidence_interval

    found = bootstrap_interval(values, each(60), seed=7, resamples=9999)

    assert found.mean == pytest.approx(sum(values) / 60)
    assert found.low == pytest.approx(expected.low, abs=0.02)
    assert found.high == pytest.approx(expected.high, abs=0.02)


def test_whole_conversations_are_resampled() -> None:
    # all variance lies between two conversations: a resample is all 0, all 1, or half
    found = bootstrap_interval([0.0] * 50 + [1.0] * 50, ["a"] * 50 + ["b"] * 50, seed=7)

    assert found == (0.5, 0.0, 1.0)


def test_one_conversation_has_a_mean_but_no_interval() -> None:
    assert bootstrap_interval([1.0, 0.0], ["a", "a"], seed=7) == (0.5, None, None)


def test_no_example_has_neither() -> None:
    assert bootstrap_interval([], [], seed=7) == (None, None, None)


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="2 values but 1 clusters"):
        bootstrap_interval([1.0, 2.0], ["a"], seed=7)


def test_a_level_of_1_is_refused() -> None:
    with pytest.raises(ValueError, match="level must be in"):
        bootstrap_interval([1.0], ["a"], seed=7, level=1.0)


def test_holm_steps_down_and_never_decreases() -> None:
    # sorted .01 .02 .03 .04 times 4 3 2 1: .04 .06 .06 .06
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])


@given(st.lists(st.floats(0, 1), max_size=6))
def test_holm_only_raises_p_values_and_stays_at_most_1(p_values: list[float]) -> None:
    adjusted = holm(p_values)

    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))


@given(n=st.integers(1, 60), data=st.data())
def test_the_score_interval_of_a_share_is_wilsons(n: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, n))
    expected = stats.binomtest(hits, n).proportion_ci(method="wilson")

    share, low, high = wilson(hits, n)

    assert share == hits / n
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_a_share_of_nothing_has_no_interval_and_impossible_counts_are_refused() -> None:
    assert wilson(0, 0) == (None, None, None)
    with pytest.raises(ValueError, match=r"hits must be in \[0, 3\], got 4"):
        wilson(4, 3)
