"""Clearing on one laboratory: what is withheld was verified, and nothing else is."""

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pytest

from assay.errors import GuardFailed, ModelUnavailable
from assay.guards.budget import Limits
from assay.guards.clearing.live import Bar, LiveGame
from assay.guards.clearing.measured import measured
from assay.guards.coalitions import EMPTY, Coalition, Utilities, coalition_of, contains, grand
from assay.guards.meclear import MeClear
from assay.guards.methods import MECLEAR_VARIANTS, guard_named
from assay.guards.protocols import (
    Ask,
    Case,
    Completion,
    Decision,
    Experimenter,
    Message,
    Outcome,
    Request,
)
from assay.guards.values import OutcomeValue

from .support import TableModel, case, laboratory, prompt_of, render, say

Rule = Callable[[set[int]], float | str]


class Stated(OutcomeValue):
    """The value is the number the model says; a word is no measurement."""

    async def worth(self, outcomes: Sequence[Outcome]) -> Utilities:
        return np.array([_number(outcome.text) for outcome in outcomes])


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def stated(_case: Case, lab: Experimenter) -> OutcomeValue:
    return Stated(lab)


def shown(prompt: str) -> set[int]:
    return {int(i) for i in prompt.partition(":")[2].split()}


def model_of(rule: Rule) -> TableModel:
    return TableModel(lambda prompt: say(str(rule(shown(prompt)))))


def of(n: int) -> Case:
    return case("Where?", *(f"record {i}" for i in range(n)))


def clearer(**options: object) -> MeClear:
    return MeClear(value=stated, **options)  # type: ignore[arg-type]  # one test's options


def with_draw(ask: Ask) -> Request:
    """The prompt says which draw it is, so that a model can answer another time otherwise."""
    message = Message(role="user", content=prompt_of(ask).replace("plain", str(ask.draw)))
    return msgspec.structs.replace(render(ask), messages=(message,))


def withheld(decision: Decision) -> set[int]:
    return {i for i, j in enumerate(decision.judgements) if not j.admitted}


def copies(*harmful: int, gold: int = 0) -> Rule:
    """Right iff the gold record is shown and none of the copies is."""
    return lambda s: 0.9 if gold in s and not s & set(harmful) else 0.1


async def test_redundant_copies_are_cleared_where_leave_one_out_sees_nothing() -> None:
    rule = copies(1, 3)
    model = model_of(rule)

    decision = await clearer().review(of(5), laboratory(model))

    everyone = set(range(5))
    assert all(rule(everyone - {i}) == rule(everyone) for i in everyone)
    assert withheld(decision) == {1, 3}
    assert decision.certificate == "recovered"
    assert decision.spent.evaluations == model.calls


async def test_the_two_copies_share_the_harm_and_are_a_substitution() -> None:
    decision = await clearer().review(of(5), laboratory(model_of(copies(1, 3))))

    effects = [decision.judgements[i].effect for i in (1, 3)]
    assert effects == pytest.approx([-0.4, -0.4])
    assert decision.trace is not None
    [pair] = decision.trace.interactions
    assert pair.meaning == "substitution"
    assert pair.strength == pytest.approx(0.8)


async def test_of_a_joint_fault_one_part_is_withheld_and_the_pair_is_shown() -> None:
    decision = await clearer().review(
        of(5), laboratory(model_of(lambda s: 0.1 if {1, 3} <= s or 0 not in s else 0.9))
    )

    assert len(withheld(decision) & {1, 3}) == 1
    assert len(withheld(decision)) == 1
    [other] = {1, 3} - withheld(decision)
    assert "only beside a record that is withheld" in decision.judgements[other].reason
    assert decision.trace is not None
    assert [p.meaning for p in decision.trace.interactions] == ["joint interference"]


async def test_a_right_context_is_left_alone_for_one_question() -> None:
    model = model_of(copies(gold=0))

    decision = await clearer().review(of(5), laboratory(model))

    assert withheld(decision) == set()
    assert (decision.certificate, model.calls) == ("clean", 1)
    assert decision.trace is not None
    assert (decision.trace.before, decision.trace.bar) == (0.9, 0.5)


async def test_where_every_record_harms_and_nothing_is_known_without_them_nothing_is_cleared() -> (
    None
):
    decision = await clearer().review(of(4), laboratory(model_of(lambda _: 0.1)))

    assert withheld(decision) == set()
    assert decision.certificate == "none"
    assert all(j.decided for j in decision.judgements)


async def test_where_every_record_harms_and_the_bare_question_is_answered_all_go() -> None:
    decision = await clearer().review(of(3), laboratory(model_of(lambda s: 0.1 if s else 0.9)))

    assert withheld(decision) == {0, 1, 2}


