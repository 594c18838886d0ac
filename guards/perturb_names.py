"""Names in a text, and the edits that put others in their place."""

import hashlib
import re
from collections.abc import Iterator
from typing import Final

from assay.guards.evidence.text import FUNCTION_WORDS
from assay.guards.perturb_edits import Edit

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


def names(text: str) -> Iterator[tuple[int, int]]:
    """Spans of names, neighbours joined: ``New York`` is one.

    Names are capitalised words that no sentence begins with, or whose sentence goes on with a
    predicate; months and days are none.
    """
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


def stand_in_edits(text: str) -> list[Edit]:
    """Every name becomes one from outside, the same one the same."""
    return [Edit(start, stop, _stand_in(text[start:stop])) for start, stop in names(text)]


def swap_edits(text: str) -> list[Edit]:
    """The text's own names change places: each becomes the next different one.

    Abbreviations in capitals stay. A text with a single name gets one from outside, for there is
    nothing to swap it with.
    """
    spans = [(start, stop) for start, stop in names(text) if not text[start:stop].isupper()]
    distinct = list(dict.fromkeys(text[start:stop] for start, stop in spans))
    following = dict(zip(distinct, [*distinct[1:], *distinct[:1]], strict=True))
    if len(distinct) == 1:
        following = {distinct[0]: _stand_in(distinct[0])}
    return [Edit(start, stop, following[text[start:stop]]) for start, stop in spans]


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
