"""What a store refuses before any effect: empty text, NUL, naive times, ids that cannot be kept.

Times come back in UTC, so that equal records are equal in every implementation.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from assay.stores.records import ArchiveTurn, MemoryRecord, Namespace


def checked_text(what: str, text: str) -> str:
    """The text itself, if a store can keep it.

    Raises:
        ValueError: If it is empty or only blanks, has a NUL, or has half a surrogate pair.
    """
    if not text or text.isspace():
        raise ValueError(f"{what} must not be empty, got {text!r}")
    return checked_characters(what, text)


def checked_characters(what: str, text: str) -> str:
    """The text itself, empty or not, if every character of it can be kept.

    Raises:
        ValueError: If it has a NUL or half a surrogate pair.
    """
    if text.isascii() and "\0" not in text:
        return text
    if "\0" in text:
        raise ValueError(f"{what} must not contain NUL (found at character {text.index(chr(0))})")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{what} must be valid Unicode; half a surrogate pair at character {error.start}"
        ) from error
    return text


def checked_namespace(namespace: Namespace) -> Namespace:
    """The namespace itself, if it can be one."""
    checked_text("namespace", namespace)
    return namespace


def checked_limit(limit: int) -> int:
    """The limit itself; 0 is allowed and gives nothing.

    Raises:
        ValueError: If it is negative.
    """
    if limit < 0:
        raise ValueError(f"limit must be at least 0, got {limit!r}")
    return limit


def in_utc(what: str, time: datetime) -> datetime:
    """The same instant in UTC.

    Raises:
        ValueError: If the time is naive.
    """
    if time.tzinfo is None or time.utcoffset() is None:
        raise ValueError(f"{what} must be timezone-aware, got {time!r}")
    return time.astimezone(UTC)


def checked_record(record: MemoryRecord) -> MemoryRecord:
    """The record with its times in UTC.

    Raises:
        ValueError: On empty text, a NUL in text or ids, a naive time, or a record that
            supersedes itself.
    """
    checked_text("record.text", record.text)
    checked_text("record.id", record.id)
    checked_namespace(record.namespace)
    checked_text("record.origin.channel", record.origin.channel)
    for related in (*record.derived_from, record.supersedes, record.origin.source_turn):
        if related is not None:
            checked_text("a related id of a record", related)
    if not record.consent.store:
        raise ValueError(
            f"record {record.id!r} has no consent to be stored; ask for it, or drop it"
        )
    if record.supersedes == record.id:
        raise ValueError(f"record {record.id!r} must not supersede itself")
    times = record.ingested_at, record.claimed_at, record.valid_from, record.valid_to
    if all(time is None or time.tzinfo is UTC for time in times):
        return record
    return msgspec.structs.replace(
        record,
        ingested_at=in_utc("record.ingested_at", record.ingested_at),
        claimed_at=_optional("record.claimed_at", record.claimed_at),
        valid_from=_optional("record.valid_from", record.valid_from),
        valid_to=_optional("record.valid_to", record.valid_to),
    )


def is_external(name: str) -> bool:
    """Whether a model or an embedder of this name is at an endpoint: ``openai:NAME@URL``."""
    return name.startswith("openai:")


def refuse_external(records: Sequence[MemoryRecord], embedder: str) -> None:
    """Refuse records that may not be sent to the embedder of the bank.

    Raises:
        ValueError: If the embedder is at an endpoint and a record may go to none.
    """
    for record in records if is_external(embedder) else ():
        if record.consent.no_external_model:
            raise ValueError(
                f"record {record.id!r} may go to no external model, but embedder {embedder!r} is one; "
                "keep it in a bank with a local embedder"
            )


def checked_turn(turn: ArchiveTurn) -> ArchiveTurn:
    """The turn with its time in UTC.

    Raises:
        ValueError: On empty text, a NUL in text or ids, a naive time or a negative position.
    """
    checked_text("turn.text", turn.text)
    checked_text("turn.id", turn.id)
    checked_text("turn.session", turn.session)
    checked_text("turn.speaker", turn.speaker)
    checked_namespace(turn.namespace)
    if turn.position < 0:
        raise ValueError(f"turn.position must be at least 0, got {turn.position!r}")
    return msgspec.structs.replace(turn, at=in_utc("turn.at", turn.at))


def superseded_from(record: MemoryRecord) -> datetime:
    """From when the record that ``record`` supersedes no longer holds.

    When it came in, or when it starts to hold if that is later.
    """
    if record.valid_from is None:
        return record.ingested_at
    return max(record.ingested_at, record.valid_from)


def _optional(what: str, time: datetime | None) -> datetime | None:
    return None if time is None else in_utc(what, time)
