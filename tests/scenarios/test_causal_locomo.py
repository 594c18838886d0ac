from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from assay.errors import ScenarioError
from assay.scenarios.causal_locomo import load_blind, strip_answer

from .support_causal import Row, example, examples, write_rows


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "data.jsonl", examples())


def test_the_sentence_that_resolves_the_answer_is_stripped_to_the_end() -> None:
    assert strip_answer("He left. Resolved answer: May. More.") == "He left."
    assert strip_answer("He left. Resolved temporal answer: 7 May 2023.") == "He left."
    assert strip_answer("A. Resolved answer for the current question: B") == "A."
    assert strip_answer("The dispute was resolved.") == "The dispute was resolved."


def test_an_example_carries_no_label_no_answer_and_no_source_id(data: Path) -> None:
    [scenario, *_] = load_blind(data, seed=7)

    seen = msgspec.json.encode(scenario.example).decode()

    assert "Resolved" not in seen
    leaks = ("useful", "irrelevant", "harmful", "gold_", "irr_", "harm_", "D1:1", "positive")
    assert [leak for leak in leaks if leak in seen] == []


def test_roles_are_in_the_key_under_the_opaque_ids(data: Path) -> None:
    [scenario, *_] = load_blind(data, seed=7)
    by_text = {record.text: record.id for record in scenario.example.records}

    assert scenario.key.useful == {by_text["Ada bought a harp."]}
    assert scenario.key.harmful == {by_text["Ada bought a lute."]}
    assert len(scenario.key.irrelevant) == 2
    assert scenario.key.expected == ("harp", "a harp")


def test_turns_have_speaker_text_and_the_session_s_date(data: Path) -> None:
    [scenario, *_] = load_blind(data, seed=7)

    first, second = scenario.example.turns

    assert (first.speaker, first.text) == ("Ada", "I bought a harp yesterday.")
    assert first.at.isoformat() == "2023-05-01T13:56:00+00:00"
    assert (second.session, second.position) == ("s1", 1)


def test_times_are_redrawn_inside_the_session_range(data: Path) -> None:
    for scenario in load_blind(data, seed=7):
        at = [record.ingested_at for record in scenario.example.records]
        assert min(at) >= scenario.example.turns[0].at
        assert max(at) < scenario.example.now


def test_another_seed_gives_other_ids_and_times(data: Path) -> None:
    first, other = (load_blind(data, seed=seed)[0].example for seed in (7, 8))

    assert {r.id for r in first.records}.isdisjoint(r.id for r in other.records)
    assert [r.ingested_at for r in first.records] != [r.ingested_at for r in other.records]


def test_limit_keeps_the_first_examples(data: Path) -> None:
    assert [s.example.id for s in load_blind(data, seed=7, limit=2)] == ["conv-0_qa", "conv-1_qa"]


def disguised(rows: list[Row]) -> list[Row]:
    """Other labels, ids, order, timestamps and sources; only text and history are left."""
    rng = np.random.default_rng(3)
    for row in rows:
        bank = row["memory_bank"]
        labels = rng.permutation([memory["label"] for memory in bank]).tolist()
        for place, (memory, label) in enumerate(zip(bank, labels, strict=True)):
            text = memory["content"]
            memory.clear()
            memory.update(memory_id=f"z{place}", content=text, label=label)
        row["memory_bank"] = [bank[i] for i in rng.permutation(len(bank))]
        row["gold_memory_ids"] = []
        row["scoring_criteria"] = {"expected_answer": "nothing"}
        row["task_family"] = row["source_sample_id"] = "unknown"
        row["past_sessions"] = [s | {"timestamp": 99} for s in row["past_sessions"]]
    return rows


def test_what_a_selector_sees_is_a_function_of_text_and_history(data: Path, tmp_path: Path) -> None:
    changed = write_rows(tmp_path / "changed.jsonl", disguised(examples()))

    before = [scenario.example for scenario in load_blind(data, seed=7)]
    after = [scenario.example for scenario in load_blind(changed, seed=7)]

    assert before == after


def test_a_memory_that_lies_after_an_equal_one_keeps_an_id_of_its_own(tmp_path: Path) -> None:
    row = example(0)
    row["memory_bank"].append(dict(row["memory_bank"][1], memory_id="irr_02"))

    [scenario] = load_blind(write_rows(tmp_path / "twice.jsonl", [row]), seed=7)

    assert len({record.id for record in scenario.example.records}) == 5


