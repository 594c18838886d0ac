"""Names of months, weekdays, units and amounts as they are written in chats."""

import re
from typing import Final

from assay.guards.evidence.spans import Span, Unit, month_span

MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
WEEKDAYS: Final = {
    name: i for i, name in enumerate(("mon", "tue", "wed", "thu", "fri", "sat", "sun"))
}
WEEKDAY: Final = r"(?:mon(?:day)?|tues?(?:day)?|wed(?:nesday)?|thu(?:rs)?(?:day)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)"
SEASON: Final = r"(?:spring|summer|fall|autumn|winter)"
_SEASON_MONTHS: Final = {"spring": (3, 5), "summer": (6, 8), "winter": (12, 14)}
_AUTUMN: Final = (9, 11)
UNIT: Final = r"(?:days?|weeks?|months?|years?)"
NUMBERS: Final = {
    name: number
    for number, name in enumerate(
        """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
        fifteen sixteen seventeen eighteen nineteen twenty""".split()
    )
}
AMOUNT: Final = (
    r"(?:a couple(?: of)?|couple(?: of)?|a few|few|several|some|an?|\d{1,2}|"
    + "|".join(NUMBERS)
    + ")"
)
_LONG_MONTHS: Final = (
    "january",
    "february",
    "march",
    "april",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_LETTERS: Final = re.compile(r"[a-z]{5,10}")


def amount(words: str) -> tuple[int, int]:
    """Lowest and highest number that ``words`` (a match of ``AMOUNT``) may mean."""
    for start, bounds in (
        ("a couple", (2, 2)),
        ("couple", (2, 2)),
        ("a few", (2, 5)),
        ("few", (2, 5)),
    ):
        if words.startswith(start):
            return bounds
    if words in {"several", "some"}:
        return (3, 7)
    if words in {"a", "an"}:
        return (1, 1)
    number = NUMBERS[words] if words in NUMBERS else int(words)
    return (number, number)


def unit_of(word: str) -> Unit:
    """The unit a match of ``UNIT`` names."""
    match word[0]:
        case "d":
            return "day"
        case "w":
            return "week"
        case "m":
            return "month"
        case _:
            return "year"


def season_span(year: int, season: str) -> Span:
    """A season of the northern year; winter runs from December of ``year`` into the next."""
    first, last = _SEASON_MONTHS.get(season, _AUTUMN)
    return Span(month_span(year, first).first, month_span(year, last).last)


def correct_months(text: str) -> str:
    """``text`` (folded) with month names that lack, double or swap one letter spelled right."""
    return _LETTERS.sub(lambda match: _corrected(match[0]), text)


def _corrected(word: str) -> str:
    for month in _LONG_MONTHS:
        if word[:2] == month[:2] and len(month) > 5 and _is_one_slip_away(word, month):  # noqa: PLR2004 - "march" meets "marc", "match"
            return month
    return word


def _is_one_slip_away(word: str, month: str) -> bool:
    if word == month or abs(len(word) - len(month)) > 1:
        return False
    lead = next(
        (i for i, (a, b) in enumerate(zip(word, month, strict=False)) if a != b),
        min(len(word), len(month)),
    )
    rest, wanted = word[lead:], month[lead:]
    return (
        rest[1:] == wanted
        or rest == wanted[1:]
        or rest[1:] == wanted[1:]
        or (rest[:2] == wanted[1::-1] and rest[2:] == wanted[2:])
    )
