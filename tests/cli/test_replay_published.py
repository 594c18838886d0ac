"""``assay replay causal-locomo --protocol published`` as a user runs it."""

import json
from pathlib import Path
from typing import Any

import pytest

from assay.cli import main


def run(*arguments: object) -> object:
    with pytest.raises(SystemExit) as exit_:
        main([str(argument) for argument in arguments])
    return exit_.value.code


def published(shared: Path, *arguments: object) -> object:
    return run(
        "replay",
        "causal-locomo",
        "--data",
        shared / "causal_locomo.jsonl",
        "--protocol",
        "published",
        "--from-diagnostics",
        shared / "cmi_diagnostics.csv",
        *arguments,
    )


def test_all_named_rules_come_with_intervals(
    shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert published(shared_data, "--json") == 0

    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (found["decisions"], found["reproduced"]) == (261, 261)
    assert {name: round(m["useful_f1"], 4) for name, m in found["methods"].items()} == {
        "cmi": 0.8755,
        "cmi_no_labels": 0.8372,
        "cmi_no_stability": 0.9249,
        "cmi_no_labels_argmax": 0.9349,
        "label_first": 0.9464,
    }
    low, high = found["intervals"]["cmi"]["useful_f1"]
    assert low < 0.8755 < high
    assert "tables" not in found


def test_scores_give_the_tables_and_answers_the_two_scorers(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "docs" / "published.md"
    options = ["--scores", shared_data / "cmi_scores.jsonl"]
    options += ["--answers", shared_data / "cmi_answers_16.jsonl"]
    options += ["--answer-keys", shared_data / "causal_locomo_16.jsonl"]

    assert published(shared_data, *options, "--markdown", page, "--out", tmp_path, "--json") == 0

    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["tables"]["judge_missing"] == 155
    assert round(found["tables"]["agents"]["cmi"]["task"]["mean"], 3) == 0.846
    assert found["tables"]["agents"]["cmi"]["task_judged"]["mean"] > 0.9
    assert found["scorers"]["reproduced"] == 112
    assert "155 judge answers were cut" in page.read_text()
    assert "Two scorers" in (tmp_path / "report.html").read_text()


def test_the_page_holds_no_text_of_the_data(shared_data: Path, tmp_path: Path) -> None:
    answers, page = shared_data / "cmi_answers_16.jsonl", tmp_path / "published.md"

    published(shared_data, "--answers", answers, "--markdown", page, "--json")

    rows = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    text = page.read_text()
    assert [
        row for row in rows if len(row["final_answer"]) > 20 and row["final_answer"] in text
    ] == []


def test_without_json_every_table_is_printed(
    shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert published(shared_data, "--scores", shared_data / "cmi_scores.jsonl") == 0

    out = capsys.readouterr().out
    assert "261 of 261 recorded decisions reproduced; seed 7" in out
    assert "(table 3)" in out


@pytest.mark.parametrize("option", ["--scores", "--answers", "--answer-keys", "--markdown"])
def test_files_of_the_recording_do_not_go_with_the_blind_protocol(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("replay", "causal-locomo", "--data", "x.jsonl", option, "y") == 2
    assert f"{option} goes with --protocol published only" in capsys.readouterr().err
