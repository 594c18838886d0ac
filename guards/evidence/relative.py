"""Relative times ("last Friday", "two weeks ago") as spans of days around the day they were said."""

import re
from collections.abc import Callable, Iterator
from datetime import date
from typing import Final, TypeAlias

from assay.guards.evidence.calendar_words import (
    AMOUNT,
    MONTH,
    MONTHS,
    SEASON,
    UNIT,
    WEEKDAY,
    WEEKDAYS,
    amount,
    season_span,
    unit_of,
)
from assay.guards.evidence.spans import (
    Span,
    away,
    day_span,
    month_span,
    shift,
    week_span,
    weekday_after,
    weekday_before,
    weekend_before,
    year_span,
)

Readings: TypeAlias = tuple[Span, ...]
_Reader: TypeAlias = Callable[[re.Match[str], date], Readings]


def find(text: str, said_on: date) -> Iterator[tuple[Readings, int, int]]:
    """Readings, start and end of each relative time in folded ``text``; the longest pattern wins."""
    taken: list[tuple[int, int]] = []
    for pattern, read in _PATTERNS:
        for match in pattern.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            taken.append(match.span())
            yield read(match, said_on), match.start(), match.end()


def is_length(phrase: str) -> bool:
    """Whether a found phrase tells how long something went on, rather than when."""
    return _LENGTH.fullmatch(phrase) is not None


def _days(offset: int) -> _Reader:
    return lambda _match, day: (day_span(shift(day, offset)),)


def _ago(match: re.Match[str], day: date) -> Readings:
    low, high = amount(match["amount"])
    return away(day, unit_of(match["unit"]), -high, -low)


def _ahead(match: re.Match[str], day: date) -> Readings:
    low, high = amount(match["amount"])
    return away(day, unit_of(match["unit"]), low, high)


def _last_unit(match: re.Match[str], day: date) -> Readings:
    return away(day, unit_of(match["unit"]), -1, -1)


def _this_unit(match: re.Match[str], day: date) -> Readings:
    return away(day, unit_of(match["unit"]), 0, 0)


def _next_unit(match: re.Match[str], day: date) -> Readings:
    return away(day, unit_of(match["unit"]), 1, 1)


def _last_weekday(match: re.Match[str], day: date) -> Readings:
    return (day_span(weekday_before(day, WEEKDAYS[match["weekday"][:3]])),)


def _next_weekday(match: re.Match[str], day: date) -> Readings:
    coming = weekday_after(day, WEEKDAYS[match["weekday"][:3]])
    week_after = shift(week_span(day).first, 7 + coming.weekday())
    return (day_span(coming), day_span(week_after))


def _some_weekday(match: re.Match[str], day: date) -> Readings:
    weekday = WEEKDAYS[match["weekday"][:3]]
    return (day_span(weekday_before(day, weekday)), day_span(weekday_after(day, weekday)))


def _last_weekend(match: re.Match[str], day: date) -> Readings:
    return (weekend_before(day),)


def _this_weekend(match: re.Match[str], day: date) -> Readings:
    saturday = shift(week_span(day).first, 5)
    return (Span(saturday, shift(saturday, 1)), weekend_before(day))


def _next_weekend(match: re.Match[str], day: date) -> Readings:
    saturday = shift(week_span(day).first, 5)
    return (
        Span(shift(saturday, 7), shift(saturday, 8)),
        Span(saturday, shift(saturday, 1)),
    )


def _weekends_ago(match: re.Match[str], day: date) -> Readings:
    low, high = amount(match["amount"])
    return (
        Span(
            weekend_before(shift(day, -7 * (high - 1))).first,
            weekend_before(shift(day, -7 * (low - 1))).last,
        ),
    )


def _last_month_named(match: re.Match[str], day: date) -> Readings:
    month = MONTHS[match["month"][:3]]
    return (month_span(day.year if month < day.month else day.year - 1, month),)


