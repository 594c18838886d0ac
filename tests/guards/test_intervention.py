"""CMI selects as published, spends what it says, and never takes no measurement for harmless."""

import math
from collections.abc import Mapping
from functools import partial

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import BudgetExceeded, GuardFailed, ModelUnavailable
from assay.guards.budget import Limits
from assay.guards.coalitions import members
from assay.guards.intervention import CMI, Criterion, Effect, passes
from assay.guards.perturb import PERTURBATIONS, perturbation_for
from assay.guards.protocols import (
    Ask,
    Case,
    Completion,
    Experimenter,
    Judgement,
    Message,
    OnUndecided,
    Parameters,
    Request,
)
from assay.guards.values import AgainstReference, OutcomeValue

from .support import DictCache, TableModel, candidate, case, laboratory, say

TEXTS = ("Ann lives in Lisbon", "Ann lives in Porto", "Ann has a dog")
THREE = case("Where does Ann live?", *TEXTS)


def scored(case: Case, laboratory: Experimenter) -> OutcomeValue:
    """The answer is its own score."""
    return AgainstReference(laboratory, float)


def table(scores: Mapping[str, float]) -> TableModel:
    """Answers with the score of a condition: ``no``, ``with I`` or ``pert I``."""

    def answer(prompt: str) -> Completion | Exception:
        rendering, _, shown = prompt.partition(":")
        shown_as = "with" if rendering == "plain" else "pert"
        condition = f"{shown_as} {shown}" if shown else "no"
        score = scores.get(condition)
        return ModelUnavailable(condition) if score is None else say(str(score))

    return TableModel(answer=answer)


BY_HAND = {
    "no": 0.5,
    "with 0": 0.75,  # utility +0.25, stability +0.25: admitted
    "pert 0": 0.5,
    "with 1": 0.75,  # utility +0.25, stability -0.25: withheld
    "pert 1": 1.0,
    "with 2": 0.5,  # utility 0: withheld
    "pert 2": 0.25,
}


cmi = partial(CMI, value=scored)


async def test_a_hand_computed_case() -> None:
    decision = await cmi().review(THREE, laboratory(table(BY_HAND)))

    assert [j.admitted for j in decision.judgements] == [True, False, False]
    assert [j.effect for j in decision.judgements] == [0.25, 0.25, 0.0]
    assert all(j.decided and j.method == "cmi" for j in decision.judgements)
    assert [j.reason for j in decision.judgements] == [
        "the answer is better with it (+0.25), and no perturbed wording of it serves better",
        "a perturbed wording of it serves better (-0.25)",
        "the answer is no better with it (+0.00)",
    ]


@pytest.mark.parametrize(
    ("guard", "admitted", "name"),
    [
        (cmi(criterion="utility"), [0, 1], "cmi_utility"),
        (cmi(perturb=False), [0, 1], "cmi_no_perturbation"),
        (cmi(criterion="stability"), [0, 2], "cmi_stability"),
        (cmi(tolerance=0.25), [0, 1], "cmi"),
        (cmi(tolerance=0.25, most_records=1), [0], "cmi"),
        (cmi(most_records=0), [], "cmi"),
        (cmi(criterion="stability", most_records=1), [0], "cmi_stability"),
    ],
)
async def test_a_variant_admits_what_its_criterion_says(
    guard: CMI, admitted: list[int], name: str
) -> None:
    decision = await guard.review(THREE, laboratory(table(BY_HAND)))

    assert [i for i, j in enumerate(decision.judgements) if j.admitted] == admitted
    assert guard.name == decision.method == name


@pytest.mark.parametrize(
    ("guard", "reason"),
    [
        (cmi(criterion="utility"), "the answer is better with it (+0.25)"),
        (cmi(criterion="stability"), "no perturbed wording of it serves better (+0.25)"),
        (cmi(most_records=0), "it helps (+0.25), but others help more and the limit is reached"),
    ],
)
async def test_a_reason_claims_only_what_was_measured(guard: CMI, reason: str) -> None:
    decision = await guard.review(THREE, laboratory(table(BY_HAND)))

    assert decision.judgements[0].reason == reason


