"""The published scorer to the bit, and ours where the published one is wrong."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.scenarios.normalise import holds, words
from assay.scenarios.scorers import Criteria, answer_score, published

SUPPORT_GROUP = Criteria(
    expected_answer="7 May 2023",
    answer_aliases=("May 7, 2023", "2023-05-07"),
    must_include=("7 May 2023", "may", "2023"),
    must_not_include=("8 May 2023", "yesterday"),
    max_words=60,
    style="answer concisely",
)


def test_every_recorded_score_is_reproduced_exactly(shared_data: Path) -> None:
    keys = {
        row["example_id"]: msgspec.convert(row["scoring_criteria"], Criteria)
        for row in _rows(shared_data / "causal_locomo_16.jsonl")
    }
    answers = _rows(shared_data / "cmi_answers_16.jsonl")

    scores = [published(row["final_answer"], keys[row["example_id"]]) for row in answers]

    assert len(answers) == 112
    assert scores == [row["scores"]["deterministic_score"] for row in answers]


def test_abstaining_earns_the_published_floor_and_nothing_here() -> None:
    abstaining = "I do not have enough information"

    assert published(abstaining, SUPPORT_GROUP) == pytest.approx(0.6)
    assert answer_score(abstaining, SUPPORT_GROUP) == 0.0


@pytest.mark.parametrize(
    "answer",
    ["On 7th of May 2023", "May 7, 2023.", "It was 2023-05-07", "the 7 May, 2023 meeting"],
)
def test_a_date_is_right_in_any_notation(answer: str) -> None:
    assert answer_score(answer, SUPPORT_GROUP) == 1.0


def test_a_forbidden_answer_earns_nothing() -> None:
    assert answer_score("8 May 2023, not 7 May 2023", SUPPORT_GROUP) == 0.0


def test_a_short_answer_is_not_found_inside_a_longer_word() -> None:
    no = Criteria(expected_answer="No", max_words=60)

    assert published("enough", no) == 1.0
    assert answer_score("enough", no) == 0.0
    assert answer_score("No.", no) == 1.0


def test_number_words_and_digits_are_the_same() -> None:
    assert words("Twenty of 1,000, twice") == ["20", "of", "1000", "2"]


def test_a_date_that_does_not_exist_is_left_as_written() -> None:
    assert words("30 February 2023") == ["30", "february", "2023"]


def test_a_finer_date_holds_a_coarser_one_and_not_the_reverse() -> None:
    assert holds(words("on 7 May 2023"), words("May 2023"))
    assert not holds(words("in May 2023"), words("7 May 2023"))


@given(st.dates(min_value=date(1900, 1, 1), max_value=date(2099, 12, 31)))
def test_every_notation_of_a_date_gives_one_word(day: date) -> None:
    notations = [
        day.isoformat(),
        f"{day:%B} {day.day}, {day.year}",
        f"{day.day} {day:%b} {day.year}",
    ]

    assert {tuple(words(text)) for text in notations} == {(day.isoformat(),)}


@given(st.text())
def test_any_text_has_words(text: str) -> None:
    assert all(words(text))
    assert not holds(words(text), [])


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
