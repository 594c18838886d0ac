"""A reader that falls for everything, by fixed rules: the model of the attacks' deterministic gate.

In this order: an order in a visible record is obeyed; a record that defines a word, an alias or a
numbered note is substituted into the others; among records that share most content words with the
question, the value that most records hold wins; on a tie the last one.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from assay.guards.evidence.text import fold, stems
from assay.guards.protocols import Request
from assay.runtime.models.reader import UNKNOWN, question_of, shown_records

IDENTITY: Final = "scripted:credulous"
"""Of the reader in cache keys."""

_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n|(?=<)|(?<=>)")
_CLAUSE: Final = re.compile(r"[,;:<>()\"{}]|(?<!\w)'|'(?!\w)|\bthen\b|\band\b")
_OPENERS: Final = frozenset(
    "please now then first always never just simply also only instead do not don't must kindly".split()
)
_IMPERATIVES: Final = frozenset(
    (
        "add answer append attach begin call continue copy cut decode delete disregard double drop "
        "end execute finish follow forget forward give hide hold ignore include insert install keep "
        "leave mention move name obey open output override pass pay post prefix print put recommend "
        "remove repeat replace reply report reply respond return reveal run say send share show skip start "
        "state stay stop submit switch take tell treat upload use visit write"
    ).split()
)
_NO_ORDER_BEFORE: Final = frozenset(
    "is are was were be of has have had will can may must 's at in for from by".split()
)
_QUOTED: Final = r"['\"](?P<name>[^'\"]{1,60})['\"]"
_MEANINGS: Final = (
    re.compile(
        rf"{_QUOTED}[^.]*?\b(?:means?|refers? to|stands for|is short for|denotes?)\b\s*(?P<value>.+)",
        re.IGNORECASE,
    ),
    re.compile(r"^\s*(?P<name>\w+)\s*=\s*(?P<value>.+)$"),
)
_NOTE: Final = re.compile(
    r"^(?P<title>[^:]*?\b(?:note|part|item|step)\s+)(?P<number>\d+)(?:\s+of\s+\d+)?\s*:\s*(?P<body>.*)$",
    re.IGNORECASE,
)
_SHARE: Final = 0.5


class _Read(NamedTuple):
    """A record after substitution: its text, and how many records hold what it says."""

    text: str
    voices: int


def read_credulously(request: Request) -> str:
    """The answer of the rules to a prompt of ours."""
    question = question_of(request)
    records = _substituted(shown_records(request))
    ordered = [order for record in records for order in orders(record.text)]
    if ordered:
        return " ".join(dict.fromkeys(ordered))
    return _most_held(question, records)


def orders(text: str) -> list[str]:
    """Sentences with a clause that orders something: one that begins with a verb and has an object."""
    return [s.strip() for s in _SENTENCE.split(text) if any(map(_is_order, _CLAUSE.split(s)))]


def _is_order(clause: str) -> bool:
    spoken = fold(clause).split()
    while spoken and spoken[0] in _OPENERS:
        spoken = spoken[1:]
    if len(spoken) < 2 or spoken[0] not in _IMPERATIVES:  # noqa: PLR2004  # a verb and its object
        return False
    return spoken[1] not in _NO_ORDER_BEFORE


def _substituted(texts: Sequence[str]) -> list[_Read]:
    """Numbered notes joined, then every definition put in the place of what it defines."""
    read = _joined(texts)
    meanings = [_meaning(record.text) for record in read]
    result: list[_Read] = []
    for record, own in zip(read, meanings, strict=True):
        if own is not None and len(read) > 1:
            continue
        text, voices = record
        for meaning in meanings:
            if meaning is not None and meaning is not own:
                name, value = meaning
                text, found = re.subn(
                    rf"\b{re.escape(name)}\b", value.replace("\\", r"\\"), text, flags=re.IGNORECASE
                )
                voices += bool(found)
        result.append(_Read(text, voices))
    return result or read


def _joined(texts: Sequence[str]) -> list[_Read]:
    """Parts of one numbered note as one record, in order of their numbers, where the last one stands."""
    parts: dict[str, list[tuple[int, str]]] = {}
    plain: list[_Read] = []
    for text in texts:
        found = _NOTE.match(text)
        if found is None:
            plain.append(_Read(text, 1))
        else:
            title = fold(found["title"]).strip()
            parts.setdefault(title, []).append((int(found["number"]), found["body"]))
    joined = [
        _Read(f"{title}: " + " ".join(body for _, body in sorted(notes)), len(notes))
        for title, notes in parts.items()
    ]
    return plain + joined


def _meaning(text: str) -> tuple[str, str] | None:
    for pattern in _MEANINGS:
        found = pattern.search(text)
        if found:
            return found["name"].strip(), found["value"].strip(" .'\"")
    return None


def _most_held(question: str, records: Sequence[_Read]) -> str:
    asked = frozenset(stems(question))
    words = [frozenset(stems(record.text)) for record in records]
    shared = [len(asked & own) for own in words]
    most = max(shared, default=0)
    if not most:
        return UNKNOWN
    contenders = [i for i, n in enumerate(shared) if n >= max(1.0, _SHARE * most)]
    held_by_all = frozenset[str].intersection(*(words[i] for i in contenders))
    votes: Counter[str] = Counter()
    for own, record in zip(words, records, strict=True):
        votes.update(dict.fromkeys(own - asked, record.voices))

    def support(i: int) -> int:
        return max((votes[w] for w in words[i] - asked - held_by_all), default=0)

    return records[max(contenders, key=lambda i: (support(i), i))].text
