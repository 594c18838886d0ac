"""Builders and small helpers for the stores' tests."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeAlias

from assay.stores.hybrid import CurrentRecords
from assay.stores.protocols import Archive, Bank, Cache, Journal, KeywordIndex, MemoryStore
from assay.stores.records import (
    ArchiveTurn,
    MemoryRecord,
    Namespace,
    Origin,
    RecordId,
    SessionId,
    TurnId,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ANN = Namespace("ann")
BEN = Namespace("ben")
CHAT = Origin(writer="user", channel="chat")


class Stores(NamedTuple):
    """One implementation of each protocol, over one place."""

    store: MemoryStore
    keywords: KeywordIndex
    currency: CurrentRecords
    archive: Archive
    journal: Journal
    cache: Cache


OpenStores: TypeAlias = Callable[[], AbstractAsyncContextManager[Stores]]
OpenBank: TypeAlias = Callable[[], AbstractAsyncContextManager[Bank]]
FreshDatabase: TypeAlias = Callable[[], str]


class NoonClock:
    """Always noon."""

    def now(self) -> datetime:
        return NOON

    def monotonic(self) -> float:
        return 0.0


def memory(  # noqa: PLR0913 - a builder
    record_id: str,
    text: str = "Rex likes carrots",
    *,
    namespace: Namespace = ANN,
    at: datetime = NOON,
    valid_from: datetime | None = None,
    valid_to: datetime | None = None,
    supersedes: str | None = None,
    derived_from: tuple[str, ...] = (),
) -> MemoryRecord:
    return MemoryRecord(
        id=RecordId(record_id),
        namespace=namespace,
        text=text,
        origin=CHAT,
        ingested_at=at,
        valid_from=valid_from,
        valid_to=valid_to,
        supersedes=None if supersedes is None else RecordId(supersedes),
        derived_from=tuple(map(RecordId, derived_from)),
    )


def turn(  # noqa: PLR0913 - a builder
    position: int,
    text: str = "hello there",
    *,
    namespace: Namespace = ANN,
    session: str = "s1",
    speaker: str = "user",
    at: datetime | None = None,
) -> ArchiveTurn:
    return ArchiveTurn(
        id=TurnId(f"{session}-{position}"),
        namespace=namespace,
        session=SessionId(session),
        position=position,
        speaker=speaker,
        text=text,
        at=NOON + position * HOUR if at is None else at,
    )


def ids(records: list[MemoryRecord]) -> list[str]:
    return [record.id for record in records]
