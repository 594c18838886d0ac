"""Records, candidates and turns for the tests of the runtime."""

from datetime import UTC, datetime

from assay.guards.protocols import Parameters, Renderer
from assay.runtime.prompts import make_renderer
from assay.stores.records import (
    ArchiveTurn,
    Candidate,
    MemoryRecord,
    Namespace,
    Origin,
    RecordId,
    SessionId,
    TurnId,
)

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def candidate(text: str, *, name: str = "r1", claimed_at: datetime | None = None) -> Candidate:
    record = MemoryRecord(
        id=RecordId(name),
        namespace=Namespace("u1"),
        text=text,
        origin=Origin(writer="user", channel="chat"),
        ingested_at=datetime(2026, 3, 1, 9, tzinfo=UTC),
        claimed_at=claimed_at,
    )
    return Candidate(record=record, score=0.5)


def said(text: str, *, speaker: str = "user", position: int = 0) -> ArchiveTurn:
    return ArchiveTurn(
        id=TurnId(f"t{position}"),
        namespace=Namespace("u1"),
        session=SessionId("s1"),
        position=position,
        speaker=speaker,
        text=text,
        at=NOW,
    )


def renderer(
    *candidates: Candidate, recent: tuple[ArchiveTurn, ...] = (), seed: int = 7
) -> Renderer:
    return make_renderer(
        model="m",
        question="Where to?",
        candidates=candidates,
        recent=recent,
        now=NOW,
        seed=seed,
        parameters=Parameters(),
        renderings={"shout": str.upper},
    )
