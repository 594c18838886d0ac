"""``assay replay families`` and the live published protocol as a user runs them."""

import json
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from assay.cli import main
from assay.scenarios.families import FAMILIES

SCRIPTED = ("--model", "scripted", "--embedder", "hashing", "--method", "vector", "--method", "cmi")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))


def run(*arguments: object) -> object:
    with pytest.raises(SystemExit) as exit_:
        main([str(argument) for argument in arguments])
    return exit_.value.code


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_json_is_one_object_with_every_family(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("replay", "families", "--size", 8, "--seed", 3, *SCRIPTED, "--json") == 0

    found = printed(capsys)
    assert (found["suite"], found["protocol"], found["seed"], found["examples"]) == (
        "families",
        "blind",
        3,
        8,
    )
    assert list(found["methods"]) == ["vector", "cmi"]
    assert list(found["by_family"]) == list(FAMILIES)
    assert set(found["abstention"]["cmi"]) == {"recall", "false", "answers"}
    # 2K + 1 interventions in two rounds and at most one more for the answer
    assert found["methods"]["cmi"]["rounds"] <= 3


def test_a_table_is_printed_with_the_command_that_repeats_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run("replay", "families", "--size", 8, *SCRIPTED, "--out", tmp_path / "out") == 0

    out = capsys.readouterr().out
    command = json.loads((tmp_path / "out" / "run.json").read_text())["command"]
    assert "how often nothing was selected" in out
    assert "abstention" in out
    assert shlex.split(command)[:6] == ["assay", "replay", "families", "--size", "8", "--seed"]
    assert run(*shlex.split(command)[1:], "--json") == 0


def test_a_finished_run_is_resumed_to_the_same_result(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run("replay", "families", "--size", 8, *SCRIPTED, "--out", tmp_path / "out", "--json")
    first = printed(capsys)

    assert run("replay", "--resume", tmp_path / "out") == 0

    assert printed(capsys) == first


def test_another_generator_does_not_go_on_with_a_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run("replay", "families", "--size", 8, *SCRIPTED, "--out", tmp_path / "out", "--json")
    path = tmp_path / "out" / "run.json"
    path.write_text(path.read_text().replace('"limit": 8', '"limit": 9'))

    assert run("replay", "--resume", tmp_path / "out") == 2

    assert "the generator of the families has changed" in capsys.readouterr().err


def test_write_gives_the_committed_sample_and_runs_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "deep" / "sample.jsonl"

    assert run("replay", "families", "--size", 16, "--seed", 5, "--write", path) == 0

    sample = files("assay.scenarios").joinpath("data/families_sample.jsonl").read_bytes()
    assert path.read_bytes() == sample
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--size", "0"), "size"),
        (("--k", "6"), "--k"),
        (("--method", "cmy"), "did you mean cmi"),
        (("--method", "cmi_oracle"), "no guard may see"),
        (("--on-undecided", "withold"), "did you mean 'withhold'"),
    ],
)
def test_unusable_input_is_refused(
    arguments: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("replay", "families", *arguments) == 2
    assert told in capsys.readouterr().err


# ---- the oracle


def row() -> dict[str, object]:
    return {
        "example_id": "conv-1_qa",
        "source_sample_id": "conv-1",
        "split_group_id": "conv-1",
        "task_family": "factual_memory_qa",
        "past_sessions": [
            {
                "session_id": "s1",
                "timestamp": 1,
                "date_time": "1:56 pm on 8 May, 2023",
                "content": "D1:1 Ada: I bought a harp.",
            }
        ],
        "memory_bank": [
            {"memory_id": "g", "content": "Ada bought a harp.", "label": "useful"},
            {"memory_id": "h", "content": "Ada bought a lute.", "label": "harmful"},
        ],
        "current_task": {"instruction": "What did Ada buy?"},
        "gold_memory_ids": ["g"],
        "scoring_criteria": {"expected_answer": "harp"},
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps(row()) + "\n")
    return path


def oracle(data: Path, protocol: str, *more: object) -> object:
    small = ("--model", "scripted", "--embedder", "hashing", "--k", "2", *more)
    named = ("--protocol", protocol, "--method", "cmi_oracle")
    return run("replay", "causal-locomo", "--data", data, *named, *small)


def test_the_oracle_runs_live_under_the_published_protocol(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert oracle(data, "published", "--json", "--out", tmp_path / "out") == 0

    found = printed(capsys)
    assert found["protocol"] == "published"
    assert found["methods"]["cmi_oracle"]["useful_f1"] == 1.0
    assert found["methods"]["cmi_oracle"]["poison_adoption"] == 0.0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "No selector saw" not in page
    assert "cmi_oracle scores with the expected answer" in page


def test_the_oracle_cannot_be_reached_blind(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert oracle(data, "blind") == 2
    assert "no guard may see" in capsys.readouterr().err


def test_a_run_made_blind_by_hand_does_not_go_on_with_the_oracle(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    oracle(data, "published", "--json", "--out", tmp_path / "out")
    path = tmp_path / "out" / "run.json"
    path.write_text(path.read_text().replace('"protocol": "published"', '"protocol": "blind"'))
    (tmp_path / "out" / "decisions.jsonl").unlink()
    capsys.readouterr()

    assert run("replay", "--resume", tmp_path / "out") == 2

    assert "no guard may see" in capsys.readouterr().err


def test_the_published_serial_cost_stands_beside_ours(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(
        "replay", "causal-locomo", "--data", data, "--k", 2, "--perturbations", 2, "--tolerance", 0.1, *SCRIPTED
    ) == 0  # fmt: skip

    out = capsys.readouterr().out
    assert "cmi, as published" in out
    assert "--perturbations 2 --tolerance 0.1" in out.replace("\n", " ")
