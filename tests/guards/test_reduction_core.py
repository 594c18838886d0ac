import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.guards.coalitions import Coalition, coalition_of, grand
from assay.guards.protocols import Ask
from assay.guards.reduction.certified import core_global
from assay.guards.reduction.core import Frame, core, core_certificate
from assay.guards.reduction.hitting import cheapest_hitting_set
from assay.guards.reduction.knowledge import Knowledge
from assay.guards.reduction.lattice import companions, cost_ranks, lattice, plan
from assay.guards.reduction.published import jointcore
from assay.guards.reduction.rivals import ddmin, probdd, quickxplain
from assay.guards.reduction.search import Problem, drive
from assay.guards.reduction.verification import verify

from .support_reduction import (
    Rule,
    arbitrary_cases,
    is_one_minimal,
    least_cost,
    monotone,
    monotone_cases,
    oracle,
    problems,
)


@pytest.mark.parametrize(
    ("b", "rules", "states", "shapes"), [(1, 3, 6, 3), (2, 6, 20, 5), (3, 20, 168, 10), (4, 168, 7581, 30)]
)  # fmt: skip
def test_there_are_as_many_monotone_rules_as_dedekind_counted(
    b: int, rules: int, states: int, shapes: int
) -> None:
    net = lattice(b)

    assert (len(net.rules), len(net.states)) == (rules, states)
    assert len(set(net.shapes.tolist())) == shapes


@pytest.mark.parametrize("b", [0, 5])
def test_more_records_than_the_lattice_holds_are_refused(b: int) -> None:
    with pytest.raises(ValueError, match="must be from 1 to 4"):
        Frame(Problem([1.0] * 6, [0.5] * 6), b)
    with pytest.raises(ValueError, match="takes 1 to 4 records"):
        lattice(b)


def test_the_plan_asks_for_one_record_what_can_be_asked() -> None:
    best = plan(cost_ranks([1.0]), "core", 0.05)

    start = lattice(1).state([None, None])

    assert best.question[start] in {0, 1}
    assert companions(cost_ranks([1.0]), "core", 0.05, start, 4)[0] == best.question[start]


@given(monotone_cases())
@settings(deadline=None)
def test_a_core_is_1_minimal_for_a_monotone_decision(case: tuple[Problem, Rule]) -> None:
    problem, rule = case

    found = drive(core(problem), oracle(rule), problem=problem)

    assert is_one_minimal(rule, found.kept)
    assert found.certificate == "1-minimal if monotone"


@given(monotone_cases())
@settings(deadline=None)
def test_a_certified_core_is_the_cheapest_in_the_top(case: tuple[Problem, Rule]) -> None:
    problem, rule = case
    top = coalition_of(problem.ranked()[:4])

    found = drive(core_certificate(problem), oracle(rule), problem=problem)

    in_the_top = found.certificate == "least cost in the top records if monotone"
    assert in_the_top == rule(top)
    assert is_one_minimal(rule, found.kept)
    assert not in_the_top or problem.cost(found.kept) == least_cost(problem, rule, top)


@given(monotone_cases(most=9), st.integers(1, 4))
@settings(deadline=None)
def test_the_global_core_agrees_with_full_enumeration(case: tuple[Problem, Rule], b: int) -> None:
    problem, rule = case

    found = drive(core_global(problem, b), oracle(rule), problem=problem)

    assert rule(found.kept)
    assert problem.cost(found.kept) == least_cost(problem, rule, problem.everything)
    assert found.certificate == "least cost if monotone"


@given(arbitrary_cases())
@settings(deadline=None)
def test_a_verified_core_is_1_minimal_for_any_decision(case: tuple[Problem, Rule]) -> None:
    problem, rule = case

    found = drive(verify(problem), oracle(rule), problem=problem)

    assert is_one_minimal(rule, found.kept)
    assert found.certificate == "1-minimal"


@given(arbitrary_cases())
@settings(deadline=None)
def test_what_a_verified_core_claims_was_asked(case: tuple[Problem, Rule]) -> None:
    problem, rule = case

    found = drive(verify(problem), oracle(rule), problem=problem)

    asked = {step.ask.coalition: step.same for step in found.steps}
    assert asked.get(found.kept, found.kept == problem.everything)
    assert not any(asked[Coalition(found.kept & ~(1 << i))] for i in range(problem.n) if found.kept >> i & 1)  # fmt: skip