@pytest.mark.parametrize(
    ("guard", "k", "evaluations"),
    [
        (cmi(), 1, 3),
        (cmi(), 3, 7),
        (cmi(criterion="utility"), 3, 7),
        (cmi(perturb=False), 3, 4),
        (cmi(criterion="stability"), 3, 6),
    ],
)
async def test_it_spends_what_it_says(guard: CMI, k: int, evaluations: int) -> None:
    model = table(BY_HAND)
    lab = laboratory(model)

    decision = await guard.review(case("Where?", *TEXTS[:k]), lab)

    assert decision.spent.evaluations == decision.spent.live == model.calls == evaluations
    assert decision.spent.tokens == model.billed_tokens


@pytest.mark.parametrize(("concurrency", "rounds"), [(7, 1), (4, 2), (1, 7)])
async def test_interventions_of_a_case_run_in_rounds(concurrency: int, rounds: int) -> None:
    model = table(BY_HAND)
    model.turns = lambda _: 2

    decision = await cmi().review(THREE, laboratory(model, concurrency=concurrency))

    assert decision.spent.rounds == rounds
    assert model.most_running == min(concurrency, 7)


async def test_the_same_review_again_asks_nothing() -> None:
    cache = DictCache()
    model = table(BY_HAND)
    first = await cmi().review(THREE, laboratory(model, cache=cache))

    second = await cmi().review(THREE, laboratory(model, cache=cache))

    assert second.judgements == first.judgements
    assert (second.spent.evaluations, second.spent.live, second.spent.cache_hits) == (7, 0, 7)


async def test_only_its_own_spend_is_in_the_decision() -> None:
    lab = laboratory(table(BY_HAND))
    await cmi().review(THREE, lab)

    decision = await cmi().review(THREE, lab)

    assert decision.spent.evaluations == decision.spent.rounds == 0


async def test_no_candidates_cost_nothing() -> None:
    lab = laboratory(TableModel())

    decision = await cmi().review(case("Where?"), lab)

    assert decision.judgements == ()
    assert lab.ledger().evaluations == 0


async def test_each_candidate_is_shown_in_the_perturbation_drawn_for_its_text() -> None:
    model = table(BY_HAND)

    await CMI(seed=11, value=scored).review(THREE, laboratory(model))

    drawn = {f"{perturbation_for(text, seed=11)}:{i}" for i, text in enumerate(TEXTS)}
    assert drawn <= set(model.prompts)


# ---- what was not measured


@pytest.mark.parametrize(
    ("missing", "undecided"),
    [
        (["no"], [0, 2]),  # candidate 1 is out by its stability alone
        (["with 0"], [0]),
        (["pert 0"], [0]),
        (["pert 2"], []),  # candidate 2 is out by its utility alone
    ],
)
async def test_an_unmeasured_candidate_is_undecided(
    missing: list[str], undecided: list[int]
) -> None:
    model = table({k: v for k, v in BY_HAND.items() if k not in missing})

    decision = await cmi().review(THREE, laboratory(model))

    assert [i for i, j in enumerate(decision.judgements) if not j.decided] == undecided
    assert not any(j.admitted for j in decision.judgements if not j.decided)


@pytest.mark.parametrize(
    ("policy", "admitted", "asked"),
    [("withhold", False, False), ("ask", False, True), ("admit_flagged", True, False)],
)
async def test_the_policy_acts_on_an_undecided_candidate(
    policy: OnUndecided, *, admitted: bool, asked: bool
) -> None:
    model = table({k: v for k, v in BY_HAND.items() if k != "pert 0"})

    decision = await cmi(on_undecided=policy).review(THREE, laboratory(model))

    judgement: Judgement = decision.judgements[0]
    assert (judgement.admitted, judgement.flagged, judgement.decided) == (admitted, admitted, False)
    assert judgement.effect == 0.25
    assert "could not be measured; " in judgement.reason
    assert bool(decision.ask) == asked


