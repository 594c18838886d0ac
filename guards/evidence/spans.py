"""Spans of days and the arithmetic of "last week" and "two months ago". Inclusive at both ends."""

import calendar
from datetime import date
from typing import Final, Literal, NamedTuple, TypeAlias, assert_never

Unit: TypeAlias = Literal["day", "week", "month", "year"]

_DAYS_OF_WEEK: Final = 7
_MONTHS_OF_YEAR: Final = 12
_ORDINAL_LOW: Final = date(1000, 1, 1).toordinal()
_ORDINAL_HIGH: Final = date(9000, 1, 1).toordinal()


class Span(NamedTuple):
    """Days from ``first`` to ``last``, both included; its length is its grain."""

    first: date
    last: date

    @property
    def days(self) -> int:
        """Length in days, at least 1."""
        return (self.last - self.first).days + 1


def agreement(claimed: Span, resolved: Span) -> float:
    """How well a claimed time agrees with a resolved one, in [0, 1].

    1 for the same span, 0 for disjoint ones; a span inside the other is consistent but of
    another grain and earns at least a half of the overlap.
    """
    shared = (min(claimed.last, resolved.last) - max(claimed.first, resolved.first)).days + 1
    if shared <= 0:
        return 0.0
    whole = claimed.days + resolved.days - shared
    return (shared / min(claimed.days, resolved.days)) * (0.5 + 0.5 * shared / whole)


def shift(day: date, days: int) -> date:
    """``day`` moved by ``days``, kept between the years 1000 and 9000."""
    return date.fromordinal(min(max(day.toordinal() + days, _ORDINAL_LOW), _ORDINAL_HIGH))


def day_span(day: date) -> Span:
    """One day."""
    return Span(day, day)


def month_span(year: int, month: int) -> Span:
    """One calendar month; ``month`` may be outside 1 to 12 and carries into the year."""
    index = year * _MONTHS_OF_YEAR + month - 1
    year, month = index // _MONTHS_OF_YEAR, index % _MONTHS_OF_YEAR + 1
    year = min(max(year, 1000), 8999)
    return Span(date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1]))


def year_span(year: int) -> Span:
    """One calendar year."""
    year = min(max(year, 1000), 8999)
    return Span(date(year, 1, 1), date(year, 12, 31))


def week_span(day: date) -> Span:
    """The week, Monday to Sunday, that holds ``day``."""
    monday = shift(day, -day.weekday())
    return Span(monday, shift(monday, 6))


def weekend_before(day: date) -> Span:
    """The last Saturday and Sunday that are both over by ``day``."""
    sunday = shift(day, -(day.weekday() + 1))
    return Span(shift(sunday, -1), sunday)


def weekday_before(day: date, weekday: int) -> date:
    """The latest ``weekday`` (0 is Monday) strictly before ``day``."""
    return shift(day, -((day.weekday() - weekday - 1) % _DAYS_OF_WEEK + 1))


def weekday_after(day: date, weekday: int) -> date:
    """The first ``weekday`` (0 is Monday) strictly after ``day``."""
    return shift(day, (weekday - day.weekday() - 1) % _DAYS_OF_WEEK + 1)


def away(day: date, unit: Unit, low: int, high: int) -> tuple[Span, ...]:
    """What lies ``low`` to ``high`` units after ``day`` (negative: before), at the unit's grain.

    Weeks give two readings: calendar weeks and the days counted from ``day``.
    """
    match unit:
        case "day":
            return (Span(shift(day, low), shift(day, high)),)
        case "week":
            return _weeks_away(day, low, high)
        case "month":
            first, last = (
                month_span(day.year, day.month + low),
                month_span(day.year, day.month + high),
            )
            return (Span(first.first, last.last),)
        case "year":
            return (Span(year_span(day.year + low).first, year_span(day.year + high).last),)
        case _:
            assert_never(unit)


def _weeks_away(day: date, low: int, high: int) -> tuple[Span, ...]:
    calendar_weeks = Span(
        week_span(shift(day, 7 * low)).first, week_span(shift(day, 7 * high)).last
    )
    if high < 0:
        counted = Span(shift(day, 7 * low), shift(day, 7 * (high + 1) - 1))
    elif low > 0:
        counted = Span(shift(day, 7 * (low - 1) + 1), shift(day, 7 * high))
    else:
        counted = calendar_weeks
    return (calendar_weeks, counted)


def third(span: Span, which: Literal["early", "middle", "late"]) -> Span:
    """The first, middle or last third of a span."""
    part = span.days // 3
    match which:
        case "early":
            return Span(span.first, shift(span.first, max(part - 1, 0)))
        case "middle":
            return Span(shift(span.first, part), shift(span.last, -part))
        case "late":
            return Span(shift(span.last, -max(part - 1, 0)), span.last)
        case _:
            assert_never(which)