async def test_no_candidate_is_no_question() -> None:
    model = model_of(lambda _: 0.9)

    decision = await clearer().review(of(0), laboratory(model))

    assert (decision.judgements, model.calls) == ((), 0)


@pytest.mark.parametrize(("alone", "bare", "expected"), [(0.9, 0.1, set[int]()), (0.1, 0.9, {0})])
async def test_one_candidate_goes_only_if_the_answer_is_right_without_it(
    alone: float, bare: float, expected: set[int]
) -> None:
    decision = await clearer().review(of(1), laboratory(model_of(lambda s: alone if s else bare)))

    assert withheld(decision) == expected


async def test_what_only_the_first_draw_recovers_is_not_cleared() -> None:
    """A redraw changes the seed; the model answers right on the first draw only."""

    def once(prompt: str) -> Completion:
        draw, _, members = prompt.partition(":")
        return say("0.9" if draw == "0" and members == "0 2" else "0.1")

    lab = laboratory(TableModel(once), renderer=with_draw)

    decision = await clearer().review(of(3), lab)

    assert withheld(decision) == set()
    assert decision.certificate == "none"
    assert decision.trace is not None
    assert [t.recovered for t in decision.trace.tested] == [True]
    assert not any(t.verified for t in decision.trace.tested)


@pytest.mark.parametrize("calls", range(14))
async def test_nothing_withheld_was_left_unverified_whatever_the_budget(calls: int) -> None:
    decision = await clearer().review(
        of(5), laboratory(model_of(copies(1, 3)), limits=Limits(calls=calls))
    )

    decided_out = {i for i, j in enumerate(decision.judgements) if not j.admitted and j.decided}
    assert decided_out in (set(), {1, 3})
    assert bool(decided_out) == decision.certificate.startswith("recovered")


async def test_a_budget_that_ends_at_the_explanation_still_clears_what_was_verified() -> None:
    rule = copies(1, 2, 3)
    whole = await clearer().review(of(5), laboratory(model_of(rule)))
    short = Limits(calls=whole.spent.evaluations - 1)

    decision = await clearer().review(of(5), laboratory(model_of(rule), limits=short))

    assert withheld(decision) == withheld(whole) == {1, 2, 3}
    assert decision.certificate == "recovered"
    assert decision.trace is not None
    assert whole.trace is not None
    assert len(decision.trace.interactions) < len(whole.trace.interactions) == 3


async def test_a_budget_below_the_screen_is_marked_and_leaves_the_rest_to_the_policy() -> None:
    decision = await clearer(on_undecided="admit_flagged").review(
        of(5), laboratory(model_of(copies(1)), limits=Limits(calls=1))
    )

    assert decision.certificate == "none, stopped by the budget"
    assert all(j.admitted and j.flagged and not j.decided for j in decision.judgements)
    assert "the budget ended" in decision.judgements[0].reason


async def test_a_budget_of_nothing_asks_nothing() -> None:
    model = model_of(copies(1))

    decision = await clearer(on_undecided="ask").review(
        of(2), laboratory(model, limits=Limits(calls=0))
    )

    assert model.calls == 0
    assert decision.ask
    assert decision.certificate == "none, stopped by the budget"


async def test_without_a_measurement_every_candidate_is_undecided() -> None:
    decision = await clearer().review(of(3), laboratory(model_of(lambda _: "no idea")))

    assert not any(j.decided for j in decision.judgements)
    assert decision.trace is not None
    assert decision.trace.before is None


async def test_a_hole_in_the_measurements_leaves_the_rest_measured() -> None:
    def rule(s: set[int]) -> float | str:
        if s == {0, 1, 2}:
            return 0.1
        return "no idea" if 1 in s else 0.2

    decision = await clearer().review(of(3), laboratory(model_of(rule)))

    assert [j.decided for j in decision.judgements] == [True, True, True]
    assert decision.certificate == "none"
    assert decision.judgements[1].effect == pytest.approx(-0.1)


async def test_a_candidate_whose_contexts_gave_no_measurement_is_undecided() -> None:
    rule: Rule = lambda s: 0.1 if 1 in s else "no idea"  # noqa: E731  # a table

    decision = await clearer().review(of(2), laboratory(model_of(rule)))

    assert [j.decided for j in decision.judgements] == [True, False]


async def test_an_archive_that_says_nothing_measures_nothing_blind() -> None:
    decision = await MeClear().review(
        case("Where?", "a", "b"), laboratory(model_of(lambda _: "Paris"))
    )

    assert not any(j.decided for j in decision.judgements)


