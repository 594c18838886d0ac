"""The fault generator: dates and numbers right, sentences whole, defects counted, bytes equal."""

import json
import re
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ScenarioError
from assay.scenarios.locomo_build import build, write
from assay.scenarios.locomo_data import Locomo, Question, load
from assay.scenarios.locomo_faults import cases_for, eligible
from assay.scenarios.locomo_foils import (
    MONTHS,
    answer_kind,
    entity_pool,
    in_sentence,
    moved_date,
    shifted_number,
)
from assay.scenarios.locomo_topics import keywords, past, third_person, topic
from assay.stores.embeddings import HashingEmbedder

SPEAKERS = ("Caroline", "Melanie")


def small_file(folder: Path) -> Path:
    talk = {
        "speaker_a": "Caroline",
        "speaker_b": "Melanie",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {
                "speaker": "Caroline",
                "dia_id": "D1:1",
                "text": "I went to the support group yesterday.",
            },
            {"speaker": "Melanie", "dia_id": "D1:2", "text": "I moved here from Sweden."},
            {"speaker": "Melanie", "dia_id": "D1:3", "text": "Look!", "blip_caption": "a red bowl"},
        ],
    }
    questions: list[tuple[str, str | int | None, list[str], int]] = [
        ("When did Caroline go to the support group?", "7 May 2023", ["D1:1"], 2),
        ("Where did Melanie move from?", "Sweden", ["D1:2; D1:3", "D"], 4),
        ("Where did Melanie move from?", "Sweden", ["D1:2"], 4),
        ("When did Melanie paint?", 2022, ["D:1:3", "D9:9"], 2),
        ("What is missing?", None, [], 5),
    ]
    raw = [
        {"question": q, "evidence": e, "category": c, **({} if a is None else {"answer": a})}
        for q, a, e, c in questions
    ]
    path = folder / "locomo.json"
    path.write_text(json.dumps([{"sample_id": "conv-1", "conversation": talk, "qa": raw}]))
    return path


def question(answer: str, text: str = "When did Caroline paint?") -> Question:
    return Question(text=text, answer=answer, category=2, evidence=("D1:1",))


def test_every_defect_is_survived_and_counted(tmp_path: Path) -> None:
    data = load(small_file(tmp_path))

    assert data.defects == {
        "answers that are no text": 1,
        "dangling evidence ids": 1,
        "malformed evidence ids": 3,
        "questions without an answer": 1,
        "questions without evidence": 1,
        "repeated questions": 1,
    }
    assert [q.evidence for q in data.conversations[0].questions] == [
        ("D1:1",),
        ("D1:2", "D1:3"),
        ("D1:3",),
        (),
    ]


def test_a_file_that_is_not_locomo_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('[{"rows": 1}]')

    with pytest.raises(ScenarioError, match="is not LoCoMo"):
        load(path)


@given(
    day=st.dates(min_value=date(2022, 1, 1), max_value=date(2024, 12, 31)),
    key=st.text(max_size=5),
)
def test_a_moved_date_is_a_real_day_whole_weeks_later(day: date, key: str) -> None:
    moved = moved_date(f"The Friday before {day.day} {MONTHS[day.month - 1]}, {day.year}.", key)

    number, month, year = moved.removeprefix("The Friday before ").rstrip(".").split()
    then = date(int(year), MONTHS.index(month.rstrip(",")) + 1, int(number))
    assert 7 <= (then - day).days <= 56
    assert (then - day).days % 7 == 0


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("March 16, 2023", r"[A-Z][a-z]+ \d{1,2}, 2023"),
        ("December 2023", r"[A-Z][a-z]+ 2024"),
        ("first week of June 2023", r"first week of [A-Z][a-z]+ 2023"),
        ("2022", r"20\d\d"),
        ("24June, 2022", r"\d{1,2} [A-Z][a-z]+, 2022"),
    ],
)
def test_a_moved_date_keeps_its_notation(text: str, shape: str) -> None:
    moved = moved_date(text, "key")

    assert moved != text
    assert re.fullmatch(shape, moved)


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [("7 years", "", " years"), ("Four", "", ""), ("about two", "about ", "")],
)
def test_a_shifted_number_keeps_its_notation(text: str, begin: str, end: str) -> None:
    shifted = shifted_number(text, "key")

    assert shifted != text
    assert shifted.startswith(begin)
    assert shifted.endswith(end)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("7 May 2023", "date"),
        ("The summer of 2022", "date"),
        ("40 points", "number"),
        ("It takes two", None),
        ("support group", "span"),
        ("", None),
    ],
)
def test_an_answer_is_a_date_a_number_a_span_or_none_of_them(answer: str, kind: str | None) -> None:
    assert answer_kind(question(answer), "I went to the support group.") == kind


