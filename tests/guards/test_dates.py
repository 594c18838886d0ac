"""Times in texts, hand computed against the calendar of 2022 and 2023."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.guards.evidence.dates import mentions, undated
from assay.guards.evidence.spans import Span, agreement, away, day_span, month_span, year_span

THURSDAY = date(2023, 5, 25)


def first_reading(text: str, said_on: date | None = THURSDAY) -> Span:
    return mentions(text, said_on)[0].readings[0]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("on 7 May 2023", "2023-05-07", "2023-05-07"),
        ("May 3rd, 2023", "2023-05-03", "2023-05-03"),
        ("2023-06-09", "2023-06-09", "2023-06-09"),
        ("19 January, 2023", "2023-01-19", "2023-01-19"),
        ("in February 2022", "2022-02-01", "2022-02-28"),
        ("back in 2019", "2019-01-01", "2019-12-31"),
        ("summer of 2021", "2021-06-01", "2021-08-31"),
        ("the Sunday before 25 May 2023", "2023-05-21", "2023-05-21"),
        ("the Friday before 23January, 2022", "2022-01-21", "2022-01-21"),
        ("the weekend before March 26, 2023", "2023-03-18", "2023-03-19"),
        ("the day before 1 March 2023", "2023-02-28", "2023-02-28"),
        ("first week of May 2023", "2023-05-01", "2023-05-07"),
        ("the beginning of January 2023", "2023-01-01", "2023-01-10"),
        ("the week of April 3rd to 9th, 2023", "2023-04-03", "2023-04-09"),
        ("between 26 March 2023 and 20 April 2023", "2023-03-26", "2023-04-20"),
        ("a few years before 2023", "2018-01-01", "2021-12-31"),
        ("mid May 2023", "2023-05-11", "2023-05-21"),
        ("the end of May 2023", "2023-05-22", "2023-05-31"),
        ("the weekend after 25 May 2023", "2023-05-27", "2023-05-28"),
        ("the Friday after 25 May 2023", "2023-05-26", "2023-05-26"),
        ("two days after 25 May 2023", "2023-05-27", "2023-05-27"),
        ("several weeks before 25 May 2023", "2023-04-03", "2023-05-07"),
        ("the week of 25 May 2023", "2023-05-22", "2023-05-28"),
    ],
)
def test_an_absolute_time_needs_no_day_to_stand_on(text: str, first: str, last: str) -> None:
    span = first_reading(text, None)

    assert span == Span(date.fromisoformat(first), date.fromisoformat(last))


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("I went yesterday", "2023-05-24", "2023-05-24"),
        ("the day before yesterday", "2023-05-23", "2023-05-23"),
        ("last Saturday", "2023-05-20", "2023-05-20"),
        ("last Thursday", "2023-05-18", "2023-05-18"),
        ("next Monday", "2023-05-29", "2023-05-29"),
        ("last week", "2023-05-15", "2023-05-21"),
        ("last weekend", "2023-05-20", "2023-05-21"),
        ("two weekends ago", "2023-05-13", "2023-05-14"),
        ("last month", "2023-04-01", "2023-04-30"),
        ("next month", "2023-06-01", "2023-06-30"),
        ("two months ago", "2023-03-01", "2023-03-31"),
        ("last year", "2022-01-01", "2022-12-31"),
        ("a few years ago", "2018-01-01", "2021-12-31"),
        ("ten days ago", "2023-05-15", "2023-05-15"),
        ("last summer", "2022-06-01", "2022-08-31"),
        ("last August", "2022-08-01", "2022-08-31"),
        ("for 3 years now", "2020-01-01", "2020-12-31"),
        ("on June 2nd", "2023-06-02", "2023-06-02"),
        ("in April", "2023-04-01", "2023-04-30"),
        ("in two weeks", "2023-06-05", "2023-06-11"),
        ("this weekend", "2023-05-27", "2023-05-28"),
        ("next weekend", "2023-06-03", "2023-06-04"),
        ("on Monday", "2023-05-22", "2023-05-22"),
        ("this week", "2023-05-22", "2023-05-28"),
        ("next August", "2023-08-01", "2023-08-31"),
        ("next April", "2024-04-01", "2024-04-30"),
        ("this summer", "2023-06-01", "2023-08-31"),
        ("last spring", "2022-03-01", "2022-05-31"),
        ("next spring", "2024-03-01", "2024-05-31"),
        ("recently", "2023-05-12", "2023-05-25"),
        ("the other day", "2023-05-18", "2023-05-24"),
        ("tomorrow", "2023-05-26", "2023-05-26"),
    ],
)
def test_a_relative_time_is_resolved_against_the_day_it_was_said(
    text: str, first: str, last: str
) -> None:
    span = first_reading(text)

    assert span == Span(date.fromisoformat(first), date.fromisoformat(last))


def test_a_misspelt_month_is_read() -> None:
    assert first_reading("21Janury, 2022", None) == day_span(date(2022, 1, 21))


def test_a_date_that_does_not_exist_is_no_mention() -> None:
    assert mentions("30 February 2023", THURSDAY) == []


def test_a_range_with_an_impossible_end_is_its_first_day() -> None:
    assert first_reading("April 3 to 31, 2023", None) == day_span(date(2023, 4, 3))


def test_a_day_without_a_year_needs_a_day_to_stand_on() -> None:
    assert mentions("on June 2nd, or in April", None) == []


@pytest.mark.parametrize("text", ["for 3 years", "almost two months"])
def test_a_length_of_time_stays_in_an_undated_text(text: str) -> None:
    assert undated(text) == text


def test_an_undated_text_keeps_the_rest() -> None:
    assert undated("On 7 May 2023 Ann ran, last week").split() == ["on", "ann", "ran,"]


def test_may_as_a_verb_is_no_month() -> None:
    assert mentions("we may go, we might not", THURSDAY) == []


def test_last_week_has_a_calendar_and_a_counted_reading() -> None:
    [mention] = mentions("last week", date(2023, 4, 16))

    assert mention.readings == (
        Span(date(2023, 4, 3), date(2023, 4, 9)),
        Span(date(2023, 4, 9), date(2023, 4, 15)),
    )


def test_months_carry_into_the_year_before() -> None:
    assert away(date(2023, 1, 1), "month", -1, -1) == (month_span(2022, 12),)


def test_agreement_prefers_the_same_grain_to_a_wider_one() -> None:
    day, month, year = day_span(date(2023, 5, 7)), month_span(2023, 5), year_span(2023)

    assert agreement(day, day) == 1.0
    assert 1.0 > agreement(month, day) > agreement(year, day) > 0.5
    assert agreement(month_span(2023, 6), day) == 0.0


@given(st.text(max_size=200), st.dates(date(1900, 1, 1), date(2100, 1, 1)))
def test_any_text_gives_ordered_spans(text: str, day: date) -> None:
    spans = [span for mention in mentions(text, day) for span in mention.readings]

    assert all(span.first <= span.last for span in spans)


_PHRASES = st.lists(
    st.sampled_from(
        "last next this two 31 2022 feb may week weekend friday years ago before between and of first".split()
    ),
    max_size=8,
).map(" ".join)


@given(_PHRASES, st.dates())
def test_any_words_of_time_give_ordered_spans(text: str, day: date) -> None:
    spans = [span for mention in mentions(text, day) for span in mention.readings]

    assert all(span.first <= span.last for span in spans)
