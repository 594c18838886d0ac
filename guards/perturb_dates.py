"""Dates in a text: moved to another day, or written in another notation."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from typing import Final, NamedTuple

from assay.guards.perturb_edits import Edit, capitalised_like

_MONTHS: Final[Sequence[str]] = (
    "January February March April May June July August September October November December"
).split()
_WEEKDAYS: Final[Sequence[str]] = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_LATER_WEEKDAY: Final[dict[str, str]] = {
    name: _WEEKDAYS[(i + 3) % len(_WEEKDAYS)] for i, name in enumerate(_WEEKDAYS)
}
_SPOKEN: Final = {"yesterday": "last week", "today": "last week", "tomorrow": "next week"}
_MONTH: Final = "|".join([*_MONTHS, *(rf"{name[:3]}\.?" for name in _MONTHS), r"Sept\.?"])
_YEAR: Final = r"(?P<year>(?:1[89]|20)\d\d)"
_DAY: Final = r"(?P<day>\d{1,2})(?P<suffix>st|nd|rd|th)?"
_FREE: Final = r"(?<![\w.,/-])"
_END: Final = r"(?![\w/]|-\w)"
_LEAP: Final = 2000
"""Stands in for a year that is not written: every day of a year exists in it."""
_DAYS_ON: Final = timedelta(days=17)
_MONTHS_ON: Final = 5
_YEARS_ON: Final = 3


class _Shape(NamedTuple):
    """One way to write a date: its pattern, and how a day or month is written in it."""

    pattern: re.Pattern[str]
    write: Callable[[date, re.Match[str]], str]


def _written_day_first(day: date, match: re.Match[str]) -> str:
    suffix = _suffix(day.day) if match["suffix"] else ""
    year = f" {day.year}" if match["year"] else ""
    return f"{day.day}{suffix} {_MONTHS[day.month - 1]}{year}"


def _written_month_first(day: date, match: re.Match[str]) -> str:
    suffix = _suffix(day.day) if match["suffix"] else ""
    year = f", {day.year}" if match["year"] else ""
    return f"{_MONTHS[day.month - 1]} {day.day}{suffix}{year}"


def _written_iso(day: date, match: re.Match[str]) -> str:
    return day.isoformat()


def _suffix(day: int) -> str:
    if day in {11, 12, 13}:
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


_DAY_FIRST: Final = _Shape(
    re.compile(rf"{_FREE}{_DAY}\s+(?:of\s+)?(?P<month>{_MONTH})(?:,?\s+{_YEAR})?{_END}"),
    _written_day_first,
)
_MONTH_FIRST: Final = _Shape(
    re.compile(rf"{_FREE}(?P<month>{_MONTH})\s+{_DAY}(?:,?\s+{_YEAR})?{_END}"), _written_month_first
)
_ISO: Final = _Shape(
    re.compile(rf"{_FREE}{_YEAR}-(?P<number>\d\d)-(?P<day>\d\d){_END}"),
    _written_iso,
)
_MONTH_YEAR: Final = re.compile(rf"{_FREE}(?P<month>{_MONTH}),?\s+(?:of\s+)?{_YEAR}{_END}")
_YEAR_ALONE: Final = re.compile(rf"{_FREE}{_YEAR}{_END}")
_WEEKDAY: Final = re.compile(rf"\b(?:{'|'.join(_WEEKDAYS)})\b")
_SPOKEN_WORD: Final = re.compile(
    rf"(?<![\w-])(?:{'|'.join(_SPOKEN)})(?![\w'\u2019-])", re.IGNORECASE
)


def date_spans(text: str) -> list[tuple[int, int]]:
    """Where a text writes a date, a month with its year, or a year; existing or not."""
    patterns = (_DAY_FIRST.pattern, _MONTH_FIRST.pattern, _ISO.pattern, _MONTH_YEAR, _YEAR_ALONE)
    spans: list[tuple[int, int]] = []
    for pattern in patterns:
        spans += [m.span() for m in pattern.finditer(text) if not _overlaps(m.span(), spans)]
    return sorted(spans)


def shift_edits(text: str) -> list[Edit]:
    """Every date moves on, in the notation it has; a date that does not exist stays.

    Days move by 17 days, months by five, years by three, weekdays by three, and yesterday, today
    and tomorrow become a week.
    """
    edits: list[Edit] = []
    for found in (_days, _months, _years, _weekdays, _spoken):
        for edit in found(text):
            if not _overlaps((edit.start, edit.stop), [(e.start, e.stop) for e in edits]):
                edits.append(edit)
    # An edit that changes nothing kept its place: the parts of a date that does not exist stay.
    return sorted(edit for edit in edits if edit.new != text[edit.start : edit.stop])


def rewrite_edits(text: str) -> list[Edit]:
    """``7 May 2023`` becomes ``May 7, 2023`` and the other way round; the day stays the same."""
    pairs = ((_DAY_FIRST, _MONTH_FIRST), (_MONTH_FIRST, _DAY_FIRST))
    edits: list[Edit] = []
    for shape, other in pairs:
        for match in shape.pattern.finditer(text):
            day = _day_of(match)
            if day is not None and not _overlaps(match.span(), [(e.start, e.stop) for e in edits]):
                edits.append(Edit(*match.span(), other.write(day, match)))
    return sorted(edits)


def _days(text: str) -> Iterator[Edit]:
    for shape in (_DAY_FIRST, _MONTH_FIRST, _ISO):
        for match in shape.pattern.finditer(text):
            day = _day_of(match)
            new = match.group() if day is None else shape.write(day + _DAYS_ON, match)
            yield Edit(*match.span(), new)


def _months(text: str) -> Iterator[Edit]:
    for match in _MONTH_YEAR.finditer(text):
        index = _month_of(match["month"]) - 1 + _MONTHS_ON
        year = int(match["year"]) + index // len(_MONTHS)
        yield Edit(*match.span(), f"{_MONTHS[index % len(_MONTHS)]} {year}")


def _years(text: str) -> Iterator[Edit]:
    for match in _YEAR_ALONE.finditer(text):
        yield Edit(*match.span(), str(int(match["year"]) + _YEARS_ON))


def _weekdays(text: str) -> Iterator[Edit]:
    for match in _WEEKDAY.finditer(text):
        yield Edit(*match.span(), _LATER_WEEKDAY[match.group()])


def _spoken(text: str) -> Iterator[Edit]:
    for match in _SPOKEN_WORD.finditer(text):
        new = _SPOKEN[match.group().lower()]
        yield Edit(*match.span(), capitalised_like(new, match.group()))


def _day_of(match: re.Match[str]) -> date | None:
    parts = match.groupdict()
    month = int(parts["number"]) if "number" in parts else _month_of(parts["month"])
    try:
        return date(int(parts["year"] or _LEAP), month, int(parts["day"]))
    except ValueError:
        return None


def _month_of(name: str) -> int:
    return next(i for i, month in enumerate(_MONTHS, 1) if month.startswith(name[:3]))


def _overlaps(span: tuple[int, int], taken: list[tuple[int, int]]) -> bool:
    return any(span[0] < stop and start < span[1] for start, stop in taken)
