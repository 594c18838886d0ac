import pytest
from hypothesis import given, settings

from assay.guards.coalitions import Coalition
from assay.guards.protocols import Ask
from assay.guards.reduction.core import core
from assay.guards.reduction.noisy import Trust, checked, core_robust, looks_at, voted
from assay.guards.reduction.published import jointcore
from assay.guards.reduction.search import Problem, drive

from .support_reduction import Rule, is_one_minimal, monotone, monotone_cases, oracle

PROBLEM = Problem([4.0, 3.0, 2.0, 1.0, 1.0, 1.0], [0.9, 0.8, 0.7, 0.6, 0.2, 0.1])


@given(monotone_cases())
@settings(deadline=None)
def test_without_errors_a_vote_changes_nothing(case: tuple[Problem, Rule]) -> None:
    problem, rule = case
    alone = drive(jointcore(problem.cost_order()), oracle(rule), problem=problem)

    found = drive(
        voted(jointcore(problem.cost_order()), looks_at(), 3), oracle(rule), problem=problem
    )

    assert found.kept == alone.kept
    assert found.evaluations == 2 * alone.evaluations


@given(monotone_cases(most=6))
@settings(deadline=None, max_examples=40)
def test_without_errors_belief_ends_with_a_sufficient_core(case: tuple[Problem, Rule]) -> None:
    problem, rule = case

    found = drive(
        core_robust(problem, looks_at(), Trust(error=0.05)), oracle(rule), problem=problem
    )

    assert rule(found.kept)


def test_belief_outvotes_a_first_answer_that_was_wrong() -> None:
    rule = monotone([0b0011])
    asked: set[int] = set()

    def wrong_at_first(ask: Ask) -> bool:
        first = ask.coalition not in asked and not asked
        asked.add(ask.coalition)
        return rule(ask.coalition) != first

    found = drive(core_robust(PROBLEM, looks_at()), wrong_at_first, problem=PROBLEM)

    assert is_one_minimal(rule, found.kept)


def test_a_failed_final_check_starts_the_search_over() -> None:
    rule = monotone([0b0011])
    lies = {Ask(Coalition(kept)) for kept in (0b0000, 0b0001, 0b0010)}

    def lying(ask: Ask) -> bool:
        return rule(ask.coalition) != (ask in lies)

    found = drive(checked(lambda: core(PROBLEM), PROBLEM, looks_at()), lying, problem=PROBLEM)

    assert rule(found.kept)
    assert found.certificate == "sufficient"


def test_persistent_errors_are_asked_about_in_another_rendering() -> None:
    looks = looks_at(("plain", "reordered"))
    rule = monotone([0b0011])

    def wrong_when_plain(ask: Ask) -> bool:
        return rule(ask.coalition) != (ask.rendering == "plain" and ask.coalition == 0b0001)

    found = drive(checked(lambda: core(PROBLEM), PROBLEM, looks), wrong_when_plain, problem=PROBLEM)

    assert rule(found.kept)
    assert {step.ask.rendering for step in found.steps} == {"plain", "reordered"}


def test_a_search_that_never_passes_the_check_returns_everything() -> None:
    def once_only(ask: Ask) -> bool:
        return ask.draw == 0

    found = drive(
        checked(lambda: jointcore(range(6)), PROBLEM, looks_at()), once_only, problem=PROBLEM
    )

    assert (found.kept, found.certificate) == (PROBLEM.everything, "unreduced")


def test_looks_go_through_the_renderings_before_they_draw_again() -> None:
    looks = looks_at(("plain", "reordered"))

    seen = [looks(time) for time in range(3)]

    assert seen == [("plain", 0), ("reordered", 0), ("plain", 1)]


@pytest.mark.parametrize("votes", [0, 2, -1])
def test_votes_that_can_tie_are_refused(votes: int) -> None:
    with pytest.raises(ValueError, match="odd and positive"):
        next(voted(jointcore([0]), looks_at(), votes))


@pytest.mark.parametrize("error", [0.0, 0.5, 1.0])
def test_an_error_rate_that_says_nothing_is_refused(error: float) -> None:
    with pytest.raises(ValueError, match=r"error must be in \(0, 0.5\)"):
        next(core_robust(PROBLEM, looks_at(), Trust(error=error)))


def test_no_rendering_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one rendering"):
        looks_at(())


def test_an_evaluator_that_never_agrees_leaves_everything() -> None:
    found = drive(core_robust(PROBLEM, looks_at()), lambda _: False, problem=PROBLEM)

    assert (found.kept, found.certificate) == (PROBLEM.everything, "unreduced")


def test_a_core_of_everything_needs_no_final_check() -> None:
    rule = monotone([PROBLEM.everything])
    alone = drive(jointcore(range(6)), oracle(rule), problem=PROBLEM)

    found = drive(
        checked(lambda: jointcore(range(6)), PROBLEM, looks_at()), oracle(rule), problem=PROBLEM
    )

    assert found.kept == PROBLEM.everything
    assert found.evaluations == alone.evaluations


def test_belief_finds_a_record_far_below_the_top() -> None:
    problem = Problem([1.0] * 20, [1 - i / 20 for i in range(20)])
    rule = monotone([1 << 1 | 1 << 15])

    found = drive(core_robust(problem, looks_at()), oracle(rule), problem=problem)

    assert found.kept == 1 << 1 | 1 << 15
