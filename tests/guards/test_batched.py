"""CMI in batches and with several perturbations: what they decide, and what they spend."""

import math

import pytest

from assay.guards.batched import BatchedCMI
from assay.guards.intervention import CMI
from assay.guards.perturb import perturbations_for
from assay.guards.protocols import Case, Completion, Decision, Experimenter
from assay.guards.values import AgainstReference, OutcomeValue

from .support import TableModel, case, laboratory, say

TEXTS = tuple(f"Ann met {n} dogs in May 2023" for n in ("two", "three", "four", "five"))
FOUR = case("How many?", *TEXTS)


def scored(of: Case, experiments: Experimenter) -> OutcomeValue:
    """The answer is its own score."""
    return AgainstReference(experiments, float)


def helps(*useful: int) -> TableModel:
    """A prompt scores the share of its records that are useful, and half of it when perturbed."""

    def answer(prompt: str) -> Completion:
        rendering, _, shown = prompt.partition(":")
        members = [int(i) for i in shown.split()]
        share = sum(i in useful for i in members) / len(members) if members else 0.0
        return say(str(share if rendering == "plain" else share / 2))

    return TableModel(answer=answer)


def admitted(decision: Decision) -> list[int]:
    return [i for i, judgement in enumerate(decision.judgements) if judgement.admitted]


async def test_a_batch_that_does_not_help_is_never_tried_alone() -> None:
    model = helps(0)

    decision = await BatchedCMI(value=scored).review(FOUR, laboratory(model))

    assert admitted(decision) == [0]
    # none and two batches, then both members of the first batch, plain and perturbed
    assert model.calls == 3 + 4
    assert not {"plain:2", "plain:3"} & set(model.prompts)


async def test_when_every_batch_helps_it_decides_as_cmi_does() -> None:
    batched = await BatchedCMI(value=scored).review(FOUR, laboratory(helps(1, 2)))
    alone = await CMI(value=scored).review(FOUR, laboratory(helps(1, 2)))

    assert admitted(batched) == admitted(alone) == [1, 2]


async def test_when_no_batch_helps_nothing_more_is_asked() -> None:
    model = helps()

    decision = await BatchedCMI(value=scored, size=3).review(FOUR, laboratory(model))

    assert (admitted(decision), model.calls) == ([], 3)
    assert all(judgement.decided for judgement in decision.judgements)


@pytest.mark.parametrize("size", [1, 2, 5])
async def test_batches_take_two_rounds_at_most(size: int) -> None:
    lab = laboratory(helps(0, 3), concurrency=9)

    await BatchedCMI(value=scored, size=size).review(FOUR, lab)

    assert lab.ledger().rounds == 2


@pytest.mark.parametrize(("concurrency", "rounds"), [(9, 1), (5, 2)])
async def test_the_interventions_of_an_example_take_one_round_or_two(
    concurrency: int, rounds: int
) -> None:
    lab = laboratory(helps(0), concurrency=concurrency)

    await CMI(value=scored).review(FOUR, lab)

    ledger = lab.ledger()
    assert (ledger.evaluations, ledger.rounds) == (2 * 4 + 1, rounds)


async def test_interventions_are_in_flight_together() -> None:
    model = helps(0)
    model.turns = lambda _: 3

    await CMI(value=scored).review(FOUR, laboratory(model, concurrency=5))

    assert model.most_running == 5


def test_a_size_below_1_is_refused() -> None:
    with pytest.raises(ValueError, match="size must be at least 1, got 0"):
        BatchedCMI(size=0)


# ---- several perturbations


async def test_every_perturbation_more_costs_one_question_per_candidate() -> None:
    model = helps(0)

    await CMI(value=scored, perturbations=3).review(FOUR, laboratory(model))

    assert model.calls == 1 + 4 + 3 * 4


async def test_no_more_perturbations_are_shown_than_change_the_text() -> None:
    model = helps(0)
    one = case("How many?", "tea for all")

    await CMI(value=scored, perturbations=9).review(one, laboratory(model))

    assert model.calls == 2 + len(perturbations_for("tea for all", seed=7, count=9)) == 4


@pytest.mark.parametrize(
    ("perturbed", "tolerance", "passes", "told"),
    [
        ((0.4, 0.6), 0.0, True, "no perturbed wording"),
        ((0.4, 0.8), 0.0, False, "(-0.10, from -0.30 to +0.10)"),
        ((0.4, 0.8), 0.15, True, "no perturbed wording"),
        ((math.nan, 0.4), 0.0, True, "no perturbed wording"),
    ],
)
async def test_stability_is_a_mean_with_a_range_and_a_tolerance(
    *, perturbed: tuple[float, float], tolerance: float, passes: bool, told: str
) -> None:
    names = perturbations_for("tea for all", seed=7, count=2)
    scores = {"plain:": 0.0, "plain:0": 0.5}
    scores |= {f"{name}:0": score for name, score in zip(names, perturbed, strict=True)}
    model = TableModel(answer=lambda prompt: say(str(scores[prompt])))
    guard = CMI(value=scored, perturbations=2, tolerance=tolerance)

    decision = await guard.review(case("How many?", "tea for all"), laboratory(model))

    [judgement] = decision.judgements
    assert judgement.admitted == passes
    assert told in judgement.reason


def test_fewer_than_one_perturbation_is_refused() -> None:
    with pytest.raises(ValueError, match="perturbations must be at least 1, got 0"):
        CMI(perturbations=0)
