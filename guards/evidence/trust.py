"""Trust bound to the origin at write time: who wrote, through which channel; never what a text says."""

from collections.abc import Sequence
from datetime import timedelta
from enum import IntEnum
from typing import Final, assert_never

from assay.guards.evidence.dates import mentions, undated
from assay.guards.evidence.denial import polarity
from assay.guards.evidence.text import stems
from assay.stores.records import MemoryRecord

_SKEW: Final = timedelta(days=1)
_COVERED: Final = 0.8
_CHAT: Final = "chat"


class Trust(IntEnum):
    """How far an origin is trusted; only differences count.

    Attributes:
        OUTSIDE: Anyone may have written it: web pages, files, mails; or it claims a future time.
        SECOND_HAND: Tools and the assistant, which repeat what they were given.
        INSIDE: The user or the operator.
    """

    OUTSIDE = 0
    SECOND_HAND = 1
    INSIDE = 2


def trust_of(record: MemoryRecord) -> Trust:
    """Trust of a record by its origin.

    A claimed time can only lower it: one that lies more than a day after ingestion is made up.
    """
    if record.claimed_at is not None and record.claimed_at > record.ingested_at + _SKEW:
        return Trust.OUTSIDE
    match record.origin.writer:
        case "user" | "operator":
            return Trust.INSIDE
        case "assistant" | "tool":
            return Trust.SECOND_HAND
        case "external":
            return Trust.OUTSIDE
        case _:
            assert_never(record.origin.writer)


def restates(text: str, other: str) -> bool:
    """Whether ``text`` says at least what ``other`` says: most of its words, its times and denials.

    What ``text`` adds is not looked at, unless it denies what ``other`` affirms; a preface such as
    "the page says" is allowed.
    """
    said = frozenset(stems(text))
    wanted = frozenset(stems(other))
    if not wanted or len(wanted & said) < _COVERED * len(wanted):
        return False
    numbers = {word for word in wanted if any(c.isdigit() for c in word)}
    spoken, meant = polarity(undated(text)), polarity(undated(other))
    same_denials = meant.denied <= spoken.denied and not (
        (meant.affirmed - meant.denied) & spoken.denied
    )
    return numbers <= said and same_denials and _times(other) <= _times(text)


def _times(text: str) -> frozenset[object]:
    return frozenset(mention.readings for mention in mentions(text, None))


def restated_by(records: Sequence[MemoryRecord]) -> tuple[frozenset[int], ...]:
    """For each record, the better trusted ones that it restates; copies of like trust do not count."""
    trust = [trust_of(record) for record in records]
    return tuple(
        frozenset(
            j
            for j, other in enumerate(records)
            if trust[j] > trust[i] and restates(record.text, other.text)
        )
        for i, record in enumerate(records)
    )


def newer_words(records: Sequence[MemoryRecord]) -> frozenset[tuple[int, int]]:
    """Pairs ``(i, j)`` where ``i`` was taken from the user's chat later than ``j``.

    Imported records have no such order: when they came in says nothing about what they tell.
    """
    chats = [
        i
        for i, record in enumerate(records)
        if record.origin.writer == "user" and record.origin.channel == _CHAT
    ]
    return frozenset(
        (i, j) for i in chats for j in chats if records[i].ingested_at > records[j].ingested_at
    )
