"""The families as bytes, the committed sample, and what abstaining takes."""

from importlib.resources import files
from pathlib import Path

import msgspec
import pytest

from assay.errors import ScenarioError
from assay.guards.protocols import Decision, Judgement, Ledger
from assay.scenarios.families import FAMILIES, generate
from assay.scenarios.families_data import families_digest, to_jsonl, write_families
from assay.scenarios.families_metrics import abstention, answer_right, by_family
from assay.scenarios.report import render
from assay.scenarios.results import method_results
from assay.scenarios.run_report import run_report
from assay.scenarios.runs import Row, RunConfig
from assay.scenarios.schema import Example, Key, Scenario
from assay.stores.records import RecordId

from .support_causal import config, run_record, write_rows

SAMPLE_SEED = 5


class Line(msgspec.Struct):
    example: Example
    key: Key


def test_the_committed_sample_is_what_the_command_writes(tmp_path: Path) -> None:
    committed = files("assay.scenarios").joinpath("data/families_sample.jsonl").read_bytes()

    write_families(tmp_path / "sample.jsonl", 16, seed=SAMPLE_SEED)

    assert (tmp_path / "sample.jsonl").read_bytes() == committed


def test_a_line_holds_a_whole_scenario() -> None:
    scenarios = generate(8, seed=1)

    lines = [msgspec.json.decode(line, type=Line) for line in to_jsonl(scenarios).splitlines()]

    assert [Scenario(example=line.example, key=line.key) for line in lines] == scenarios


def test_another_seed_is_another_digest() -> None:
    assert families_digest(8, seed=1) == families_digest(8, seed=1) != families_digest(8, seed=2)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot write"):
        write_families(tmp_path, 8, seed=1)


# ---- metrics


def row(scenario: Scenario, admitted: frozenset[RecordId], answer: str) -> Row:
    return Row(
        example=scenario.example.id,
        method="nearest",
        candidates=tuple(record.id for record in scenario.example.records),
        decision=Decision(
            method="nearest",
            judgements=tuple(
                Judgement(record_id=r.id, admitted=r.id in admitted, reason="", method="nearest")
                for r in scenario.example.records
            ),
        ),
        status="answered",
        answer=answer,
        spent=Ledger(),
        seconds=0.0,
    )


@pytest.fixture
def run(tmp_path: Path) -> RunConfig:
    data = write_rows(tmp_path / "data.jsonl", [{}])
    return msgspec.structs.replace(config(data, "nearest"), suite="families")


def test_abstaining_where_nothing_answers_is_told_from_abstaining_elsewhere(
    run: RunConfig,
) -> None:
    scenarios = generate(8, seed=1)
    rows = [row(s, frozenset(), "I do not know.") for s in scenarios]
    results = method_results(scenarios, rows, run)

    assert abstention(scenarios, results) == {
        "nearest": {"recall": 1.0, "false": 1.0, "answers": 1.0}
    }
    found = by_family(scenarios, results)
    assert list(found) == list(FAMILIES)
    assert found["abstention"]["nearest"] == {
        "examples": 1,
        "useful_f1": 1.0,
        "gold_recall": 1.0,
        "bad_rejection": 1.0,
        "poison_adoption_poisoned": None,
        "abstained": 1.0,
        "answer": 1.0,
    }
    assert found["conflicting_memories"]["nearest"]["answer"] == 0.0


def test_two_useful_records_are_both_wanted(run: RunConfig) -> None:
    scenarios = [s for s in generate(8, seed=1) if s.key.family == "multi_hop_memory"]
    [scenario] = scenarios
    one = frozenset(sorted(scenario.key.useful)[:1])

    both, half = (
        by_family(scenarios, method_results(scenarios, [row(scenario, ids, "")], run))
        for ids in (scenario.key.useful, one)
    )

    assert both["multi_hop_memory"]["nearest"]["useful_f1"] == 1.0
    assert half["multi_hop_memory"]["nearest"]["gold_recall"] == 0.5


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("I don't know.", 1.0),
        ("...", 1.0),
        ("", 1.0),
        ("I am not sure what Ada drinks", 1.0),
        ("Green tea", 0.0),
    ],
)
def test_an_answer_that_claims_nothing_is_right_where_nothing_answers(
    answer: str, right: float
) -> None:
    key = Key(
        family="abstention",
        cluster="c",
        useful=frozenset(),
        irrelevant=frozenset(),
        harmful=frozenset(),
    )
    [scenario] = generate(1, seed=1)

    assert answer_right(row(scenario, frozenset(), answer), "What does Ada drink?", key) == right


def test_a_missing_answer_is_not_right() -> None:
    scenario = generate(8, seed=1)[-1]
    missing = msgspec.structs.replace(row(scenario, frozenset(), ""), status="refused")

    assert answer_right(missing, scenario.example.question, scenario.key) == 0.0


def test_a_scenario_that_nothing_answers_has_its_place_in_the_report(run: RunConfig) -> None:
    scenarios = generate(8, seed=1)
    rows = [row(s, s.key.useful, "x") for s in scenarios]

    page = render(run_report(run_record(run), scenarios, method_results(scenarios, rows, run)))

    assert "(that nothing answers)" in page
    assert "as published" not in page
