"""When a guard cannot decide, the declared policy acts, and everyone can see it."""

from dataclasses import dataclass

import pytest

from assay.errors import BudgetExceeded, CassetteMiss, GuardError, GuardFailed, ModelUnavailable
from assay.guards.budget import Limits
from assay.guards.coalitions import EMPTY, singleton
from assay.guards.failing import fallback, review_with_policy
from assay.guards.intervention import CMI
from assay.guards.protocols import (
    Ask,
    Case,
    Completion,
    Decision,
    Experimenter,
    Judgement,
    Ledger,
    OnGuardFailure,
)

from .support import TableModel, case, laboratory, say

TWO = case("Where?", "Ann lives in Rome", "Ann has a dog")
IDS = [c.record.id for c in TWO.candidates]
POLICIES: list[OnGuardFailure] = ["withhold_all", "admit_flagged", "last_decision"]


def judgement(i: int, *, admitted: bool, flagged: bool = False, decided: bool = True) -> Judgement:
    return Judgement(
        record_id=IDS[i],
        admitted=admitted,
        flagged=flagged,
        decided=decided,
        reason="so",
        method="test",
    )


LAST = Decision(
    method="test",
    judgements=(judgement(0, admitted=False), judgement(1, admitted=True, flagged=True)),
)


@dataclass
class Asking:
    """A guard that asks, then decides as it was told to."""

    decision: Decision
    name: str = "asking"

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        await laboratory.outcomes([Ask(EMPTY), Ask(singleton(0))])
        assert laboratory.ledger().evaluations
        return self.decision


def down(_: str) -> Completion | Exception:
    return ModelUnavailable("no route")


async def test_a_decision_passes_unchanged() -> None:
    decision = await review_with_policy(
        Asking(LAST), TWO, laboratory(TableModel()), "withhold_all", None
    )

    assert decision is LAST


@pytest.mark.parametrize(
    ("policy", "last", "admitted", "flagged"),
    [
        ("withhold_all", LAST, [], []),
        ("admit_flagged", None, [0, 1], [0, 1]),
        ("last_decision", LAST, [1], [1]),
        ("last_decision", None, [], []),
    ],
)
async def test_with_a_budget_of_nothing_the_policy_acts_visibly(
    policy: OnGuardFailure, last: Decision | None, admitted: list[int], flagged: list[int]
) -> None:
    model = TableModel()
    lab = laboratory(model, limits=Limits(calls=0))

    decision = await review_with_policy(CMI(), TWO, lab, policy, last)

    assert [i for i, j in enumerate(decision.judgements) if j.admitted] == admitted
    assert [i for i, j in enumerate(decision.judgements) if j.flagged] == flagged
    assert (decision.method, decision.fallback) == ("cmi", policy)
    assert decision.failure.startswith("budget exceeded: 5 calls needed, 0 left")
    assert all(not j.decided and policy in j.reason for j in decision.judgements)
    assert model.calls == 0


@pytest.mark.parametrize("policy", POLICIES)
async def test_an_endpoint_that_is_down_is_a_failure(policy: OnGuardFailure) -> None:
    lab = laboratory(TableModel(answer=down))

    decision = await review_with_policy(CMI(), TWO, lab, policy, None)

    assert decision.fallback == policy
    assert "no route" in decision.failure
    assert decision.spent.live == 5


async def test_failing_the_turn_raises_what_went_wrong() -> None:
    lab = laboratory(TableModel(), limits=Limits(calls=0))

    with pytest.raises(GuardFailed, match="cmi could not decide: budget exceeded") as caught:
        await review_with_policy(CMI(), TWO, lab, "fail_turn", LAST)

    assert isinstance(caught.value.__cause__, BudgetExceeded)


async def test_deciding_nothing_without_an_answer_is_a_failure() -> None:
    undecided = Decision(
        method="asking",
        judgements=tuple(judgement(i, admitted=True, decided=False) for i in (0, 1)),
    )
    lab = laboratory(TableModel(answer=down))

    decision = await review_with_policy(Asking(undecided), TWO, lab, "withhold_all", None)

    assert not decision.admitted
    assert decision.failure == "no experiment gave an answer; unavailable: no route"


async def test_deciding_by_other_means_without_an_answer_is_a_decision() -> None:
    lab = laboratory(TableModel(answer=down))

    decision = await review_with_policy(Asking(LAST), TWO, lab, "withhold_all", None)

    assert decision is LAST


async def test_being_undecided_after_an_answer_is_a_decision() -> None:
    undecided = Decision(method="asking", judgements=(judgement(0, admitted=False, decided=False),))
    model = TableModel(answer=lambda p: say("tea") if p == "plain:" else ModelUnavailable("down"))

    decision = await review_with_policy(
        Asking(undecided), TWO, laboratory(model), "withhold_all", None
    )

    assert decision is undecided


async def test_deciding_nothing_without_asking_is_a_decision() -> None:
    decision = await review_with_policy(
        CMI(), case("Where?"), laboratory(TableModel()), "fail_turn", None
    )

    assert decision == Decision(method="cmi", judgements=())


async def test_an_error_that_is_no_guards_passes() -> None:
    lab = laboratory(TableModel(answer=lambda _: CassetteMiss("not recorded")))

    with pytest.raises(CassetteMiss, match="not recorded"):
        await review_with_policy(CMI(), TWO, lab, "withhold_all", None)


def test_failing_the_turn_is_no_decision() -> None:
    with pytest.raises(ValueError, match="fail_turn gives no decision"):
        fallback("cmi", TWO, "fail_turn", None, failure="x", spent=Ledger())


def test_a_short_budget_is_a_guards_error() -> None:
    assert issubclass(BudgetExceeded, GuardError)
