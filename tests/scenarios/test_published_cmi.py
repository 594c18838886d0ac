"""The recorded run is reproduced decision by decision, and so are the study's tables."""

from pathlib import Path

import pytest

from assay.errors import ScenarioError
from assay.scenarios.published_cmi import (
    Diagnosis,
    label_first,
    no_labels_argmax,
    read_diagnostics,
    read_keys,
    recorded_rule,
    replay_published,
)
from assay.scenarios.published_tables import Tables, published_tables
from assay.scenarios.statistics import Interval
from assay.stores.records import RecordId


@pytest.fixture(scope="module")
def tables(shared_data: Path) -> Tables:
    keys = read_keys(shared_data / "causal_locomo.jsonl")
    diagnoses = read_diagnostics(shared_data / "cmi_diagnostics.csv")
    return published_tables(shared_data / "cmi_scores.jsonl", keys, diagnoses, seed=7)


def test_all_261_recorded_decisions_are_reproduced(shared_data: Path) -> None:
    keys = read_keys(shared_data / "causal_locomo.jsonl")

    replayed = replay_published(keys, read_diagnostics(shared_data / "cmi_diagnostics.csv"), seed=7)

    assert (replayed.decisions, replayed.reproduced, replayed.examples) == (261, 261, 87)
    figures = {
        name: (round(_mean(rule.metrics["useful_f1"]), 4), rule.poisoned, rule.poisonable)
        for name, rule in replayed.methods.items()
    }
    assert figures == {
        "cmi": (0.8755, 0, 54),
        "cmi_no_labels": (0.8372, 12, 54),
        "cmi_no_stability": (0.9249, 0, 54),
        "cmi_no_labels_argmax": (0.9349, 1, 54),
        "label_first": (0.9464, 0, 54),
    }
    assert round(_mean(replayed.methods["cmi"].metrics["bad_rejection"]), 3) == 0.990


@pytest.mark.parametrize(
    ("agent", "printed"),
    [
        ("cmi", (0.846, 0.816, 0.875, 0.990, 0.000, 0.943)),
        ("reflection_memory", (0.845, 0.793, 0.486, 0.557, 0.540, 3)),
        ("vector_memory", (0.839, 0.782, 0.501, 0.566, 0.609, 3)),
        ("graph_memory", (0.824, 0.759, 0.469, 0.550, 0.586, 3)),
        ("summary_memory", (0.723, 0.586, 0.308, 0.000, 0.621, 5.644)),
        ("full_history", (0.515, 0.218, 0.308, 0.000, 0.621, 5.644)),
        ("no_memory", (0.429, 0.034, 0.000, 1.000, 0.000, 0)),
    ],
)
def test_table_one_has_the_printed_digits(
    tables: Tables, agent: str, printed: tuple[float, ...]
) -> None:
    row = tables.agents[agent]

    found = (row.task, row.success, row.useful_f1, row.bad_rejection, row.poison, row.memories)

    assert [_mean(cell) for cell in found] == [pytest.approx(cell, abs=0.00052) for cell in printed]


def test_table_two_has_the_printed_digits(tables: Tables) -> None:
    by_family = {name: round(_mean(cell), 3) for name, cell in tables.families["cmi"].items()}

    assert by_family == {
        "temporal_memory_qa": pytest.approx(0.901, abs=0.001),
        "multi_evidence_memory_qa": 0.754,
        "inferential_memory_qa": 0.808,
        "factual_memory_qa": 0.985,
    }


def test_table_three_has_the_printed_digits(tables: Tables) -> None:
    found = {
        label: (round(_mean(row.utility), 3), round(_mean(row.stability), 3))
        for label, row in tables.diagnostics.items()
    }

    assert found == {
        "useful": (0.307, 0.027),
        "irrelevant": (-0.009, 0.0),
        "harmful": (-0.033, 0.001),
    }
    assert sum(row.candidates for row in tables.diagnostics.values()) == 261


def test_truncated_judge_answers_are_counted_as_missing(tables: Tables) -> None:
    full_history = tables.agents["full_history"]

    assert tables.judge_missing == 155
    assert full_history.judge_missing > 0
    assert _mean(full_history.task_judged) > _mean(full_history.task)


def test_the_rules_on_one_example_by_hand() -> None:
    rows = [
        Diagnosis(RecordId("h"), 0.9, 0.0, selected=False, harmful=True, label="harmful"),
        Diagnosis(RecordId("u"), 0.4, 0.0, selected=True, harmful=False, label="useful"),
        Diagnosis(RecordId("i"), 0.4, -0.1, selected=False, harmful=False, label="irrelevant"),
    ]

    assert recorded_rule(rows) == ["u"]
    assert no_labels_argmax(rows) == ["h"]
    assert label_first(rows) == ["u"]


def test_a_malformed_row_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "diagnostics.csv"
    path.write_text("example_id,memory_id,utility\nq1,m1,high\n")

    with pytest.raises(ScenarioError, match=r"line 2: expected example_id, memory_id, utility"):
        read_diagnostics(path)


def test_a_record_of_another_file_is_refused() -> None:
    row = Diagnosis(RecordId("m"), 0.1, 0.0, selected=True, harmful=False, label="useful")

    with pytest.raises(ScenarioError, match="speaks of example 'q9', which the data file does not"):
        replay_published({}, {"q9": [row]}, seed=7)


def _mean(interval: Interval) -> float:
    assert interval.mean is not None
    return interval.mean
