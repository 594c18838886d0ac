from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.guards.coalitions import EMPTY, Coalition, coalition_of, grand
from assay.guards.reduction.published import conditional_singleton, jointcore, leave_one_out
from assay.guards.reduction.search import Problem, drive, semantic_top, unasked

from .support_reduction import (
    Rule,
    arbitrary_cases,
    is_one_minimal,
    monotone,
    monotone_cases,
    oracle,
    table,
)


def flat(n: int) -> Problem:
    return Problem([1.0] * n, [0.5] * n)


def internal_nodes(order: list[int], kept: Coalition) -> int:
    """Nodes of the bisection tree, leaves apart, that have a kept record below them."""
    if len(order) < 2 or not coalition_of(order) & kept:
        return 0
    half = len(order) // 2
    return 1 + internal_nodes(order[:half], kept) + internal_nodes(order[half:], kept)


@given(arbitrary_cases(), st.integers(-1, 12))
@settings(deadline=None)
def test_the_set_it_holds_is_sufficient_at_every_budget(
    case: tuple[Problem, Rule], limit: int
) -> None:
    problem, rule = case

    found = drive(jointcore(problem.cost_order()), oracle(rule), problem=problem, limit=limit)

    assert rule(found.kept)
    assert found.evaluations <= max(limit, 0)


@given(st.integers(0, 5), st.data())
@settings(deadline=None)
def test_evaluations_follow_from_what_is_kept(depth: int, data: st.DataObject) -> None:
    n = 2**depth
    kept = Coalition(data.draw(st.integers(1, grand(n))))
    problem = flat(n)
    order = data.draw(st.permutations(range(n)))

    found = drive(jointcore(order), oracle(monotone([kept])), problem=problem)

    assert found.kept == kept
    assert found.evaluations == 1 + 2 * internal_nodes(list(order), kept)


@given(arbitrary_cases())
@settings(deadline=None)
def test_it_never_takes_more_than_two_questions_a_record(case: tuple[Problem, Rule]) -> None:
    problem, rule = case

    found = drive(jointcore(problem.cost_order()), oracle(rule), problem=problem)

    assert found.evaluations <= 2 * problem.n - 1


def test_the_bound_of_two_questions_a_record_is_reached_when_all_are_needed() -> None:
    problem = flat(11)

    found = drive(jointcore(range(11)), oracle(monotone([problem.everything])), problem=problem)

    assert found.evaluations == 2 * 11 - 1


@given(monotone_cases())
@settings(deadline=None)
def test_what_it_keeps_is_1_minimal_for_a_monotone_decision(case: tuple[Problem, Rule]) -> None:
    problem, rule = case

    found = drive(jointcore(problem.cost_order()), oracle(rule), problem=problem)

    assert is_one_minimal(rule, found.kept)
    assert found.certificate == "1-minimal if monotone"


@given(monotone_cases())
@settings(deadline=None)
def test_single_deletion_is_1_minimal_in_one_question_a_record(case: tuple[Problem, Rule]) -> None:
    problem, rule = case

    found = drive(conditional_singleton(problem.cost_order()), oracle(rule), problem=problem)

    assert is_one_minimal(rule, found.kept)
    assert found.evaluations == problem.n


def test_a_decision_that_is_not_monotone_can_keep_a_record_too_many() -> None:
    passing = table(3, 1 << 0b010 | 1 << 0b011)

    found = drive(jointcore([0, 1, 2]), oracle(passing), problem=flat(3))

    assert found.kept == coalition_of([0, 1])
    assert not is_one_minimal(passing, found.kept)


@given(st.integers(2, 10), st.data())
@settings(deadline=None)
def test_redundant_records_are_invisible_to_leave_one_out(n: int, data: st.DataObject) -> None:
    several = data.draw(st.sets(st.integers(0, n - 1), min_size=2))
    rule = monotone([1 << i for i in several])

    found = drive(leave_one_out(n), oracle(rule), problem=flat(n))

    assert found.kept == EMPTY
    assert not rule(found.kept)


@pytest.mark.parametrize("limit", [0, -3])
def test_a_budget_below_one_question_returns_everything_unreduced(limit: int) -> None:
    problem = flat(4)

    found = drive(jointcore(range(4)), oracle(monotone([1])), problem=problem, limit=limit)

    assert (found.kept, found.certificate, found.finished) == (grand(4), "unreduced", False)


def test_a_budget_in_the_middle_returns_the_cheapest_set_confirmed_so_far() -> None:
    problem = flat(4)

    found = drive(jointcore(range(4)), oracle(monotone([8])), problem=problem, limit=2)

    assert (found.kept, found.certificate) == (coalition_of([2, 3]), "sufficient")


def test_a_search_that_removes_nothing_is_marked_unreduced() -> None:
    problem = flat(3)

    found = drive(unasked(problem.everything), oracle(monotone([1])), problem=problem)

    assert found.certificate == "unreduced"


def test_the_semantic_top_keeps_the_highest_scores_and_asks_nothing() -> None:
    problem = Problem([1, 1, 1], [0.2, 0.9, 0.9])

    found = drive(semantic_top(problem, 2), oracle(monotone([1])), problem=problem)

    assert found.kept == coalition_of([1, 2])
    assert (found.evaluations, found.certificate) == (0, "none")


def test_the_cost_order_ends_with_the_top_by_descending_cost() -> None:
    problem = Problem([5, 1, 2, 9, 3, 4], [0.1, 0.9, 0.8, 0.7, 0.6, 0.05])

    order = problem.cost_order()

    assert order == [5, 0, 3, 4, 2, 1]


@pytest.mark.parametrize("cost", [0, -1, nan, inf])
def test_a_cost_that_is_not_positive_and_finite_is_refused(cost: float) -> None:
    with pytest.raises(ValueError, match="cost of record 1 must be positive and finite"):
        Problem([1, cost], [0.1, 0.2])


@pytest.mark.parametrize("score", [nan, inf])
def test_a_score_that_is_not_finite_is_refused(score: float) -> None:
    with pytest.raises(ValueError, match="score of record 0 must be finite"):
        Problem([1, 1], [score, 0.2])


@pytest.mark.parametrize(("costs", "scores"), [([], []), ([1.0], [0.1, 0.2])])
def test_records_without_cost_or_score_are_refused(costs: list[float], scores: list[float]) -> None:
    with pytest.raises(ValueError, match="one cost and one score per record"):
        Problem(costs, scores)


def test_no_records_ask_nothing() -> None:
    found = drive(jointcore([]), oracle(monotone([1])), problem=flat(1))

    assert (found.kept, found.evaluations) == (EMPTY, 0)
