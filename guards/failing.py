"""What happens when a guard cannot decide: one declared policy, visible in the decision."""

from collections.abc import Sequence

from assay.errors import GuardError, GuardFailed
from assay.guards.accounting import spent_between
from assay.guards.outcomes import has_answer
from assay.guards.protocols import (
    Ask,
    Case,
    Decision,
    Experimenter,
    Guard,
    Judgement,
    Ledger,
    OnGuardFailure,
    Outcome,
)
from assay.stores.records import RecordId


async def review_with_policy(
    guard: Guard,
    case: Case,
    laboratory: Experimenter,
    on_failure: OnGuardFailure,
    last: Decision | None,
) -> Decision:
    """The guard's decision, or the declared policy's when the guard could not decide.

    It could not decide if it raised a ``GuardError`` (a budget that does not suffice is one), or if
    it decided about no candidate and not one of its experiments gave an answer.

    Args:
        guard: Who decides.
        case: About what.
        laboratory: With what.
        on_failure: The policy.
        last: The last decision, for ``last_decision``.

    Returns:
        The guard's decision as it is; or the policy's, with ``fallback`` and ``failure`` set.

    Raises:
        GuardFailed: If the policy is ``fail_turn``.
        AssayError: Errors that are no guard's, such as a ``CassetteMiss``, as they are.
    """
    before = laboratory.ledger()
    cause: GuardError | None = None
    watched = _Watched(laboratory)
    try:
        decision = await guard.review(case, watched)
    except GuardError as error:
        failure, cause = str(error), error
    else:
        if not (watched.nothing_answered and _decided_nothing(decision)):
            return decision
        failure = watched.failure
    if on_failure == "fail_turn":
        raise GuardFailed(f"{guard.name} could not decide: {failure}") from cause
    spent = spent_between(before, laboratory.ledger())
    return fallback(guard.name, case, on_failure, last, failure=failure, spent=spent)


def fallback(  # noqa: PLR0913  # the parts of a decision
    method: str,
    case: Case,
    policy: OnGuardFailure,
    last: Decision | None,
    *,
    failure: str,
    spent: Ledger,
) -> Decision:
    """The decision of a policy; pure.

    ``last_decision`` admits what the last decision admitted, flags included, and withholds what it
    does not know; with no last decision it withholds all.

    Args:
        method: Name of the guard that failed.
        case: What was to be decided.
        policy: What to do; ``fail_turn`` is no decision.
        last: The last decision.
        failure: What went wrong.
        spent: What trying cost.

    Raises:
        ValueError: If the policy is ``fail_turn``.
    """
    if policy == "fail_turn":
        raise ValueError("fail_turn gives no decision; raise GuardFailed")
    trusted = _trusted(case, policy, last)
    return Decision(
        method=method,
        judgements=tuple(
            _judgement(candidate.record.id, trusted, policy) for candidate in case.candidates
        ),
        spent=spent,
        fallback=policy,
        failure=failure,
    )


def _trusted(case: Case, policy: OnGuardFailure, last: Decision | None) -> dict[str, bool]:
    """Records the policy admits, and whether it flags them."""
    if policy == "admit_flagged":
        return {candidate.record.id: True for candidate in case.candidates}
    if policy == "last_decision" and last is not None:
        return {judgement.record_id: judgement.flagged for judgement in last.admitted}
    return {}


def _judgement(record_id: RecordId, trusted: dict[str, bool], policy: str) -> Judgement:
    admitted = record_id in trusted
    action = "admitted" if admitted else "withheld"
    return Judgement(
        record_id=record_id,
        admitted=admitted,
        flagged=trusted.get(record_id, False),
        decided=False,
        reason=f"the guard could not decide; {action} by the policy {policy}",
        method=policy,
    )


def _decided_nothing(decision: Decision) -> bool:
    return not any(judgement.decided for judgement in decision.judgements)


class _Watched:
    """Passes asks on and remembers whether any of them was answered."""

    def __init__(self, laboratory: Experimenter) -> None:
        self._laboratory = laboratory
        self._answered = False
        self._first_failure: Outcome | None = None

    @property
    def nothing_answered(self) -> bool:
        """Whether something was asked and every outcome was a failure."""
        return self._first_failure is not None and not self._answered

    @property
    def failure(self) -> str:
        """The first failure, in words."""
        first = self._first_failure
        return f"no experiment gave an answer; {first.status}: {first.detail}" if first else ""

    async def outcomes(self, asks: Sequence[Ask]) -> list[Outcome]:
        outcomes = await self._laboratory.outcomes(asks)
        for outcome in outcomes:
            if has_answer(outcome):
                self._answered = True
            elif self._first_failure is None:
                self._first_failure = outcome
        return outcomes

    def ledger(self) -> Ledger:
        return self._laboratory.ledger()
