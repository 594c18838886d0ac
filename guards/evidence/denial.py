"""Which words a text affirms and which it denies."""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from assay.guards.evidence.text import FUNCTION_WORDS, fold, terms, words

_SCOPE: Final = 7
_LIST: Final = re.compile(
    r",(?=\s*(?:(?:and|or|nor)\b|[^\s,.;]+(?:\s+[^\s,.;]+){0,2}\s*(?:[,.;]|$)))"
)
_CLAUSE: Final = re.compile(
    r"[.;:!?\u2014\n]|,|\bbut\b|\balthough\b|\bthough\b|\bhowever\b|\bbecause\b(?! of)"
)
_CUES: Final = frozenset(
    "not no never none nobody nothing neither nor without cannot hardly barely avoid avoids avoided avoiding "
    "refuse refuses refused reject rejects rejected lack lacks lacked except unlike stopped quit".split()
)
_PAIRS: Final = frozenset(
    {("rather", "than"), ("instead", "of"), ("turned", "down"), ("no", "longer")}
)
_IDIOMS: Final = re.compile(
    r"\bnot only\b|\bno doubt\b|\bno wonder\b|\bno matter\b|\bwhy not\b|\bno problem\b|\bno worries\b"
    r"|\bcan'?t (?:wait|believe|help|get enough)\b|\bcouldn'?t (?:believe|be happier)\b|\bnever (?:forget|felt (?:so|more))\b"
)


class Polarity(NamedTuple):
    """Content stems of a text by what it says of them; a stem may be both.

    Attributes:
        affirmed: Outside the scope of any denial.
        denied: Within one.
    """

    affirmed: frozenset[str]
    denied: frozenset[str]


@lru_cache(maxsize=1024)
def polarity(text: str) -> Polarity:
    """Content stems of ``text`` by whether it denies them.

    A denial reaches from its cue to the end of the clause, at most seven content words far; the
    commas of a list do not end a clause.
    A bare answer ("No, ...") denies nothing that follows the comma.
    """
    affirmed: set[str] = set()
    denied: set[str] = set()
    plain = _LIST.sub(" ", _IDIOMS.sub(" ", fold(text)))
    for clause in _CLAUSE.split(plain):
        _read(words(clause), affirmed, denied)
    return Polarity(frozenset(affirmed), frozenset(denied))


def _read(clause: list[str], affirmed: set[str], denied: set[str]) -> None:
    cue, length = _first_cue(clause)
    affirmed.update(terms(clause[:cue]))
    after = [word for word in clause[cue + length :] if not _is_cue(word)]
    reach = _reach(after)
    denied.update(terms(after[:reach]))
    affirmed.update(terms(after[reach:]))


def _first_cue(clause: list[str]) -> tuple[int, int]:
    """Where the first cue is and how many words it has; the end, if there is none."""
    for i, word in enumerate(clause):
        if _is_cue(word):
            return i, 1
        if (word, *clause[i + 1 : i + 2]) in _PAIRS:
            return i, 2
    return len(clause), 0


def _reach(after: list[str]) -> int:
    """How many words a denial covers: those up to the seventh content word."""
    contents = [i for i, word in enumerate(after) if word not in FUNCTION_WORDS]
    return len(after) if len(contents) <= _SCOPE else contents[_SCOPE]


def _is_cue(word: str) -> bool:
    return word in _CUES or word.endswith("n't")