def _next_month_named(match: re.Match[str], day: date) -> Readings:
    month = MONTHS[match["month"][:3]]
    return (month_span(day.year if month > day.month else day.year + 1, month),)


def _season(match: re.Match[str], day: date) -> Readings:
    season = season_span(day.year, match["season"])
    year = day.year
    if match["which"] == "last" and day <= season.last:
        year -= 1
    if match["which"] == "next" and day >= season.first:
        year += 1
    return (season_span(year, match["season"]),)


def _for_a_time(match: re.Match[str], day: date) -> Readings:
    low, high = amount(match["amount"])
    start = away(day, unit_of(match["unit"]), -high, -low)
    return start if unit_of(match["unit"]) != "year" else (*start, year_span(day.year - low))


def _lately(match: re.Match[str], day: date) -> Readings:
    return (Span(shift(day, -13), day),)


def _other_day(match: re.Match[str], day: date) -> Readings:
    return (Span(shift(day, -7), shift(day, -1)),)


def _compiled(*pairs: tuple[str, _Reader]) -> tuple[tuple[re.Pattern[str], _Reader], ...]:
    return tuple((re.compile(pattern), read) for pattern, read in pairs)


_AMOUNT: Final = rf"(?P<amount>{AMOUNT})"
_UNIT: Final = rf"(?P<unit>{UNIT})"
_WEEKDAY: Final = rf"(?P<weekday>{WEEKDAY})\b"
_PAST: Final = r"(?:last|this past|the past|past|previous|the other)"
_LENGTH: Final = re.compile(
    rf"\b(?:for|over|almost|nearly|about)\s+(?:the (?:last|past)\s+)?{_AMOUNT}\s+{_UNIT}\b"
)
_PATTERNS: Final = _compiled(
    (r"\b(?:the )?day before yesterday\b", _days(-2)),
    (r"\b(?:the )?day after tomorrow\b", _days(2)),
    (rf"\b{_AMOUNT}\s+weekends? (?:ago|back|before)\b", _weekends_ago),
    (
        rf"\b{_AMOUNT}(?:\s+(?:or so|short|long|whole))?\s+{_UNIT}\s+(?:ago|back|earlier|before)\b",
        _ago,
    ),
    (rf"\b(?:in|within)\s+{_AMOUNT}\s+{_UNIT}\b", _ahead),
    (rf"\b{_AMOUNT}\s+{_UNIT}\s+(?:later|from now|away)\b", _ahead),
    (rf"\b{_PAST}\s+{_WEEKDAY}", _last_weekday),
    (rf"\bnext\s+{_WEEKDAY}", _next_weekday),
    (rf"\b(?:on|this|coming)\s+{_WEEKDAY}", _some_weekday),
    (r"\b(?:last|this past|the past|past|over the|previous) weekend\b", _last_weekend),
    (r"\b(?:this|the|coming) weekend\b", _this_weekend),
    (r"\bnext weekend\b", _next_weekend),
    (rf"\b(?P<which>last|this|next)\s+(?P<season>{SEASON})\b", _season),
    (rf"\blast\s+(?P<month>{MONTH})\b", _last_month_named),
    (rf"\bnext\s+(?P<month>{MONTH})\b", _next_month_named),
    (r"\b(?:last|yesterday) (?:night|evening)\b|\byesterday\b", _days(-1)),
    (r"\btomorrow\b", _days(1)),
    (_LENGTH.pattern, _for_a_time),
    (rf"\b(?:last|this past|the past|past|previous)\s+{_UNIT}\b", _last_unit),
    (rf"\bthis\s+{_UNIT}\b", _this_unit),
    (rf"\b(?:next|the coming|coming)\s+{_UNIT}\b", _next_unit),
    (r"\bthe other day\b|\bdays ago\b", _other_day),
    (
        r"\b(?:today|tonight|this (?:morning|afternoon|evening)|right now|just now|currently)\b",
        _days(0),
    ),
    (r"\b(?:recently|lately)\b", _lately),
)
