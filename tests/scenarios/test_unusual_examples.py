"""Every method on examples that are not as they should be, and blind to all but text and history."""

import json
from pathlib import Path

import msgspec
import pytest

from assay.guards.methods import CMI_VARIANTS, METHODS, guard_named
from assay.guards.protocols import Completion, Request
from assay.runtime.models.scripted import ScriptedModel
from assay.scenarios.causal_locomo import load_blind
from assay.scenarios.folder import RunFolder
from assay.scenarios.metrics import score
from assay.scenarios.runner import run
from assay.scenarios.runs import Row, RunConfig

from .support_causal import Row as Line
from .support_causal import config, equipment, example, run_record, write_rows

ALL = (*METHODS, *CMI_VARIANTS)


async def decided(
    tmp_path: Path, lines: list[Line], *, model: ScriptedModel | None = None, k: int = 3
) -> list[Row]:
    """The decisions of all methods over a file of these lines."""
    setup = written(tmp_path, lines, k)
    scenarios = load_blind(Path(setup.data), seed=setup.seed)
    place = RunFolder(tmp_path / "out")
    await place.begin(run_record(setup))
    kit = equipment(model)._replace(guard=guard_named)
    return await run(place, [s.example for s in scenarios], setup, kit)


def written(path: Path, lines: list[Line], k: int) -> RunConfig:
    """A run of all methods over a file of these lines in a folder."""
    path.mkdir(exist_ok=True)
    return config(write_rows(path / "data.jsonl", lines), *ALL, k=k)


def changed(**fields: object) -> Line:
    """The first example with other fields."""
    return example(0) | fields


async def test_an_empty_bank_selects_nothing_and_is_answered(tmp_path: Path) -> None:
    rows = await decided(tmp_path, [changed(memory_bank=[], gold_memory_ids=[])])

    assert {row.admitted for row in rows} == {()}
    assert {row.status for row in rows} == {"answered"}
    assert len(rows) == len(ALL)


async def test_an_example_without_gold_rewards_selecting_nothing(tmp_path: Path) -> None:
    line = changed(gold_memory_ids=[])
    line["memory_bank"] = [memory for memory in line["memory_bank"] if memory["label"] != "useful"]
    [key] = [s.key for s in load_blind(write_rows(tmp_path / "a.jsonl", [line]), seed=7)]

    rows = await decided(tmp_path, [line])

    by_method = {row.method: score(row.admitted, key) for row in rows}
    assert (by_method["no_memory"].useful_f1, by_method["no_memory"].gold_recall) == (1.0, 1.0)
    assert (by_method["vector"].useful_f1, by_method["vector"].gold_recall) == (0.0, 1.0)


async def test_of_two_useful_memories_each_counts_for_half(tmp_path: Path) -> None:
    line = changed(gold_memory_ids=["gold_00", "gold_01"])
    second = line["memory_bank"][0] | {"memory_id": "gold_01", "content": "Ada owns one harp now."}
    line["memory_bank"] = [*line["memory_bank"], second]
    [key] = [s.key for s in load_blind(write_rows(tmp_path / "a.jsonl", [line]), seed=7)]

    rows = await decided(tmp_path, [line], k=5)

    [whole] = [score(row.admitted, key) for row in rows if row.method == "full_history"]
    assert len(key.useful) == 2
    assert whole.gold_recall == 1.0
    assert score(sorted(key.useful)[:1], key).gold_recall == 0.5


@pytest.mark.parametrize("answer", ["...", "?!", " ", "\N{EM DASH}\N{EM DASH}"])
async def test_answers_of_punctuation_alone_break_no_method(tmp_path: Path, answer: str) -> None:
    rows = await decided(tmp_path, [example(0)], model=ScriptedModel(lambda _: answer))

    assert {row.method for row in rows} == set(ALL)
    # An answer that claims nothing supports no record.
    assert [row.admitted for row in rows if row.method == "cmi"] == [()]


async def test_dates_that_do_not_exist_break_no_method(tmp_path: Path) -> None:
    line = changed()
    line["memory_bank"][0]["content"] = "Ada bought a harp on 30 February 2023 and on 2023-13-45."

    rows = await decided(tmp_path, [line])

    assert {row.status for row in rows} == {"answered"}


async def test_a_cut_answer_is_no_failure_of_a_method(tmp_path: Path) -> None:
    def cut(request: Request) -> Completion:
        return Completion(text="Ada bought a", finish_reason="length")

    rows = await decided(tmp_path, [example(0)], model=ScriptedModel(cut))

    assert {row.status for row in rows} == {"truncated"}


async def test_no_method_sees_more_than_text_and_history(tmp_path: Path) -> None:
    lines = [example(0), example(1)]
    disguised = json.loads(json.dumps(lines))
    for line in disguised:
        line["memory_bank"].reverse()
        for i, memory in enumerate(line["memory_bank"]):
            memory |= {"memory_id": f"x{i}", "label": "irrelevant", "causal_role": "?"}
            memory |= {"timestamp": -i, "source_dia_ids": []}
        line |= {"gold_memory_ids": [], "bad_memory_ids": [], "task_family": "?"}
        line["scoring_criteria"] = {"expected_answer": "?"}

    first = await decided(tmp_path / "as it is", lines)
    second = await decided(tmp_path / "disguised", disguised)

    assert [by_text(row) for row in first] == [by_text(row) for row in second]


def by_text(row: Row) -> tuple[str, str, tuple[tuple[bool, str], ...], str]:
    """A decision without ids: those of records come from seed and text, so order is by text too."""
    judged = tuple((j.admitted, j.reason) for j in row.decision.judgements)
    return row.example, row.method, judged, row.answer


def test_the_broken_example_is_flagged_and_kept_as_it_is(shared_data: Path) -> None:
    path = shared_data / "causal_locomo.jsonl"
    raw = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    [broken] = [row for row in raw if row["example_id"] == "conv-41_qa_0004"]

    [scenario] = [s for s in load_blind(path, seed=7) if s.example.id == "conv-41_qa_0004"]

    assert "a harmful memory states the expected answer" in scenario.key.flags
    assert len(scenario.key.harmful) == sum(m["label"] == "harmful" for m in broken["memory_bank"])
    assert scenario.key.expected[0] == broken["scoring_criteria"]["expected_answer"]


def test_a_bank_of_one_text_twice_keeps_both(tmp_path: Path) -> None:
    line = changed()
    twin = line["memory_bank"][1] | {"memory_id": "irr_09"}
    line["memory_bank"] = [*line["memory_bank"], twin]

    [scenario] = load_blind(write_rows(tmp_path / "a.jsonl", [line]), seed=7)

    assert len({record.id for record in scenario.example.records}) == 5
    assert msgspec.json.encode(scenario.example)
