"""Texts to comparable words: case, dates and numbers in one notation.

``7 May 2023``, ``May 7th, 2023`` and ``2023-05-07`` all become the word ``2023-05-07``; ``May
2023`` becomes ``2023-05``; ``twenty`` and ``1,000`` become ``20`` and ``1000``.
"""

import re
import unicodedata
from datetime import date

_MONTHS = (
    "january february march april may june july august september october november december"
).split()
_MONTH = "|".join(f"{name}|{name[:3]}" for name in _MONTHS) + "|sept"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:1[89]|20)\d\d)"
_PATTERNS = (
    re.compile(r"\b(?P<year>(?:1[89]|20)\d\d)-(?P<number>\d\d)-(?P<day>\d\d)\b"),
    re.compile(rf"\b{_DAY}(?:\s+of)?\s+(?P<month>{_MONTH})\.?,?\s+{_YEAR}\b"),
    re.compile(rf"\b(?P<month>{_MONTH})\.?\s+{_DAY},?\s+{_YEAR}\b"),
    re.compile(rf"(?<!\d )\b(?P<month>{_MONTH})\.?,?\s+(?:of\s+)?{_YEAR}\b"),
)
_NUMBER_WORDS = {
    word: str(value)
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty".split()
    )
} | {"thirty": "30", "forty": "40", "fifty": "50", "hundred": "100", "once": "1", "twice": "2"}
_WORD = re.compile(r"\d{4}-\d\d(?:-\d\d)?|\d+(?:[.,]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)?")


def words(text: str) -> list[str]:
    """Normalised words of a text, in order."""
    lowered = (
        unicodedata.normalize("NFKC", text).lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    )
    for pattern in _PATTERNS:
        lowered = pattern.sub(_iso, lowered)
    return [_number(word) for word in _WORD.findall(lowered)]


def holds(text: list[str], phrase: list[str]) -> bool:
    """Whether the words of ``phrase`` stand in ``text`` in a row; a finer date holds a coarser one."""
    width = len(phrase)
    if not width:
        return False
    return any(
        all(_same(text[start + k], phrase[k]) for k in range(width))
        for start in range(len(text) - width + 1)
    )


def _same(found: str, wanted: str) -> bool:
    if found == wanted:
        return True
    return re.fullmatch(r"\d{4}(-\d\d)?", wanted) is not None and found.startswith(f"{wanted}-")


def _iso(match: re.Match[str]) -> str:
    parts = match.groupdict()
    month = int(parts["number"]) if parts.get("number") else _month(parts["month"])
    year, day = int(parts["year"]), parts.get("day")
    if day is None:
        return f"{year:04}-{month:02}"
    try:
        return date(year, month, int(day)).isoformat()
    except ValueError:  # a date that does not exist stays as it was written
        return match.group()


def _month(name: str) -> int:
    return next(i for i, month in enumerate(_MONTHS, 1) if month.startswith(name[:3]))


def _number(word: str) -> str:
    if word[0].isdigit():
        return word if "-" in word else re.sub(r",(?=\d{3}\b)", "", word)
    return _NUMBER_WORDS.get(word, word)