@pytest.mark.parametrize(
    ("asked", "clause"),
    [
        ("When did Caroline go to the group?", "when Caroline went to the group"),
        ("What does Melanie carry?", "what Melanie carries"),
        ("How long has Melanie been painting?", "how long Melanie has been painting"),
        ("What is Caroline's idea?", 'the question "What is Caroline\'s idea?"'),
        ("When did Melanie and her son swim?", 'the question "When did Melanie and her son swim?"'),
    ],
)
def test_a_question_becomes_a_clause_or_is_quoted(asked: str, clause: str) -> None:
    assert topic(asked, SPEAKERS) == clause


def test_verbs_are_inflected() -> None:
    assert [past(verb) for verb in ("try", "plan", "bake", "write")] == [
        "tried",
        "planned",
        "baked",
        "wrote",
    ]
    assert [third_person(verb) for verb in ("watch", "try", "go")] == ["watches", "tries", "goes"]


def test_an_answer_inside_a_sentence_loses_only_the_capital_of_a_line() -> None:
    assert [in_sentence(t) for t in ("The week before.", "The Wheel of Time", "May 2023")] == [
        "the week before",
        "The Wheel of Time",
        "May 2023",
    ]


def test_keywords_name_the_speaker_first() -> None:
    assert keywords("When did Caroline buy the violin?", SPEAKERS) == "Caroline, buy, violin"


def faults_of(data: Locomo, seed: int = 7) -> dict[str, list[str]]:
    conversation = data.conversations[0]
    first = conversation.questions[0]
    cases = cases_for(first, conversation, entity_pool(data.conversations), seed)
    return {case.structure: [fault.text for fault in case.faults] for case in cases[::-1]}


def test_each_structure_states_the_foil_and_the_pointer_does_not(tmp_path: Path) -> None:
    data = load(small_file(tmp_path))
    conversation = data.conversations[0]
    pool = entity_pool(data.conversations)

    cases = cases_for(conversation.questions[0], conversation, pool, 7)

    texts = faults_of(data)
    pointer, payload = texts["joint"]
    foil = cases[0].foil
    assert eligible(conversation.questions[0], conversation)
    assert foil != "7 May 2023"
    assert foil in payload
    assert foil not in pointer
    assert [foil in text for text in texts["direct"]] == [True]
    assert len(texts["redundant"]) == len(set(texts["redundant"])) >= 2
    assert all(foil in text for text in texts["redundant"])
    assert {case.foil_kind for case in cases} == {"date"}


def test_a_fault_is_written_after_every_turn(tmp_path: Path) -> None:
    data = load(small_file(tmp_path))
    conversation = data.conversations[0]
    last = max(turn.at for turn in conversation.turns.values())

    cases = cases_for(conversation.questions[1], conversation, entity_pool(data.conversations), 7)

    assert cases
    assert all(fault.at > last for case in cases for fault in case.faults)


async def test_one_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    data = load(small_file(tmp_path))
    embedder = HashingEmbedder()

    write(await build(data, seed=7, embedder=embedder), data, tmp_path / "a")
    write(await build(data, seed=7, embedder=embedder), data, tmp_path / "b")
    write(await build(data, seed=8, embedder=embedder), data, tmp_path / "c")

    read = {name: (tmp_path / name / "natural.jsonl").read_bytes() for name in "abc"}
    assert read["a"] == read["b"] != read["c"]
    assert (tmp_path / "a" / "sample.md").read_text().startswith("# Fault cases")


async def test_a_natural_case_has_all_evidence_and_faults_among_the_retrieved(
    tmp_path: Path,
) -> None:
    data = load(small_file(tmp_path))

    built = await build(data, seed=7, embedder=HashingEmbedder())

    assert built.natural
    assert all(
        {*case.evidence, *(fault.id for fault in case.faults)} <= set(case.retrieved)
        for case in built.natural
    )


def test_the_real_file_is_read_whole(shared_data: Path) -> None:
    data = load(shared_data / "locomo10.json")

    assert len(data.conversations) == 10
    assert sum(len(c.turns) for c in data.conversations) == 5882
    assert data.defects["questions without an answer"] == 444
    assert data.defects["questions without evidence"] == 4
    assert data.defects["repeated questions"] == 12
