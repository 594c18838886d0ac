"""All that is kept of one subject, in plain data: what a person may ask for."""

import msgspec

from assay.guards.protocols import Decision
from assay.runtime.facade import Runtime
from assay.runtime.limits import checked_user
from assay.runtime.reviews import RecordReviewed
from assay.runtime.turns import PastTurn
from assay.stores.records import ArchiveTurn, MemoryRecord, RecordId, SessionId, TurnId


class ExportedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision about the subject's records; ``id`` is its turn's."""

    id: TurnId
    session: SessionId
    decision: Decision


class SubjectExport(msgspec.Struct, frozen=True, kw_only=True):
    """What a bank holds of a subject.

    Attributes:
        subject: Whose.
        records: Every record, corrected and expired ones included, in order of writing, but for those
            whose consent forbids an export.
        forbidden: How many those are.
        erased: Ids of erased records; nothing else of them is left.
        archive: The past turns as they were said.
        turns: The turns as the journal has them.
        decisions: What was decided about the records.
        reviews: What people said about the records.
        cached_answers: How many answers of models to questions that showed them are kept.
    """

    subject: str
    records: list[MemoryRecord]
    forbidden: int
    erased: list[RecordId]
    archive: list[ArchiveTurn]
    turns: list[PastTurn]
    decisions: list[ExportedDecision]
    reviews: list[RecordReviewed]
    cached_answers: int


async def export_subject(runtime: Runtime, user: str) -> SubjectExport:
    """Everything a bank holds of a user.

    Raises:
        ValueError: If the name is empty, too long, or has a NUL.
    """
    namespace = checked_user(user)
    changes = await runtime.bank.store.changes(namespace, after=0)
    decisions = await runtime.decisions(user)
    records = [record for record in changes.records if record.consent.export]
    return SubjectExport(
        subject=user,
        records=records,
        forbidden=len(changes.records) - len(records),
        erased=changes.erased,
        archive=await runtime.bank.archive.all(namespace),
        turns=await runtime.turns(user),
        decisions=[
            ExportedDecision(id=past.id, session=past.session, decision=past.decision)
            for past in decisions
        ],
        reviews=await runtime.reviews(user),
        cached_answers=len([row.key async for row in runtime.bank.cache.rows(namespace)]),
    )
