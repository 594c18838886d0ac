"""What one speaker said first and later: updates and denials, read from the archived turns alone.

A record's own times and copies count for nothing here: only when a turn was spoken does.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from assay.guards.evidence.brief import Brief
from assay.guards.evidence.denial import Polarity, polarity
from assay.guards.evidence.text import stems
from assay.stores.records import ArchiveTurn

RETELLERS: Final = frozenset({"assistant", "tool"})
"""Speakers that repeat what they were given: what they say is nobody's word."""

_QUESTION: Final = re.compile(r"[^.!?\n]*\?")
_CHANGE: Final = re.compile(
    r"\b(?:now|nowadays|chang(?:e|ed|es)|moved|switched|instead|updated?|used to|no longer|(?:any|not any) ?more"
    r"|from now on|as of|stopped|quit)\b",
    re.IGNORECASE,
)
_ADDITION: Final = re.compile(r"\b(?:too|also|as well|besides|another|both)\b", re.IGNORECASE)
_BACKWARD: Final = re.compile(r"\b(?:he|she|they|it|that|there)\b", re.IGNORECASE)
_NAME: Final = re.compile(r"\b[A-Z][^\W_]+")
_STATES: Final = frozenset(
    stems(
        "live work study drive use like love prefer eat drink play own go attend train run stay wear "
        "read watch reside belong keep speak sleep smoke ride teach stand sit open close meet"
    )
)
"""What one goes on doing until something changes, as stems."""

_LATER: Final = timedelta(hours=1)
_COVERED: Final = 0.8
_ABOUT: Final = 0.5


class Ruling(NamedTuple):
    """What the turns say about two records of which at most one can hold.

    Attributes:
        winner: The candidate that holds.
        loser: The other.
        was_said: Whether the loser was said too, earlier; else it never was.
        is_change: Whether the turn that says the winner speaks of a change; a plain later turn may
            add to the earlier one rather than replace it.
        turns: Ids of the turns that say either, ascending.
    """

    winner: int
    loser: int
    was_said: bool
    is_change: bool
    turns: tuple[str, ...]


def replaces(brief: Brief, new: int, old: int) -> bool:
    """Whether later words of one user take the place of earlier ones they contest.

    They do not if they say that they add ("too", "also"), nor if the question tells the two apart
    ("my sister", and the later words are about a brother), unless they speak of a change and refer
    back ("No, she moved to Lima"), or only a verb is missing that the change stands for ("I live in
    Bergen", "I moved to Oslo").
    """
    later = brief.texts[new]
    if _ADDITION.search(later):
        return False
    apart = (frozenset(stems(brief.texts[old])) - frozenset(stems(later))) & brief.asked
    if speaks_of_change(later) and (_BACKWARD.search(later) or apart <= _STATES):
        return True
    return not apart


def speaks_of_change(text: str) -> bool:
    """Whether a text says that something is no longer as it was."""
    return _CHANGE.search(text) is not None


def update(brief: Brief, i: int, j: int) -> Ruling | None:
    """Whether one speaker said ``i`` and at another time ``j``; the later words win.

    A turn says a record if it says all that the other record does not, with the same denials, and
    half of the record's words. Questions say nothing, nor do turns of the assistant or of tools.

    Returns:
        The ruling, the same for ``(j, i)``; ``None`` unless both were said, each alone, at least an
        hour apart by the same speaker; and, without words of change, if the question tells them
        apart.
    """
    mine, yours = (polarity(brief.texts[k]) for k in (i, j))
    own_i, own_j = _beyond(mine, yours, brief.speakers), _beyond(yours, mine, brief.speakers)
    if not any(own_i) or not any(own_j):
        return None
    says_i = [t for t in _turns(brief, i, j) if _says(t, own_i) and _is_about(brief, i, t)]
    says_j = [t for t in _turns(brief, i, j) if _says(t, own_j) and _is_about(brief, j, t)]
    both = {t.id for t in says_i} & {t.id for t in says_j}
    alone_i, alone_j = ([t for t in s if t.id not in both] for s in (says_i, says_j))
    ruling = _later(i, j, alone_i, alone_j)
    # A question that names what sets them apart, such as an occasion, may be about the earlier one.
    is_asked_apart = bool((own_i.affirmed | own_j.affirmed) & brief.asked)
    return None if ruling and is_asked_apart and not ruling.is_change else ruling


