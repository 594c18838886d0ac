"""What is remembered: records, candidates and archived turns. Plain data, no I/O.

All times are timezone-aware and in UTC.
"""

from datetime import datetime
from typing import Literal, NewType, TypeAlias

import msgspec

RecordId = NewType("RecordId", str)
Namespace = NewType("Namespace", str)
SessionId = NewType("SessionId", str)
TurnId = NewType("TurnId", str)

Writer: TypeAlias = Literal["user", "assistant", "tool", "external", "operator"]


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a record came from; set by the runtime at write time, never read from the text.

    Attributes:
        writer: Who said it. Tool output and web text are never the user.
        channel: Through what it came: ``chat``, ``tool:NAME``, ``web``, ``import:NAME``.
        source_turn: The archived turn it was taken from, if any.
    """

    writer: Writer
    channel: str
    source_turn: TurnId | None = None


class Consent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a record may be used for; checked when it is written and when it is read.

    Attributes:
        store: Whether it may be kept at all.
        experiments: Whether the guard may show it to a model to see what it does; a record it may
            not examine enters no prompt.
        export: Whether it may leave in an export.
        no_external_model: Never to be sent to a remote endpoint, be it a model or an embedder.
    """

    store: bool = True
    experiments: bool = True
    export: bool = True
    no_external_model: bool = False


class MemoryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One remembered statement; immutable.

    Attributes:
        id: Unique within its namespace; never reused.
        namespace: Whose memory it is (one user of one tenant); nothing crosses it.
        text: The statement itself, never empty.
        origin: Who wrote it and how it came in.
        ingested_at: When the bank took it in.
        claimed_at: The time the writer claims for it; claims earn no trust.
        valid_from: From when it holds; ``None`` means from the beginning.
        valid_to: Until when it holds, exclusive; past that it has expired. ``None``: no end.
        derived_from: Records this one was computed from.
        supersedes: The record this one replaces; the old one stays as history.
        consent: What it may be used for.
    """

    id: RecordId
    namespace: Namespace
    text: str
    origin: Origin
    ingested_at: datetime
    claimed_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    derived_from: tuple[RecordId, ...] = ()
    supersedes: RecordId | None = None
    consent: Consent = Consent()


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A record proposed for this prompt.

    Attributes:
        record: The record.
        score: Retrieval score in [0, 1], higher is better; comparable within one retrieval only.
    """

    record: MemoryRecord
    score: float


class ArchiveTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One past message as it was said; never edited.

    Attributes:
        id: Unique within its namespace.
        namespace: Whose conversation it is.
        session: The session it belongs to.
        position: Order within the session, from 0.
        speaker: ``user``, ``assistant``, ``tool`` or a person's name.
        text: What was said.
        at: When it was said.
    """

    id: TurnId
    namespace: Namespace
    session: SessionId
    position: int
    speaker: str
    text: str
    at: datetime
