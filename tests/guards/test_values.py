"""What outcomes are worth, and that no measurement is never a number."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from assay.errors import ModelUnavailable
from assay.guards.coalitions import EMPTY, Coalition, grand, singleton
from assay.guards.protocols import Completion, Outcome
from assay.guards.values import (
    AgainstReference,
    ArchiveAgreement,
    LikelihoodOf,
    OutcomeValue,
    SameAsGrand,
    normalised,
)

from .support import FixedEvidence, TableLikelihoods, TableModel, laboratory, say, turn

TURNS = [turn("I moved to Lisbon in May", 0), turn("The tram is old", 1)]


def answered(text: str) -> Outcome:
    return Outcome(status="answered", text=text)


def cut(text: str) -> Outcome:
    return Outcome(status="truncated", text=text)


def agreement(*turns: str, question: str = "Where does Ann live?") -> ArchiveAgreement:
    evidence = FixedEvidence([turn(text, i) for i, text in enumerate(turns)])
    return ArchiveAgreement(laboratory(TableModel()), question=question, evidence=evidence)


FAILED = [
    Outcome(status="unavailable", detail="down"),
    Outcome(status="refused"),
    Outcome(status="malformed"),
    Outcome(status="overflow"),
]
MAKERS: list[Callable[[], OutcomeValue]] = [
    lambda: AgainstReference(laboratory(TableModel()), lambda _: 1.0),
    lambda: SameAsGrand(laboratory(TableModel()), 2),
    lambda: LikelihoodOf(laboratory(TableModel()), "Rome"),
    lambda: agreement("Ann lives in Rome"),
]


@pytest.mark.parametrize("make", MAKERS)
async def test_a_failure_is_no_measurement(make: Callable[[], OutcomeValue]) -> None:
    utilities = await make().worth(FAILED)

    assert utilities.shape == (4,)
    assert np.isnan(utilities).all()


@pytest.mark.parametrize("make", MAKERS)
async def test_nothing_asked_gives_nothing(make: Callable[[], OutcomeValue]) -> None:
    assert (await make().worth([])).shape == (0,)


async def test_a_reference_scores_what_there_is_to_read() -> None:
    lab = laboratory(TableModel())
    value = AgainstReference(lab, lambda text: float(len(text)), low=0, high=20)

    utilities = await value([EMPTY, singleton(1)])

    assert utilities.tolist() == [len("re plain:"), len("re plain:1")]
    assert (await value.worth([cut("abc")])).tolist() == [3.0]
    assert (value.low, value.high) == (0, 20)


async def test_the_same_decision_as_with_all_is_one() -> None:
    answers = {"plain:0 1": "Tea.", "plain:0": "the  TEA", "plain:1": "Milk", "plain:": "tea"}
    model = TableModel(answer=lambda prompt: say(answers[prompt]))
    lab = laboratory(model)
    value = SameAsGrand(lab, 2)

    utilities = await value([EMPTY, singleton(0), singleton(1), grand(2)])

    assert utilities.tolist() == [1.0, 1.0, 0.0, 1.0]
    assert lab.ledger().evaluations == 4
    assert lab.ledger().rounds == 1


async def test_a_normalisation_of_the_callers_decides_what_is_the_same() -> None:
    answers = {"plain:0": "B: tea", "plain:": "B: milk"}
    lab = laboratory(TableModel(answer=lambda prompt: say(answers[prompt])))

    value = SameAsGrand(lab, 1, normalise=lambda text: text[:1])

    assert (await value([EMPTY])).tolist() == [1.0]


async def test_a_cut_answer_is_not_compared() -> None:
    value = SameAsGrand(laboratory(TableModel(answer=lambda _: say("tea"))), 1)

    utilities = await value.worth([answered("tea"), cut("tea"), answered("milk")])

    np.testing.assert_array_equal(utilities, [1.0, math.nan, 0.0])


async def test_without_an_answer_with_all_nothing_compares() -> None:
    def answer(prompt: str) -> Completion | Exception:
        return ModelUnavailable("down") if prompt == "plain:0" else say("tea")

    value = SameAsGrand(laboratory(TableModel(answer=answer)), 1)

    assert np.isnan(await value([EMPTY])).all()


@pytest.mark.parametrize(
    ("answer", "form"),
    [("The  Cat!", "cat"), ("a-b", "b"), ("\uff21nn's", "ann s"), ("...", "")],
)
def test_normalising_keeps_the_words(answer: str, form: str) -> None:
    assert normalised(answer) == form


async def test_a_likelihood_is_the_mean_probability_of_a_token() -> None:
    likelihood = TableLikelihoods({"plain:": math.log(0.25), "plain:0": 0.0, "plain:1": None})
    lab = laboratory(TableModel(), likelihood=likelihood)

    utilities = await LikelihoodOf(lab, "Rome")([EMPTY, singleton(0), singleton(1)])

    np.testing.assert_allclose(utilities, [0.25, 1.0, math.nan])


def test_the_likelihood_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="the likelihood of an empty answer"):
        LikelihoodOf(laboratory(TableModel()), "")


@pytest.mark.parametrize(
    ("answer", "worth"),
    [
        ("Lisbon", 1.0),
        ("She lives in Lisbon.", 1.0),
        ("Porto", 0.0),
        ("Lisbon, near Porto and Faro", 1 / 4),
        ("I am not sure; there is not enough information.", 0.0),
        ("Ann lives.", 0.0),
        ("...", 0.0),
        ("", 0.0),
    ],
)
async def test_an_answer_is_worth_the_share_of_its_own_words_that_were_said(
    answer: str, worth: float
) -> None:
    value = agreement("I moved to Lisbon in May", "I live alone, I am not sure why")

    utilities = await value.worth([answered(answer), cut(answer)])

    assert utilities.tolist() == pytest.approx([worth, worth])


async def test_an_empty_archive_measures_nothing() -> None:
    assert np.isnan(await agreement().worth([answered("Lisbon")])).all()


async def test_evidence_is_looked_up_once_per_answer_for_question_and_answer() -> None:
    evidence = FixedEvidence(TURNS)
    lab = laboratory(TableModel(answer=lambda _: say("Lisbon")))
    value = ArchiveAgreement(lab, question="Where?", evidence=evidence, limit=1)

    utilities = await value([Coalition(i) for i in range(4)])

    assert utilities.tolist() == [1.0] * 4
    assert evidence.asked == ["Where? Lisbon"]