def denial(brief: Brief, i: int, j: int) -> Polarity | None:
    """What candidate ``i`` denies of that which ``j`` states, as ``j`` states it.

    Returns:
        The disputed words as affirmed; ``None`` unless ``i`` denies all that ``j`` states beyond
        what both affirm, or ``j`` states all that ``i`` denies, and they name nobody
        different.
    """
    mine, yours = brief.claims[i], brief.claims[j]
    stated = yours.affirmed - mine.affirmed - brief.speakers
    denied = mine.denied - brief.speakers
    disputed = stated & denied
    least = _COVERED * min(len(stated), len(denied))
    named, other = (_names(brief.texts[k]) - disputed for k in (i, j))
    if not disputed or len(disputed) < least or (named and other and not named & other):
        return None
    shared = disputed | ((mine.affirmed & yours.affirmed) - brief.speakers)
    is_whole = disputed == yours.affirmed - brief.speakers
    return Polarity(disputed, frozenset()) if is_whole or len(shared) > 1 else None


def denied(brief: Brief, i: int, j: int, disputed: Polarity) -> Ruling | None:
    """Whether turns bear out the denial in ``i`` or the statement in ``j``; of both, the later.

    Returns:
        The ruling; ``None`` if no turn says either, or both are said within an hour or by different
        speakers.
    """
    words = disputed.affirmed
    turns = _turns(brief, i, j)
    for_i = [t for t in turns if _says(t, Polarity(frozenset(), words))]
    for_j = [t for t in turns if _says(t, disputed)]
    if for_i and for_j:
        return _later(i, j, for_i, for_j)
    if not for_i and not for_j:
        return None
    winner, loser, said = (i, j, for_i) if for_i else (j, i, for_j)
    return Ruling(winner, loser, was_said=False, is_change=False, turns=_ids(said))


def _turns(brief: Brief, i: int, j: int) -> list[ArchiveTurn]:
    found = (brief.turns[t] for t in brief.pool(i, j))
    return [turn for turn in found if turn.speaker not in RETELLERS]


def _beyond(mine: Polarity, yours: Polarity, names: frozenset[str]) -> Polarity:
    return Polarity(
        mine.affirmed - yours.affirmed - names,
        mine.denied - yours.denied - names,
    )


def _says(turn: ArchiveTurn, claims: Polarity) -> bool:
    said = polarity(_QUESTION.sub(" ", turn.text))
    return claims.affirmed <= said.affirmed - said.denied and claims.denied <= said.denied


def _is_about(brief: Brief, i: int, turn: ArchiveTurn) -> bool:
    wanted = frozenset(stems(brief.texts[i]))
    return len(wanted & frozenset(stems(f"{turn.speaker} {turn.text}"))) >= _ABOUT * len(wanted)


def _names(text: str) -> frozenset[str]:
    """Stems of what may be names: content words that begin with a capital, wherever they stand."""
    return frozenset(stem for word in _NAME.findall(text) for stem in stems(word))


def _later(
    i: int, j: int, says_i: Sequence[ArchiveTurn], says_j: Sequence[ArchiveTurn]
) -> Ruling | None:
    if not says_i or not says_j:
        return None
    last_i, last_j = (max(s, key=_moment) for s in (says_i, says_j))
    if abs(last_i.at - last_j.at) < _LATER or last_i.speaker != last_j.speaker:
        return None
    winner, loser, last = (i, j, last_i) if last_i.at > last_j.at else (j, i, last_j)
    is_change = _CHANGE.search(last.text) is not None
    return Ruling(winner, loser, was_said=True, is_change=is_change, turns=_ids([*says_i, *says_j]))


def _moment(turn: ArchiveTurn) -> tuple[datetime, str]:
    return turn.at, str(turn.id)


def _ids(turns: Sequence[ArchiveTurn]) -> tuple[str, ...]:
    return tuple(sorted({str(turn.id) for turn in turns}))
