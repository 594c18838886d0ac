"""Whom a question is about, and which records are about somebody else."""

import re
from difflib import get_close_matches
from typing import Final

from assay.guards.evidence.brief import Brief
from assay.guards.evidence.text import stems

_NAMED: Final = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][^\W\d_]+")
_ALIKE: Final = 0.75
_ROLES: Final = frozenset({"user", "assistant", "tool", "system"})


def about_others(brief: Brief) -> frozenset[int]:
    """Candidates about another speaker than those the question names.

    Where a question names somebody, a record that names a speaker of the archive, but nobody of
    the question, is about that speaker, and however alike it is, it answers nothing. It may yet if
    another record tells what the two have to do with each other.
    """
    asked = frozenset(s for name in _NAMED.findall(brief.question) for s in stems(name))
    speakers = brief.speakers - _ROLES
    others = speakers - asked - _misspelt(asked, speakers)
    if not asked or not others:
        return frozenset()
    asked |= speakers - others
    named = [frozenset(stems(text)) for text in brief.texts]
    linked = {name for words in named if words & asked for name in words & others}
    return frozenset(
        i
        for i, words in enumerate(named)
        if words & others and not words & asked and not words & linked
    )


def _misspelt(asked: frozenset[str], speakers: frozenset[str]) -> frozenset[str]:
    """Speakers whose names are all but the ones asked for: whoever asks may spell them otherwise."""
    names = sorted(speakers)
    return frozenset(
        near for name in asked for near in get_close_matches(name, names, n=1, cutoff=_ALIKE)
    )
