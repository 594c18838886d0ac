"""What becomes of a candidate that nothing decided: one named policy, in one place."""

from assay.guards.protocols import Judgement, OnUndecided
from assay.stores.records import RecordId

QUESTION = "I could not tell whether what I remember about this still holds. Can you confirm it?"
"""Asked of the user when the policy is to ask."""


def undecided(  # noqa: PLR0913  # the fields of a judgement
    record_id: RecordId,
    policy: OnUndecided,
    *,
    reason: str,
    method: str,
    effect: float | None = None,
    evidence: tuple[str, ...] = (),
) -> Judgement:
    """The judgement the policy gives: ``ask`` withholds until the user has answered.

    Args:
        record_id: The record.
        policy: What to do.
        reason: Why nothing decided.
        method: Which mechanism tried.
        effect: Its measured effect, where there is one.
        evidence: Archived turns that bore on it.
    """
    admitted = policy == "admit_flagged"
    return Judgement(
        record_id=record_id,
        admitted=admitted,
        flagged=admitted,
        decided=False,
        reason=f"{reason}; {_ACTIONS[policy]}",
        method=method,
        effect=effect,
        evidence=evidence,
    )


_ACTIONS: dict[OnUndecided, str] = {
    "withhold": "withheld, as undecided ones are",
    "ask": "withheld until you have confirmed it",
    "admit_flagged": "admitted, marked as doubtful",
}
