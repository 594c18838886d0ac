import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.guards.protocols import Ask
from assay.guards.reduction.certified import core_global
from assay.guards.reduction.core import core
from assay.guards.reduction.published import jointcore, leave_one_out
from assay.guards.reduction.search import Problem, drive
from assay.guards.reduction.speculation import Speculator, drive_in_rounds

from .support_reduction import Rule, is_one_minimal, monotone, monotone_cases, oracle


@given(monotone_cases(), st.sampled_from([1, 2, 4, 16]))
@settings(deadline=None)
def test_asking_ahead_ends_with_the_core_of_the_published_search(
    case: tuple[Problem, Rule], concurrency: int
) -> None:
    problem, rule = case
    alone = drive(jointcore(problem.cost_order()), oracle(rule), problem=problem)

    ahead = drive_in_rounds(
        lambda _: jointcore(problem.cost_order()),
        oracle(rule),
        problem=problem,
        concurrency=concurrency,
    )

    assert ahead.reduction.kept == alone.kept
    assert ahead.rounds <= alone.evaluations
    assert ahead.reduction.evaluations <= ahead.rounds * concurrency


@given(monotone_cases(), st.sampled_from([1, 4, 16]))
@settings(deadline=None)
def test_asking_ahead_keeps_a_core_1_minimal(case: tuple[Problem, Rule], concurrency: int) -> None:
    problem, rule = case

    ahead = drive_in_rounds(
        lambda told: core(problem, told=told),
        oracle(rule),
        problem=problem,
        concurrency=concurrency,
    )

    assert is_one_minimal(rule, ahead.reduction.kept)


@given(monotone_cases())
@settings(deadline=None)
def test_one_at_a_time_a_round_is_a_question(case: tuple[Problem, Rule]) -> None:
    problem, rule = case

    ahead = drive_in_rounds(
        lambda told: core_global(problem, told=told),
        oracle(rule),
        problem=problem,
        concurrency=1,
    )

    assert ahead.rounds == ahead.reduction.evaluations


def test_independent_questions_fill_every_round() -> None:
    problem = Problem([1.0] * 20, [0.5] * 20)

    ahead = drive_in_rounds(
        lambda _: leave_one_out(20), oracle(monotone([1])), problem=problem, concurrency=8
    )

    assert (ahead.rounds, ahead.reduction.evaluations) == (3, 20)


def test_four_records_are_settled_in_one_round_of_sixteen() -> None:
    problem = Problem([4.0, 3.0, 2.0, 1.0], [0.5] * 4)

    ahead = drive_in_rounds(
        lambda told: core(problem, told=told),
        oracle(monotone([0b0101])),
        problem=problem,
        concurrency=16,
    )

    assert (ahead.rounds, ahead.reduction.kept) == (1, 0b0101)


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_a_limit_is_never_passed(limit: int) -> None:
    problem = Problem([1.0] * 16, [i / 16 for i in range(16)])
    rule = monotone([0b1001])

    ahead = drive_in_rounds(
        lambda _: jointcore(problem.cost_order()),
        oracle(rule),
        problem=problem,
        concurrency=4,
        limit=limit,
    )

    assert ahead.reduction.evaluations == limit
    assert rule(ahead.reduction.kept)
    assert not ahead.reduction.finished


def test_a_question_is_never_put_twice() -> None:
    problem = Problem([1.0] * 8, [0.5] * 8)
    seen: list[Ask] = []

    def answer(ask: Ask) -> bool:
        seen.append(ask)
        return ask.coalition == problem.everything

    drive_in_rounds(lambda _: jointcore(range(8)), answer, problem=problem, concurrency=4)

    assert len(seen) == len(set(seen))


def test_no_questions_at_once_are_refused() -> None:
    problem = Problem([1.0], [0.5])

    with pytest.raises(ValueError, match="concurrency must be at least 1"):
        Speculator(lambda _: jointcore([0]), problem, concurrency=0)
