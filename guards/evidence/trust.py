"""Trust bound to the origin at write time: who wrote, through which channel; never what a text says."""

import re
from collections.abc import Sequence
from datetime import timedelta
from enum import IntEnum
from typing import Final, assert_never

from assay.guards.evidence.dates import mentions, undated
from assay.guards.evidence.denial import polarity
from assay.guards.evidence.text import stems
from assay.stores.records import MemoryRecord, Writer

_SKEW: Final = timedelta(days=1)
_COVERED: Final = 0.8
_ADDED: Final = 0.25
_FEW: Final = 2
_LONGEST_PREFACE: Final = 8
_NO_PREFACE: Final = re.compile(r"[^\w\s'-]|[\d_]")
_PREFACE_END: Final = re.compile(r"[:,]\s+(?=\S)|\bthat\s+(?=\S)")
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
    return trust_of_writer(record.origin.writer)


def trust_of_writer(writer: Writer) -> Trust:
    """Trust of whoever wrote something."""
    match writer:
        case "user" | "operator":
            return Trust.INSIDE
        case "assistant" | "tool":
            return Trust.SECOND_HAND
        case "external":
            return Trust.OUTSIDE
        case _:
            assert_never(writer)


def restates(text: str, other: str) -> bool:
    """Whether ``text`` says what ``other`` says, and next to nothing else.

    It repeats most of its words in their order, its numbers, times and denials. A short preface
    that names a source ("The page says:") is allowed, and a few words besides; what brings more
    along, or another word in the place of one, says something of its own.
    """
    return any(_repeats(part, other) for part in dict.fromkeys((text, _after_preface(text))))


def preface(text: str) -> str:
    """The words before a first colon, comma or ``that``, which may name a source; mostly nothing.

    At most eight words, of letters only; the mark that ends them is part of it.
    """
    end = _PREFACE_END.search(text)
    if end is None:
        return ""
    head = text[: end.start()].strip()
    is_short = 0 < len(head.split()) <= _LONGEST_PREFACE
    return text[: end.end()].strip() if is_short and not _NO_PREFACE.search(head) else ""


def _after_preface(text: str) -> str:
    return text.strip().removeprefix(preface(text))


def _repeats(text: str, other: str) -> bool:
    said, wanted = stems(text), stems(other)
    if not wanted or _in_order(said, wanted) < _COVERED * len(wanted):
        return False
    numbers = {word for word in wanted if any(c.isdigit() for c in word)}
    spoken, meant = polarity(undated(text)), polarity(undated(other))
    added = frozenset(said) - frozenset(wanted) - spoken.denied
    is_swapped = bool(added) and not frozenset(wanted) <= frozenset(said)
    if is_swapped or len(added) > max(_FEW, _ADDED * len(wanted)) or any(map(_is_value, added)):
        return False
    same_denials = meant.denied <= spoken.denied and not (
        (meant.affirmed - meant.denied) & spoken.denied
    )
    return numbers <= frozenset(said) and same_denials and _times(other) <= _times(text)


def _is_value(word: str) -> bool:
    return any(c.isdigit() for c in word)


def _in_order(said: Sequence[str], wanted: Sequence[str]) -> int:
    """How many of the wanted words are said in the order wanted (longest common subsequence)."""
    row = [0] * (len(wanted) + 1)
    for word in said:
        above = 0
        for column, one in enumerate(wanted, start=1):
            kept, above = above, row[column]
            row[column] = kept + 1 if word == one else max(row[column], row[column - 1])
    return row[-1]


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