@given(arbitrary_cases(), st.integers(0, 10))
@settings(deadline=None)
def test_our_searches_hold_a_sufficient_set_at_every_budget(
    case: tuple[Problem, Rule], limit: int
) -> None:
    problem, rule = case

    found = drive(verify(problem), oracle(rule), problem=problem, limit=limit)

    assert rule(found.kept)
    assert found.evaluations <= limit


@given(monotone_cases())
@settings(deadline=None)
def test_no_question_is_asked_twice(case: tuple[Problem, Rule]) -> None:
    problem, rule = case

    found = drive(core_global(problem), oracle(rule), problem=problem)

    assert len({step.ask for step in found.steps}) == found.evaluations


@pytest.mark.parametrize("n", [64, 4096])
def test_a_core_in_the_top_takes_no_more_questions_among_more_records(n: int) -> None:
    problem = Problem([2.0] * n, [1 - i / n for i in range(n)])
    rule = monotone([0b11])

    found = drive(core(problem), oracle(rule), problem=problem)

    assert found.kept == 0b11
    assert found.evaluations <= 6


def test_a_record_far_below_the_top_is_found_in_fewer_questions_than_by_group_deletion() -> None:
    problem = Problem([2.0] * 256, [1 - i / 256 for i in range(256)])
    rule = oracle(monotone([1 << 3 | 1 << 201]))

    found = drive(core(problem), rule, problem=problem)

    assert found.kept == 1 << 3 | 1 << 201
    assert (
        found.evaluations
        < drive(jointcore(problem.cost_order()), rule, problem=problem).evaluations
    )


@given(monotone_cases())
@settings(deadline=None)
def test_ddmin_and_quickxplain_are_1_minimal_for_a_monotone_decision(
    case: tuple[Problem, Rule],
) -> None:
    problem, rule = case
    order = problem.cost_order()

    halved = drive(ddmin(order), oracle(rule), problem=problem)
    explained = drive(quickxplain(order[::-1]), oracle(rule), problem=problem)

    assert is_one_minimal(rule, halved.kept)
    assert is_one_minimal(rule, explained.kept)


@given(arbitrary_cases())
@settings(deadline=None)
def test_probdd_ends_with_a_sufficient_set(case: tuple[Problem, Rule]) -> None:
    problem, rule = case

    found = drive(probdd(problem.cost_order()), oracle(rule), problem=problem)

    assert rule(found.kept)


def test_probdd_refuses_a_prior_that_is_certain() -> None:
    with pytest.raises(ValueError, match=r"prior must be in \(0, 1\)"):
        next(probdd([0, 1], prior=1.0))


@given(problems(), st.data())
@settings(deadline=None)
def test_the_hitting_set_is_the_cheapest_by_full_enumeration(
    problem: Problem, data: st.DataObject
) -> None:
    sets = data.draw(st.lists(st.integers(1, problem.everything), max_size=5))

    found = cheapest_hitting_set(problem, sets)

    def hits(kept: int) -> bool:
        return all(kept & one for one in sets)

    assert hits(found)
    assert problem.cost(found) == least_cost(problem, hits, problem.everything)


def test_an_empty_set_cannot_be_hit() -> None:
    with pytest.raises(ValueError, match="empty set"):
        cheapest_hitting_set(Problem([1], [1]), [0])


def test_an_answer_that_contradicts_what_followed_changes_nothing_else() -> None:
    knowledge = Knowledge(grand(3))
    knowledge.learn(0b001, same=True)

    knowledge.learn(0b011, same=False)

    assert knowledge.asked[0b011] is False
    assert knowledge.implied(0b011) is True


def test_answers_of_another_rendering_or_draw_are_not_taken_for_plain_ones() -> None:
    other = Ask(Coalition(0b001), rendering="reordered")
    redrawn = Ask(Coalition(0b010), draw=1)

    knowledge = Knowledge(grand(3), {other: True, redrawn: True, Ask(Coalition(0b100)): True})

    assert knowledge.asked == {0b100: True}
