"""Where the published scorer and ours differ, each cause by hand and all of them on the recording."""

import json
from pathlib import Path

import pytest

from assay.errors import ScenarioError
from assay.scenarios.recorded_costs import PUBLISHED_COSTS, recorded_costs
from assay.scenarios.scorer_differences import CAUSES, cause_of, scorer_differences
from assay.scenarios.scorers import Criteria, answer_score, published

DATED = Criteria(
    expected_answer="7 May 2023",
    answer_aliases=("the seventh of May",),
    must_include=("7 May 2023", "may", "2023"),
    must_not_include=("8 May 2023",),
)


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        ("7 May 2023", "same score"),
        ("I do not know", "says nothing of the answer, yet earned the floor"),
        ("...?!", "says nothing of the answer, yet earned the floor"),
        ("", "says nothing of the answer, yet earned the floor"),
        ("On May 7th, 2023", "right in another notation or wording"),
        ("It was 8 May 2023", "states a forbidden value"),
        ("7 May 2023, told on 8 May 2023", "states the right value and a forbidden one"),
        ("Maybe in 1999", "credited for a part of another word"),
        ("In May 2023", "right in part: shares weighted otherwise"),
        ("7 May 2023 " + "and more " * 40, "right, but long or listed in part"),
    ],
)
def test_each_cause_by_hand(answer: str, cause: str) -> None:
    assert cause_of(answer, DATED) == cause


def test_a_word_the_right_answer_needs_is_no_forbidden_one() -> None:
    key = Criteria(expected_answer="No cats", must_include=("No cats",), must_not_include=("cats",))

    assert cause_of("No cats", key) == "punished for a word the right answer needs"


@pytest.mark.parametrize("answer", ["", "...", "?!", "\N{EM DASH}", "\u200b"])
def test_an_answer_of_punctuation_alone_has_scores(answer: str) -> None:
    assert answer_score(answer, DATED) == 0.0
    assert 0 <= published(answer, DATED) <= 1


def test_a_date_that_does_not_exist_is_compared_as_written() -> None:
    key = Criteria(expected_answer="30 February 2023")

    assert answer_score("on 30 February 2023", key) == 1.0
    assert answer_score("on 2 March 2023", key) == 0.0


def test_the_recording_is_reproduced_and_every_answer_has_one_cause(shared_data: Path) -> None:
    found = scorer_differences(
        shared_data / "causal_locomo_16.jsonl", shared_data / "cmi_answers_16.jsonl"
    )

    assert (found.answers, found.reproduced) == (112, 112)
    assert tuple(found.causes) == CAUSES
    assert sum(cause.answers for cause in found.causes.values()) == 112
    floor = found.causes["says nothing of the answer, yet earned the floor"]
    assert floor.ours == 0.0
    assert (floor.published or 0) > 0.5


def test_an_answer_without_its_key_is_named(tmp_path: Path) -> None:
    keys, answers = tmp_path / "keys.jsonl", tmp_path / "answers.jsonl"
    keys.write_text(json.dumps({"example_id": "a", "scoring_criteria": {}}) + "\n")
    row = {"example_id": "b", "agent_name": "cmi", "final_answer": ""}
    answers.write_text(json.dumps(row | {"scores": {"deterministic_score": 1.0}}) + "\n")

    with pytest.raises(ScenarioError, match=r"answers\.jsonl, line 1: expected an example of"):
        scorer_differences(keys, answers)


def test_recorded_costs_are_means_by_agent(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    rows = [
        {"agent_name": "cmi", "token_usage": {"total_tokens": n}, "latency_seconds": s}
        for n, s in ((10, 1.0), (30, 4.0))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    assert recorded_costs(path) == {"cmi": (2, 20.0, 2.5)}
    assert PUBLISHED_COSTS["cmi"].rounds == 2 * 3 + 1 + 1
