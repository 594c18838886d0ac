"""Fills the bank of a scenario: records and past messages, each when its time has come."""

from datetime import datetime

from assay.runtime.facade import Runtime
from assay.runtime.remember import record_id
from assay.scenarios.cases.schema import Case, Memory, Past
from assay.stores.records import (
    ArchiveTurn,
    MemoryRecord,
    Namespace,
    Origin,
    RecordId,
    SessionId,
    TurnId,
)


class Names:
    """What the scenario calls each record."""

    def __init__(self) -> None:
        self.ids: dict[str, RecordId] = {}
        self.names: dict[RecordId, str] = {}
        self.texts: dict[str, str] = {}

    def add(self, name: str, record: RecordId, text: str) -> None:
        """Call a record so from now on."""
        self.ids[name] = record
        self.names[record] = name
        self.texts[name] = text


async def bank_until(runtime: Runtime, case: Case, names: Names, at: datetime) -> None:
    """Write every record and past message that is due by ``at`` and not written yet.

    Args:
        runtime: With the bank.
        case: What is written.
        names: Told each record's id.
        at: Time of the turn that comes.
    """
    await runtime.bank.archive.append(
        [
            _turn(case, number, past)
            for number, past in enumerate(case.archive)
            if (past.at or case.before) <= at
        ]
    )
    due = [
        memory
        for memory in case.memory
        if memory.id not in names.ids and (memory.at or case.before) <= at
    ]
    for memory in sorted(due, key=lambda memory: memory.at or case.before):
        names.add(memory.id, _id_of(case, memory), memory.text)
    await runtime.bank.store.write([_record(case, memory, names) for memory in due])


def _record(case: Case, memory: Memory, names: Names) -> MemoryRecord:
    source = _turn_id(memory.turn) if memory.turn else None
    return MemoryRecord(
        id=names.ids[memory.id],
        namespace=Namespace(memory.user or case.user),
        text=memory.text,
        origin=Origin(writer=memory.writer, channel=memory.channel, source_turn=source),
        ingested_at=memory.at or case.before,
        claimed_at=memory.claimed_at,
        valid_from=memory.valid_from,
        valid_to=memory.valid_to,
        supersedes=names.ids[memory.supersedes] if memory.supersedes else None,
    )


def _id_of(case: Case, memory: Memory) -> RecordId:
    """An id without meaning; that of its past message where it has one, so that both fall together."""
    namespace = Namespace(memory.user or case.user)
    if not memory.turn:
        return record_id(namespace, TurnId(f"scenario\0{memory.id}"), 0)
    siblings = [other.id for other in case.memory if other.turn == memory.turn]
    return record_id(namespace, _turn_id(memory.turn), siblings.index(memory.id))


def _turn(case: Case, number: int, past: Past) -> ArchiveTurn:
    earlier = [other for other in case.archive[:number] if other.session == past.session]
    return ArchiveTurn(
        id=_turn_id(past.id or f"message {number + 1}"),
        namespace=Namespace(past.user or case.user),
        session=SessionId(past.session),
        position=len(earlier),
        speaker=past.speaker,
        text=past.text,
        at=past.at or case.before,
    )


def _turn_id(name: str) -> TurnId:
    return TurnId(f"past/{name}")
