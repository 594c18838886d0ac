"""Times a text speaks of, as spans of days: absolute ones, and relative ones against a given day.

``claimed`` and ``resolved`` times are found by the same grammar, so that a record that says
"the Sunday before 25 May 2023" meets a turn of 25 May 2023 that says "last Sunday".
"""

import re
from datetime import date
from functools import lru_cache
from typing import Final, NamedTuple

from assay.guards.evidence import relative
from assay.guards.evidence.calendar_words import (
    AMOUNT,
    MONTH,
    MONTHS,
    SEASON,
    UNIT,
    WEEKDAY,
    WEEKDAYS,
    amount,
    correct_months,
    season_span,
    unit_of,
)
from assay.guards.evidence.spans import (
    Span,
    away,
    day_span,
    month_span,
    shift,
    third,
    week_span,
    weekday_after,
    weekday_before,
    weekend_before,
    year_span,
)
from assay.guards.evidence.text import fold


class Mention(NamedTuple):
    """A time a text speaks of.

    Attributes:
        readings: What it may mean, likeliest first; never empty.
        start: Where it begins in the corrected text.
        end: Where it ends, exclusive.
        is_relative: Whether it was resolved against the given day.
    """

    readings: tuple[Span, ...]
    start: int
    end: int
    is_relative: bool


_YEAR: Final = r"(?:1[89]|20)\d\d"
_ORDINAL: Final = r"(?:st|nd|rd|th)?"
_ISO: Final = re.compile(rf"\b({_YEAR})-(\d\d?)-(\d\d?)\b")
_DAY_MONTH: Final = re.compile(
    rf"\b(\d\d?){_ORDINAL}\s*(?:of\s+)?({MONTH})\b\.?(?:,?\s*({_YEAR})\b)?"
)
_MONTH_DAY: Final = re.compile(
    rf"\b({MONTH})\.?\s*(\d\d?){_ORDINAL}(?:\s*(?:to|and|through|[-\u2013\u2014])\s*(\d\d?){_ORDINAL})?"
    rf"(?![\d:])(?:,?\s*({_YEAR})\b)?"
)
_MONTH_YEAR: Final = re.compile(rf"\b({MONTH})\.?,?\s*(?:of\s+)?({_YEAR})\b")
_MONTH_ALONE: Final = re.compile(
    rf"\b(?:in|since|during|of|by|from|until|till|before|after|early|mid|late|around|every|this)[\s-]+({MONTH})\b"
)
_SEASON_YEAR: Final = re.compile(rf"\b({SEASON})(?: of)?,? ({_YEAR})\b")
_YEAR_ALONE: Final = re.compile(rf"\b({_YEAR})\b")

_ANY_DAY: Final = date(2000, 1, 1)
_BETWEEN: Final = re.compile(r"(?:between|from)\s+$")
_JOINED: Final = re.compile(r"^\s*(?:and|to|until|through|[-\u2013\u2014])\s*$")
_WEEK_OF: Final = re.compile(r"\bweek of(?: the)?\s+$")
_BESIDE: Final = re.compile(
    rf"\b(?:(?P<weekday>{WEEKDAY})|(?P<weekend>weekend)|(?:(?P<amount>{AMOUNT})\s+)?(?P<unit>{UNIT}))"
    r"\s+(?P<side>before|prior to|preceding|after|following)\s+(?:the\s+)?$"
)
_PART: Final = re.compile(
    r"\b(?P<early>early|beginning of|start of|the first (?:week|days) of)"
    r"|\b(?P<middle>mid|middle of)|\b(?P<late>late|end of|last week of)"
)
_PART_END: Final = re.compile(_PART.pattern.join(("(?:", r")[\s-]+(?:the\s+)?(?:month of\s+)?$")))
_FIRST_WEEK: Final = re.compile(r"\bfirst week (?:of|in)\s+$")


def mentions(text: str, said_on: date | None) -> list[Mention]:
    """Times ``text`` speaks of, in order; relative ones only where ``said_on`` is given.

    A date that does not exist (30 February) is no mention. A month or day without a year is taken
    in the year that brings it nearest to ``said_on``.
    """
    return list(_mentions(text, said_on))


@lru_cache(maxsize=1024)
def _mentions(text: str, said_on: date | None) -> tuple[Mention, ...]:
    corrected = correct_months(fold(text))
    absolute = _joined(corrected, _modified(corrected, _absolute(corrected, said_on)))
    if said_on is None:
        return tuple(absolute)
    taken = [(m.start, m.end) for m in absolute]
    found = [
        Mention(readings, start, end, is_relative=True)
        for readings, start, end in relative.find(corrected, said_on)
        if not any(start < t_end and t_start < end for t_start, t_end in taken)
    ]
    return tuple(sorted([*absolute, *found], key=lambda m: m.start))


def undated(text: str) -> str:
    """``text``, folded, without the times it speaks of; lengths of time ("for 3 years") stay."""
    corrected = correct_months(fold(text))
    kept: list[str] = []
    end = 0
    for mention in mentions(text, _ANY_DAY):
        if not relative.is_length(corrected[mention.start : mention.end]):
            kept.append(corrected[end : mention.start])
            end = max(end, mention.end)
    return " ".join([*kept, corrected[end:]])


