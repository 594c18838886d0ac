"""Group deletion live: the answer stays, the prompt shrinks, and every claim was asked."""

from collections.abc import Callable

import msgspec
import pytest

from assay.errors import GuardFailed, ModelUnavailable
from assay.guards.budget import Limits
from assay.guards.coalitions import Coalition, coalition_of
from assay.guards.jointcore import JointCore
from assay.guards.methods import guard_named
from assay.guards.protocols import Ask, Case, Completion
from assay.guards.reduction.context import Inside, reduce_context, text_tokens
from assay.guards.reduction.search import Problem, drive
from assay.guards.reduction.verification import verified_deletion

from .support import TableModel, candidate, case, laboratory, say
from .support_reduction import is_one_minimal

TEXTS = [f"record number {i} {'of many words ' * i}" for i in range(5)]


def five() -> Case:
    base = case("Where?")
    scored = [candidate(text, score=1 - i / 10) for i, text in enumerate(TEXTS)]
    return msgspec.structs.replace(base, candidates=tuple(scored))


def shown(prompt: str) -> set[int]:
    return {int(i) for i in prompt.partition(":")[2].split()}


def answering(rule: Callable[[set[int]], bool]) -> TableModel:
    return TableModel(lambda prompt: say("The Harbour." if rule(shown(prompt)) else "Unknown"))


async def test_either_of_two_suffices_and_one_is_kept() -> None:
    model = answering(lambda s: bool(s & {1, 3}))

    decision = await guard_named("jointcore").review(five(), laboratory(model))

    assert sum(j.admitted for j in decision.judgements) == 1
    assert decision.judgements[1].admitted
    assert decision.certificate == "1-minimal"
    assert decision.spent.evaluations == model.calls > 0
    assert decision.tokens_saved == sum(text_tokens(TEXTS[i]) for i in (0, 2, 3, 4))


async def test_answers_that_differ_in_case_and_articles_are_the_same_decision() -> None:
    model = TableModel(lambda p: say("the HARBOUR" if shown(p) == {2} else "Harbour."))

    decision = await JointCore().review(five(), laboratory(model))

    assert not any(j.admitted for j in decision.judgements)


async def test_a_rule_that_is_not_monotone_still_ends_one_minimal() -> None:
    def odd(s: set[int]) -> bool:
        return s in ({1}, {0, 1}, {0, 1, 2}, {0, 1, 2, 3, 4})

    decision = await JointCore().review(five(), laboratory(answering(odd)))

    kept = {i for i, j in enumerate(decision.judgements) if j.admitted}
    assert odd(kept)
    assert not any(odd(kept - {i}) for i in kept)


def test_verified_deletion_is_one_minimal_where_group_deletion_is_not() -> None:
    problem = Problem([3.0, 2.0, 1.0], [0.9, 0.9, 0.9])
    passing = {0b010, 0b011, 0b111}

    def rule(retained: int) -> bool:
        return retained in passing

    found = drive(verified_deletion(problem), lambda ask: rule(ask.coalition), problem=problem)

    assert is_one_minimal(rule, found.kept)
    assert len({step.ask for step in found.steps}) == found.evaluations


@pytest.mark.parametrize("calls", range(12))
async def test_whatever_the_budget_the_answer_stays(calls: int) -> None:
    def rule(s: set[int]) -> bool:
        return {0, 4} <= s

    lab = laboratory(answering(rule), limits=Limits(calls=calls))

    decision = await JointCore().review(five(), lab)

    assert rule({i for i, j in enumerate(decision.judgements) if j.admitted})


async def test_a_budget_below_one_evaluation_keeps_everything() -> None:
    decision = await JointCore().review(
        five(), laboratory(answering(lambda _: True), limits=Limits(calls=0))
    )

    assert all(j.admitted for j in decision.judgements)
    assert (decision.certificate, decision.tokens_saved) == ("unreduced", 0)
    assert "the budget was spent" in decision.judgements[0].reason


async def test_a_cut_reference_keeps_everything() -> None:
    model = TableModel(lambda _: Completion(text="The har", finish_reason="length"))

    decision = await JointCore().review(five(), laboratory(model))

    assert all(j.admitted for j in decision.judgements)
    assert decision.certificate == "unreduced"
    assert model.calls == 1


async def test_a_model_that_fails_is_left_to_the_policy() -> None:
    model = TableModel(lambda _: ModelUnavailable("down"))

    with pytest.raises(GuardFailed, match=r"nothing to compare with: .*unavailable"):
        await JointCore().review(five(), laboratory(model))


async def test_without_candidates_nothing_is_asked() -> None:
    model = TableModel()

    decision = await JointCore().review(case("Where?"), laboratory(model))

    assert (decision.judgements, model.calls) == ((), 0)


async def test_only_the_given_context_is_shown_and_reduced() -> None:
    model = answering(lambda s: 3 in s)
    context = coalition_of([1, 3, 4])

    reduced = await reduce_context(laboratory(model), five().candidates, context)

    assert reduced.kept == coalition_of([3])
    assert all(shown(prompt) <= {1, 3, 4} for prompt in model.prompts)
    assert reduced.tokens_saved == text_tokens(TEXTS[1]) + text_tokens(TEXTS[4])


async def test_an_empty_context_is_left_alone() -> None:
    model = TableModel()

    reduced = await reduce_context(laboratory(model), five().candidates, Coalition(0))

    assert (reduced.kept, reduced.certificate, model.calls) == (0, "unreduced", 0)


def test_a_batch_below_one_question_is_refused() -> None:
    with pytest.raises(ValueError, match="concurrency must be at least 1, got 0"):
        JointCore(concurrency=0)


async def test_the_view_of_a_context_spends_what_the_laboratory_spends() -> None:
    table = answering(lambda s: 3 in s)
    whole = laboratory(table)
    view = Inside(whole, [1, 3])

    [outcome] = await view.outcomes([Ask(coalition_of([1]))])

    assert (outcome.text, table.prompts) == ("The Harbour.", ["plain:3"])
    assert view.ledger() == whole.ledger()