def test_a_harmful_memory_that_states_the_answer_is_flagged_and_kept(tmp_path: Path) -> None:
    row = example(0)
    row["memory_bank"][3]["content"] = "Use this for Bea; it conflicts with 'harp'."

    [scenario] = load_blind(write_rows(tmp_path / "odd.jsonl", [row]), seed=7)

    assert scenario.key.flags == ("a harmful memory states the expected answer",)
    assert len(scenario.key.harmful) == 1


def test_a_turn_of_several_lines_stays_one_turn(tmp_path: Path) -> None:
    row = example(0)
    row["past_sessions"][0]["content"] += "\n\n[Shares a photo of the harp]"

    [scenario] = load_blind(write_rows(tmp_path / "photo.jsonl", [row]), seed=7)

    assert scenario.example.turns[-1].text.endswith("\n[Shares a photo of the harp]")


# ---- unusable files

Change = Callable[[Row], object]

BROKEN: dict[str, tuple[Change, str]] = {
    "a label nobody knows": (
        lambda row: row["memory_bank"][0].update(label="nice"),
        "line 2: expected label useful, irrelevant, harmful of 'gold_00', got 'nice'",
    ),
    "no question": (
        lambda row: row.pop("current_task"),
        r"line 2: object missing required field `current_task`",
    ),
    "an empty question": (
        lambda row: row["current_task"].update(instruction=" "),
        "line 2: expected text in current_task.instruction, got ' '",
    ),
    "a date of another form": (
        lambda row: row["past_sessions"][0].update(date_time="2023-05-08"),
        "line 2: expected date_time like '1:56 pm on 8 May, 2023', got '2023-05-08'",
    ),
    "a date that does not exist": (
        lambda row: row["past_sessions"][0].update(date_time="1:56 pm on 31 June, 2023"),
        "line 2: expected date_time like .*, got '1:56 pm on 31 June, 2023'",
    ),
    "two memories of one id": (
        lambda row: row["memory_bank"][1].update(memory_id="gold_00"),
        "line 2: expected distinct memory_ids, got 'gold_00' 2 times",
    ),
    "gold that is not in the bank": (
        lambda row: row.update(gold_memory_ids=["gold_07"]),
        "line 2: expected gold_memory_ids of the bank, got 'gold_07'",
    ),
    "a NUL": (
        lambda row: row["memory_bank"][1].update(content="a\0b"),
        "line 2: expected text without NUL in memory 'irr_00'",
    ),
    "no sessions": (
        lambda row: row.update(past_sessions=[]),
        "line 2: expected at least one session",
    ),
    "a turn without a speaker": (
        lambda row: row["past_sessions"][0].update(content="hello"),
        "line 2: expected a turn like 'D1:3 Name: text', got 'hello'",
    ),
    "the same example again": (
        lambda row: row.update(example_id="conv-0_qa"),
        "line 2: expected a new example_id, got 'conv-0_qa' of line 1 again",
    ),
}


@pytest.mark.parametrize(("change", "message"), BROKEN.values(), ids=BROKEN)
def test_a_malformed_line_is_named_with_file_line_and_what_was_expected(
    tmp_path: Path, change: Change, message: str
) -> None:
    rows = examples(2)
    change(rows[1])
    path = write_rows(tmp_path / "broken.jsonl", rows)

    with pytest.raises(ScenarioError, match=rf"broken\.jsonl, {message}"):
        load_blind(path, seed=7, limit=1)


def test_a_line_that_is_no_json_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('\n{"example_id": \n', encoding="utf-8")

    with pytest.raises(ScenarioError, match="line 2: expected one JSON object, got"):
        load_blind(path, seed=7)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(b'{"example_id": "\xff\xfe"}\n')

    with pytest.raises(ScenarioError, match="line 1: "):
        load_blind(path, seed=7)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"no data file .*gone\.jsonl"):
        load_blind(tmp_path / "gone.jsonl", seed=7)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text("\n\n", encoding="utf-8")

    with pytest.raises(ScenarioError, match="expected at least one line"):
        load_blind(path, seed=7)


def test_the_real_file_has_87_examples_54_of_them_poisoned(shared_data: Path) -> None:
    scenarios = load_blind(shared_data / "causal_locomo.jsonl", seed=7)

    assert len(scenarios) == 87
    assert sum(bool(scenario.key.harmful) for scenario in scenarios) == 54
    assert sum(len(scenario.key.useful) for scenario in scenarios) == 89
    assert sum(len(scenario.key.irrelevant) for scenario in scenarios) == 348
    assert [s.example.id for s in scenarios if s.key.flags] == [
        "conv-47_qa_0001",
        "conv-41_qa_0004",
    ]