def _absolute(text: str, near: date | None) -> list[Mention]:
    found: list[Mention] = []
    taken: list[tuple[int, int]] = []
    for pattern, read in _READERS:
        for match in pattern.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            taken.append(match.span())
            span = read(match, near)
            if span is not None:
                found.append(Mention((span,), match.start(), match.end(), is_relative=False))
    return sorted(found, key=lambda m: m.start)


def _iso(match: re.Match[str], near: date | None) -> Span | None:
    return _day(int(match[1]), int(match[2]), int(match[3]))


def _day_month(match: re.Match[str], near: date | None) -> Span | None:
    return _dated(match[3], MONTHS[match[2][:3]], int(match[1]), near)


def _month_day(match: re.Match[str], near: date | None) -> Span | None:
    month = MONTHS[match[1][:3]]
    first = _dated(match[4], month, int(match[2]), near)
    if first is None or match[3] is None:
        return first
    last = _dated(match[4], month, int(match[3]), near)
    return first if last is None or last.last < first.first else Span(first.first, last.last)


def _month_year(match: re.Match[str], near: date | None) -> Span | None:
    return month_span(int(match[2]), MONTHS[match[1][:3]])


def _month_alone(match: re.Match[str], near: date | None) -> Span | None:
    if near is None:
        return None
    month = MONTHS[match[1][:3]]
    return month_span(_nearest_year(near, month, 15), month)


def _season_year(match: re.Match[str], near: date | None) -> Span | None:
    return season_span(int(match[2]), match[1])


def _year_alone(match: re.Match[str], near: date | None) -> Span | None:
    return year_span(int(match[1]))


_READERS: Final = (
    (_ISO, _iso),
    (_DAY_MONTH, _day_month),
    (_MONTH_DAY, _month_day),
    (_MONTH_YEAR, _month_year),
    (_MONTH_ALONE, _month_alone),
    (_SEASON_YEAR, _season_year),
    (_YEAR_ALONE, _year_alone),
)


def _dated(year: str | None, month: int, day: int, near: date | None) -> Span | None:
    if year is not None:
        return _day(int(year), month, day)
    return None if near is None else _day(_nearest_year(near, month, day), month, day)


def _day(year: int, month: int, day: int) -> Span | None:
    try:
        return day_span(date(year, month, day))
    except ValueError:
        return None


def _nearest_year(near: date, month: int, day: int) -> int:
    def distance(year: int) -> int:
        return abs((date(year, month, min(day, 28)) - near).days)

    years = (near.year, max(near.year - 1, date.min.year), min(near.year + 1, date.max.year))
    return min(years, key=distance)


def _modified(text: str, found: list[Mention]) -> list[Mention]:
    return [_modify(text, mention) for mention in found]


def _modify(text: str, mention: Mention) -> Mention:
    before = text[max(0, mention.start - 40) : mention.start]
    span = mention.readings[0]
    for pattern, read in _MODIFIERS:
        match = pattern.search(before)
        if match is not None:
            start = mention.start - len(before) + match.start()
            return Mention(read(match, span), start, mention.end, is_relative=False)
    return mention


def _beside(match: re.Match[str], span: Span) -> tuple[Span, ...]:
    is_before = match["side"] in {"before", "prior to", "preceding"}
    edge = span.first if is_before else span.last
    if match["weekday"]:
        weekday = WEEKDAYS[match["weekday"][:3]]
        return (
            day_span(weekday_before(edge, weekday) if is_before else weekday_after(edge, weekday)),
        )
    if match["weekend"]:
        return (weekend_before(edge) if is_before else weekend_before(shift(edge, 8)),)
    low, high = amount(match["amount"] or "a")
    unit = unit_of(match["unit"])
    return away(edge, unit, -high, -low) if is_before else away(edge, unit, low, high)


def _week_of(match: re.Match[str], span: Span) -> tuple[Span, ...]:
    return (span,) if span.days > 1 else (week_span(span.first),)


def _first_week(match: re.Match[str], span: Span) -> tuple[Span, ...]:
    return (Span(span.first, shift(span.first, 6)),)


def _part(match: re.Match[str], span: Span) -> tuple[Span, ...]:
    if match["early"]:
        return (third(span, "early"),)
    return (third(span, "middle" if match["middle"] else "late"),)


_MODIFIERS: Final = (
    (_FIRST_WEEK, _first_week),
    (_WEEK_OF, _week_of),
    (_BESIDE, _beside),
    (_PART_END, _part),
)


def _joined(text: str, found: list[Mention]) -> list[Mention]:
    """Mentions with "between X and Y" made one."""
    result: list[Mention] = []
    for mention in found:
        previous = result[-1] if result else None
        if previous is not None and _is_joined(text, previous, mention):
            span = _hull(previous.readings[0], mention.readings[0])
            result[-1] = Mention((span,), previous.start, mention.end, is_relative=False)
        else:
            result.append(mention)
    return result


def _is_joined(text: str, left: Mention, right: Mention) -> bool:
    opened = _BETWEEN.search(text[: left.start]) is not None
    return opened and _JOINED.match(text[left.end : right.start]) is not None


def _hull(left: Span, right: Span) -> Span:
    return Span(min(left.first, right.first), max(left.last, right.last))
