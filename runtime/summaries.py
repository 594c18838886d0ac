"""A model's summary in the place of the records it was made from."""

from collections.abc import Sequence
from datetime import datetime

from assay.errors import GuardFailed
from assay.guards.outcomes import has_answer
from assay.guards.protocols import Outcome
from assay.stores.records import Candidate, MemoryRecord, Origin, RecordId


def summary_candidate(
    outcome: Outcome, candidates: Sequence[Candidate], *, now: datetime
) -> Candidate:
    """The only candidate of a prompt that shows a summary; it is in no bank and has no fixed id.

    Args:
        outcome: Of the question that asked for the summary; a truncated one is used as it stands.
        candidates: What was summed up, at least one.
        now: When the prompt is made; shown as the summary's day.

    Raises:
        GuardFailed: If the question gave no answer.
    """
    if not has_answer(outcome) or not outcome.text.strip():
        raise GuardFailed(f"no summary to show: {outcome.status}: {outcome.detail}")
    record = MemoryRecord(
        id=RecordId("summary"),
        namespace=candidates[0].record.namespace,
        text=outcome.text,
        origin=Origin(writer="assistant", channel="summary"),
        ingested_at=now,
        derived_from=tuple(candidate.record.id for candidate in candidates),
    )
    return Candidate(record=record, score=1.0)
