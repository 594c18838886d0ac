"""Every way a question can end is an outcome, and only answers are kept."""

import math

import pytest

from assay.errors import ContextOverflow, MalformedAnswer, ModelRefused, ModelUnavailable
from assay.guards.budget import Budget, Limits
from assay.guards.coalitions import EMPTY
from assay.guards.protocols import Ask, Completion, TokenLogprob

from .support import (
    ANSWER_TOKENS,
    PROMPT_TOKENS,
    DictCache,
    TableLikelihoods,
    TableModel,
    laboratory,
)

LIKELY = Ask(EMPTY, answer="Rome")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ModelUnavailable("down"), "unavailable"),
        (ModelRefused("down"), "refused"),
        (MalformedAnswer("down"), "malformed"),
        (ContextOverflow("down"), "overflow"),
    ],
)
async def test_a_failure_is_an_outcome_and_is_asked_again(error: Exception, status: str) -> None:
    cache = DictCache()
    model = TableModel(answer=lambda _: error)
    lab = laboratory(model, cache=cache)

    first, second = await lab.outcome(Ask(EMPTY)), await lab.outcome(Ask(EMPTY))

    assert (first.status, first.detail) == (second.status, second.detail) == (status, "down")
    assert model.calls == 2
    assert not cache.kept
    assert lab.ledger().evaluations == lab.ledger().rounds == 1


async def test_a_lost_call_keeps_its_reservation() -> None:
    budget = Budget(Limits(calls=5, tokens=100))
    lab = laboratory(TableModel(answer=lambda _: ModelUnavailable("down")), budget=budget)

    await lab.outcome(Ask(EMPTY))

    assert budget.left() == Limits(calls=4, tokens=100 - PROMPT_TOKENS - ANSWER_TOKENS)
    assert lab.ledger().live == 1


async def test_a_prompt_that_does_not_fit_costs_nothing() -> None:
    budget = Budget(Limits(calls=5, tokens=100))
    lab = laboratory(TableModel(answer=lambda _: ContextOverflow("long")), budget=budget)

    await lab.outcome(Ask(EMPTY))

    assert budget.left() == Limits(calls=5, tokens=100)
    assert (lab.ledger().evaluations, lab.ledger().live) == (1, 0)


async def test_a_cut_answer_keeps_its_text_and_is_not_paid_for_again() -> None:
    cache = DictCache()
    model = TableModel(answer=lambda _: Completion(text="It is", finish_reason="length"))
    first = await laboratory(model, cache=cache).outcome(Ask(EMPTY))

    second = await laboratory(model, cache=cache).outcome(Ask(EMPTY))

    assert (first.status, first.text) == ("truncated", "It is")
    assert second == first
    assert model.calls == 1


@pytest.mark.parametrize(
    "token",
    [
        TokenLogprob("a", math.nan),
        TokenLogprob("a", -math.inf),
        TokenLogprob("a", -1, (("b", -math.inf),)),
    ],
)
async def test_log_probabilities_that_are_no_numbers_are_malformed(token: TokenLogprob) -> None:
    cache = DictCache()
    model = TableModel(answer=lambda _: Completion(text="a", logprobs=(token,)))

    outcome = await laboratory(model, cache=cache).outcome(Ask(EMPTY))

    assert outcome.status == "malformed"
    assert "token 'a'" in outcome.detail
    assert not cache.kept


async def test_log_probabilities_come_with_the_outcome() -> None:
    token = TokenLogprob("a", -0.5, (("b", -1.5),))
    cache = DictCache()
    model = TableModel(answer=lambda _: Completion(text="a", logprobs=(token,)))
    live = await laboratory(model, cache=cache).outcome(Ask(EMPTY))

    cached = await laboratory(model, cache=cache).outcome(Ask(EMPTY))

    assert live.logprobs == cached.logprobs == (token,)


@pytest.mark.parametrize("value", [None, math.nan, -math.inf, math.inf, 0.5])
async def test_a_likelihood_that_is_none_is_malformed(value: float | None) -> None:
    cache = DictCache()
    likelihood = TableLikelihoods({"plain:": value})

    outcome = await laboratory(TableModel(), cache=cache, likelihood=likelihood).outcome(LIKELY)

    assert (outcome.status, outcome.log_likelihood) == ("malformed", None)
    assert not cache.kept


@pytest.mark.parametrize(("value", "kept"), [(-1.25, -1.25), (0.0, 0.0), (1e-9, 0.0)])
async def test_a_likelihood_is_kept(value: float, kept: float) -> None:
    cache = DictCache()
    likelihood = TableLikelihoods({"plain:": value})
    model = TableModel()
    live = await laboratory(model, cache=cache, likelihood=likelihood).outcome(LIKELY)

    lab = laboratory(model, cache=cache, likelihood=likelihood)
    cached = await lab.outcome(LIKELY)

    assert live.log_likelihood == cached.log_likelihood == kept
    assert (likelihood.calls, model.calls, lab.ledger().cache_hits) == (1, 0, 1)


async def test_a_likelihood_and_an_answer_are_two_questions() -> None:
    likelihood = TableLikelihoods({"plain:": -1.0})
    lab = laboratory(TableModel(), likelihood=likelihood, limits=Limits(tokens=100))

    outcomes = await lab.outcomes([LIKELY, Ask(EMPTY)])

    assert [o.text for o in outcomes] == ["", "re plain:"]
    assert lab.ledger().evaluations == 2
    assert lab.ledger().tokens == PROMPT_TOKENS + (PROMPT_TOKENS + ANSWER_TOKENS)


async def test_a_likelihood_without_a_model_for_it_is_refused_before_anything_runs() -> None:
    model = TableModel()

    with pytest.raises(ValueError, match="this model gives no likelihoods"):
        await laboratory(model).outcomes([Ask(EMPTY), LIKELY])

    assert model.calls == 0