async def test_blind_agreement_clears_what_the_archive_contradicts() -> None:
    archived = case(
        "Where does Ann live?",
        "Ann lives in Lisbon.",
        "Ann lives in Oslo.",
        "Oslo it is.",
        archive=["Ann: I live in Lisbon now."],
    )
    model = TableModel(lambda p: say("Oslo" if shown(p) & {1, 2} else "Lisbon"))

    decision = await guard_named("meclear").review(archived, laboratory(model))

    assert withheld(decision) == {1, 2}


async def test_a_model_that_fails_is_left_to_the_policy() -> None:
    model = TableModel(lambda _: ModelUnavailable("down"))

    with pytest.raises(GuardFailed, match=r"all 3 records gave no answer: unavailable"):
        await clearer().review(of(3), laboratory(model))


@pytest.mark.parametrize("name", MECLEAR_VARIANTS)
async def test_the_variants_clear_a_direct_fault_and_verify_it(name: str) -> None:
    guard = guard_named(name, value=stated)

    decision = await guard.review(of(5), laboratory(model_of(copies(2))))

    assert decision.method == name
    assert withheld(decision) == {2}
    assert decision.trace is not None
    assert decision.trace.tested[-1].verified


async def test_the_full_table_shows_records_that_help_only_together() -> None:
    rule: Rule = lambda s: 0.9 if {0, 1} <= s and 2 not in s else 0.1  # noqa: E731  # a table

    decision = await clearer(search="exact").review(of(3), laboratory(model_of(rule)))

    assert decision.trace is not None
    first, second = (decision.judgements[i].record_id for i in (0, 1))
    meanings = {(p.first, p.second): p.meaning for p in decision.trace.interactions}
    assert meanings[first, second] == "complementarity"


async def test_more_candidates_than_a_machine_word_has_bits() -> None:
    decision = await clearer().review(of(70), laboratory(model_of(copies(5, 66))))

    assert withheld(decision) == {5, 66}
    assert decision.certificate == "recovered"


async def test_a_hair_above_the_threshold_is_no_recovery() -> None:
    rule: Rule = lambda s: 0.49 if s == {0, 1} else 0.51  # noqa: E731  # a table

    decision = await clearer().review(of(2), laboratory(model_of(rule)))

    assert withheld(decision) == set()


async def test_by_improvement_a_low_value_may_still_be_cleared() -> None:
    rule: Rule = lambda s: 0.1 if 1 in s else 0.3  # noqa: E731  # a table
    guard = clearer(bar=Bar(recovery="improvement"))

    decision = await guard.review(of(2), laboratory(model_of(rule)))

    assert withheld(decision) == {1}


async def test_by_improvement_the_highest_value_leaves_nothing_to_clear() -> None:
    model = model_of(lambda _: 0.98)
    guard = clearer(bar=Bar(recovery="improvement"))

    decision = await guard.review(of(2), laboratory(model))

    assert (decision.certificate, model.calls) == ("clean", 1)


def test_a_bar_without_a_gain_is_refused() -> None:
    with pytest.raises(ValueError, match="least_gain must be above 0"):
        Bar(least_gain=0.0)
    with pytest.raises(ValueError, match="threshold must be finite"):
        Bar(threshold=math.nan)
    with pytest.raises(ValueError, match="verifications must be at least 1"):
        MeClear(verifications=0)


@pytest.mark.parametrize("height", [0.0, 0.3, 0.5, 1.0])
def test_grading_puts_the_bar_at_one_half_and_keeps_the_order(height: float) -> None:
    game = LiveGame(Stated(laboratory(TableModel())), laboratory(TableModel()), n=1, bar=Bar())
    game.height = height
    worth = np.array([0.0, 0.2, 0.3, np.nextafter(0.5, 0), 0.5, 1.0, math.nan])

    graded = game.graded(worth)

    assert ((graded >= 0.5) == (worth >= height)).all()
    assert (np.diff(graded[:-1]) >= 0).all()
    assert math.isnan(graded[-1])


def test_an_effect_nobody_measured_is_no_number() -> None:
    found = measured({grand(3): 0.1, Coalition(0b011): 0.4}, 3, EMPTY)

    assert found.effects[2] == pytest.approx(-0.3)
    assert np.isnan(found.effects[:2]).all()
    assert math.isnan(found.pairs[0, 1])


def test_a_square_of_contexts_measures_a_pair() -> None:
    known = {Coalition(bits | 4): value for bits, value in enumerate([0.9, 0.1, 0.1, 0.1])}

    found = measured(known, 3, EMPTY)

    assert found.pairs[0, 1] == pytest.approx(0.8)
    assert contains(coalition_of([1]), 1)


async def test_a_decision_with_its_trace_survives_the_journal() -> None:
    decision = await clearer().review(of(5), laboratory(model_of(copies(1, 3))))

    again = msgspec.json.decode(msgspec.json.encode(decision), type=Decision)

    assert again == decision
