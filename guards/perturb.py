"""Other wordings of a record that ought to matter: the four perturbations CMI was published with.

Each takes a record's text and gives another one, deterministically and without a model. Whole words
are replaced or added, never a part of one.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from assay.guards.evidence.text import FUNCTION_WORDS

_WORD: Final = re.compile(r"(?<![\w'\u2019-])[^\W\d_]+(?:-[^\W\d_]+)*(?![\w-])")
_BETWEEN: Final = " \t\"'([\u201c\u2018"
_WIDEST_GAP: Final = 8
_PREDICATE: Final = re.compile(
    r"['\u2019]s\b|\s+(?:is|was|has|had|will|would|can|[a-z]+(?:s|ed))\b"
)
_CALENDAR: Final = frozenset(
    """monday tuesday wednesday thursday friday saturday sunday january february march april may june
    july august september october november december yesterday today tomorrow""".split()
)
_STAND_INS: Final = ("Avery", "Brook", "Corin", "Dale", "Ellis", "Farrow", "Greer", "Hollis")


def negated(text: str) -> str:
    """Says that the record is not true."""
    return f"It is not true that: {text}"


def outdated(text: str) -> str:
    """Says that the record may be outdated."""
    return f"This may be outdated: {text}"


def rescoped(text: str) -> str:
    """Says that the record belongs to another context."""
    return f"This holds only in another context: {text}"


def renamed(text: str) -> str:
    """Every name replaced by another, the same one by the same; without names, about someone else.

    Names are capitalised words that no sentence begins with, or whose sentence goes on with a
    predicate; months and days are none.
    """
    pieces: list[str] = []
    end = 0
    for start, stop in _names(text):
        pieces += (text[end:start], _stand_in(text[start:stop]))
        end = stop
    if not pieces:
        return f"This is about someone else: {text}"
    return "".join((*pieces, text[end:]))


PERTURBATIONS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {"negation": negated, "temporal": outdated, "scope": rescoped, "entity": renamed}
)
"""By rendering name."""


def perturbation_for(text: str, *, seed: int) -> str:
    """The name of one perturbation, drawn by seed and text alone: ids and order change nothing."""
    names = list(PERTURBATIONS)
    digest = hashlib.sha256(f"{seed}\n{text}".encode()).digest()
    return names[int.from_bytes(digest[:8]) % len(names)]


def _names(text: str) -> Iterator[tuple[int, int]]:
    """Spans of names, neighbours joined: ``New York`` is one."""
    start = stop = -1
    for match in _WORD.finditer(text):
        if not _is_name(match, text):
            continue
        if start >= 0 and text[stop : match.start()] == " ":
            stop = match.end()
            continue
        if start >= 0:
            yield start, stop
        start, stop = match.span()
    if start >= 0:
        yield start, stop


def _is_name(match: re.Match[str], text: str) -> bool:
    word = match.group()
    if len(word) == 1 or not word[0].isupper() or word.casefold() in _CALENDAR:
        return False
    if not _begins_sentence(text, match.start()):
        return True
    return word.casefold() not in FUNCTION_WORDS and bool(_PREDICATE.match(text, match.end()))


def _begins_sentence(text: str, at: int) -> bool:
    before = text[max(0, at - _WIDEST_GAP) : at].rstrip(_BETWEEN)
    return not before or before[-1] in ".!?:;\n\r"


def _stand_in(name: str) -> str:
    first = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) % len(_STAND_INS)
    chosen = _STAND_INS[first]
    return chosen if chosen != name else _STAND_INS[(first + 1) % len(_STAND_INS)]