async def test_a_sure_decision_asks_nothing_of_the_user() -> None:
    decision = await cmi(on_undecided="ask").review(THREE, laboratory(table(BY_HAND)))

    assert decision.ask == ""


async def test_an_endpoint_that_is_down_fails_the_guard() -> None:
    with pytest.raises(
        GuardFailed, match="none of 7 interventions gave an answer; the first was unavailable: no"
    ):
        await cmi().review(THREE, laboratory(table({})))


async def test_a_budget_that_does_not_suffice_runs_nothing() -> None:
    model = table(BY_HAND)

    with pytest.raises(BudgetExceeded, match="7 calls needed, 6 left"):
        await cmi().review(THREE, laboratory(model, limits=Limits(calls=6)))

    assert model.calls == 0


@pytest.mark.parametrize("criterion", ["utility_and_stability", "utility", "stability"])
def test_nothing_measured_passes_nothing(criterion: Criterion) -> None:
    assert passes(Effect(math.nan, math.nan), criterion) is None


# ---- without a reference


async def test_blind_it_admits_what_the_archive_bears_out() -> None:
    answers = {"": "I do not know.", "0": "Lisbon", "1": "Porto", "2": "A dog"}
    model = TableModel(answer=lambda p: say(answers[p.partition(":")[2]]))
    blind = case("Where does Ann live?", *TEXTS, archive=["Here in Lisbon it rains"])

    decision = await CMI().review(blind, laboratory(model))

    assert [j.admitted for j in decision.judgements] == [True, False, False]


@given(order=st.permutations(range(3)), seed=st.integers(0, 9))
async def test_order_and_ids_change_no_decision(order: list[int], seed: int) -> None:
    answers = {"Lisbon": "Lisbon", "Porto": "Porto", "dog": "In May, Lisbon"}
    archive = ["Here in Lisbon it rains", "May was long"]
    texts = [TEXTS[i] for i in order]
    straight, permuted = (case("Where?", *t, archive=archive) for t in (TEXTS, texts))
    permuted = msgspec.structs.replace(
        permuted,
        candidates=tuple(candidate(text, record_id=f"{i}") for i, text in enumerate(texts)),
    )

    decisions = [
        await CMI(seed=seed).review(c, laboratory(reader(answers), renderer=partial(quote, c)))
        for c in (straight, permuted)
    ]

    before, after = ([j.admitted for j in d.judgements] for d in decisions)
    assert after == [before[i] for i in order]


def quote(of: Case, ask: Ask) -> Request:
    """Shows the texts of the coalition."""
    perturb = PERTURBATIONS.get(ask.rendering, str)
    shown = "\n".join(perturb(of.candidates[i].record.text) for i in members(ask.coalition))
    message = Message(role="user", content=shown)
    return Request(model="table", messages=(message,), parameters=Parameters())


def reader(answers: Mapping[str, str]) -> TableModel:
    """Answers by the first key word in the prompt, and "unsure" to what it is told to doubt."""

    def answer(prompt: str) -> Completion | Exception:
        believed = "" if prompt.startswith(("It is not", "This")) else prompt
        return say(next((a for word, a in answers.items() if word in believed), "unsure"))

    return TableModel(answer=answer)


async def test_blind_with_an_empty_archive_nothing_is_decided() -> None:
    decision = await CMI().review(case("Where?", *TEXTS), laboratory(TableModel()))

    assert not any(j.decided or j.admitted for j in decision.judgements)


# ---- a caller's mistake


def test_stability_without_perturbation_is_refused() -> None:
    with pytest.raises(ValueError, match="stability needs perturbed records"):
        CMI(criterion="stability", perturb=False)


@pytest.mark.parametrize("tolerance", [-0.1, math.nan])
def test_a_negative_tolerance_is_refused(tolerance: float) -> None:
    with pytest.raises(ValueError, match="tolerance must be at least 0"):
        CMI(tolerance=tolerance)


def test_a_negative_limit_of_records_is_refused() -> None:
    with pytest.raises(ValueError, match="most_records must be at least 0, got -1"):
        CMI(most_records=-1)
