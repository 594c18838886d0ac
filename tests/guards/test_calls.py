"""Attempts of one call, each paid for; and answers that nobody was asked for."""

from collections.abc import Sequence

import pytest

from assay.errors import ModelUnavailable
from assay.guards.budget import Limits
from assay.guards.calls import call_under_way
from assay.guards.coalitions import Coalition
from assay.guards.protocols import Ask, Completion, DeltaSink, Message, Request

from .support import ANSWER_TOKENS, PROMPT_TOKENS, TableModel, laboratory, render, say

ASK = Ask(Coalition(1))
ONE_CALL = PROMPT_TOKENS + ANSWER_TOKENS


class Persistent(TableModel):
    """Fails so often, and tries again as long as it may."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures
        self.attempts = 0

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        while True:
            self.attempts += 1
            if self.attempts > self.failures:
                return say("yes")
            if not call_under_way().try_again():
                raise ModelUnavailable("no attempt left")


class Recorded(TableModel):
    """Answers from a recording."""

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        call_under_way().recorded()
        return say("yes")

    def count_tokens(self, messages: Sequence[Message]) -> int:
        return PROMPT_TOKENS


async def test_every_attempt_is_paid_for() -> None:
    model = Persistent(2)
    lab = laboratory(model, limits=Limits(calls=3, tokens=3 * ONE_CALL))

    outcome = await lab.outcome(ASK)

    assert outcome.text == "yes"
    assert lab.ledger().live == model.attempts == 3
    assert lab.ledger().evaluations == 1


@pytest.mark.parametrize("limits", [Limits(calls=2), Limits(tokens=2 * ONE_CALL)])
async def test_no_attempt_is_made_that_the_budget_does_not_pay(limits: Limits) -> None:
    model = Persistent(9)
    lab = laboratory(model, limits=limits)

    outcome = await lab.outcome(ASK)

    assert outcome.status == "unavailable"
    assert lab.ledger().live == model.attempts == 2


async def test_a_recorded_answer_is_no_live_call_but_costs_the_budget_the_same() -> None:
    lab = laboratory(Recorded(), limits=Limits(calls=1))

    await lab.outcome(ASK)

    spent = lab.ledger()
    assert (spent.evaluations, spent.cache_hits, spent.live, spent.tokens) == (1, 1, 0, 0)


async def test_outside_of_a_laboratory_nobody_counts() -> None:
    assert call_under_way().try_again()
    assert (await Recorded().complete(render(ASK))).text == "yes"
