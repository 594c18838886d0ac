"""``assay replay causal-locomo`` and ``assay replay --resume`` as a user runs them."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.cli import main

FIGURES = [
    "useful_f1", "gold_recall", "useful_precision", "bad_rejection", "poison_adoption",
    "poison_adoption_poisoned", "avg_memories", "evaluations", "live", "rounds", "tokens", "seconds",
]  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(_row(number)) + "\n" for number in range(3)))
    return path


def _row(number: int) -> dict[str, object]:
    name, true, false = (
        ("Ada", "harp", "lute"),
        ("Bea", "kayak", "canoe"),
        ("Cal", "oats", "rye"),
    )[number]
    bank = [
        {"memory_id": "gold_00", "content": f"{name} bought a {true}.", "label": "useful"},
        {"memory_id": "irr_00", "content": "The market opens on Saturdays.", "label": "irrelevant"},
        {"memory_id": "harm_00", "content": f"{name} bought a {false}.", "label": "harmful"},
    ]
    return {
        "example_id": f"conv-{number}_qa",
        "source_sample_id": f"conv-{number}",
        "split_group_id": f"conv-{number}",
        "task_family": "factual_memory_qa",
        "past_sessions": [
            {
                "session_id": "s1",
                "timestamp": 1,
                "date_time": "1:56 pm on 8 May, 2023",
                "content": f"D1:1 {name}: I bought a {true} yesterday.",
            }
        ],
        "memory_bank": bank,
        "current_task": {"instruction": f"What did {name} buy?"},
        "gold_memory_ids": ["gold_00"],
        "scoring_criteria": {"expected_answer": true},
    }


def run(*arguments: object) -> object:
    with pytest.raises(SystemExit) as exit_:
        main([str(argument) for argument in arguments])
    return exit_.value.code


def replay(data: Path, *arguments: object) -> object:
    base = ("replay", "causal-locomo", "--data", data, "--model", "scripted")
    small = ("--embedder", "hashing", "--k", "3")
    return run(*base, *small, "--method", "vector", "--method", "cmi", *arguments)


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def untimed(result: dict[str, Any]) -> dict[str, Any]:
    for figures in result["methods"].values():
        figures["seconds"] = 0
    return result


def test_json_is_one_object_of_the_documented_shape(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(data, "--json", "--limit", 2, "--seed", 9) == 0

    found = printed(capsys)

    assert list(found)[:6] == ["suite", "protocol", "model", "seed", "examples", "methods"]
    assert (found["suite"], found["protocol"], found["model"]) == (
        "causal-locomo",
        "blind",
        "scripted",
    )
    assert (found["seed"], found["examples"]) == (9, 2)
    assert list(found["methods"]) == ["vector", "cmi"]
    assert [list(figures) for figures in found["methods"].values()] == [FIGURES, FIGURES]


def test_again_with_the_same_seed_nothing_is_live_and_nothing_else_changes(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replay(data, "--json")
    first = printed(capsys)["methods"]["cmi"]
    replay(data, "--json")
    again = printed(capsys)["methods"]["cmi"]

    assert first["live"] > 0
    assert again["live"] == 0
    same = [name for name in FIGURES if name not in ("live", "tokens", "seconds")]
    assert [first[name] for name in same] == [again[name] for name in same]


def test_without_json_a_table_with_seed_model_and_the_command_is_printed(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(data, "--out", tmp_path / "out") == 0

    out = capsys.readouterr().out
    assert "seed 7, model scripted" in out.replace("\n", " ")
    assert "vector" in out
    assert "report: " in out
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names >= {"run.json", "decisions.jsonl", "journal.jsonl", "report.html"}


def test_the_printed_command_does_the_same_run(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replay(data, "--json", "--out", tmp_path / "out")
    first = printed(capsys)
    command = json.loads((tmp_path / "out" / "run.json").read_text())["command"]

    assert run(*shlex.split(command)[1:]) == 0

    again = printed(capsys)
    assert first["methods"]["cmi"]["useful_f1"] == again["methods"]["cmi"]["useful_f1"]


def test_resuming_a_finished_run_prints_its_result_again(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replay(data, "--json", "--out", tmp_path / "out")
    first = printed(capsys)

    assert run("replay", "--resume", tmp_path / "out") == 0

    assert printed(capsys) == first


@pytest.mark.parametrize("signal_", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_was_stopped_goes_on_to_the_same_result(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], signal_: signal.Signals
) -> None:
    stop = tmp_path / "stop.py"
    stop.write_text(
        "import os, sys\n"
        "from assay.cli import main\n"
        "from assay.scenarios.folder import RunFolder\n"
        "append = RunFolder.append\n"
        "async def once(self, row):\n"
        "    await append(self, row)\n"
        f"    os.kill(os.getpid(), {int(signal_)})\n"
        "RunFolder.append = once\n"
        "main(sys.argv[1:])\n"
    )
    command = ["replay", "causal-locomo", "--data", data, "--model", "scripted", "--k", "3"]
    command += ["--embedder", "hashing", "--method", "vector", "--method", "cmi", "--json"]
    environment = os.environ | {"XDG_DATA_HOME": str(tmp_path / "other")}
    run(*command)
    whole = printed(capsys)

    stopped = subprocess.run(  # noqa: S603  # our own script
        [sys.executable, stop, *map(str, command), "--out", tmp_path / "out"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    os.environ["XDG_DATA_HOME"] = environment["XDG_DATA_HOME"]
    kept = (tmp_path / "out" / "decisions.jsonl").read_bytes().count(b"\n")
    assert run("replay", "--resume", tmp_path / "out") == 0

    assert kept == 1
    assert untimed(printed(capsys)) == untimed(whole)
    told = {signal.SIGKILL: (-9, ""), signal.SIGINT: (130, "replay --resume")}[signal_]
    assert stopped.returncode == told[0]
    assert told[1] in stopped.stderr


def test_a_cassette_replays_the_run_offline(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    replay(data, "--json", "--cassette", tmp_path / "tape.jsonl")
    first = printed(capsys)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "elsewhere"))

    assert replay(data, "--json", "--model", f"cassette:{tmp_path / 'tape.jsonl'}") == 0

    again = printed(capsys)
    assert first["methods"]["cmi"]["useful_f1"] == again["methods"]["cmi"]["useful_f1"]


def test_a_question_that_is_not_on_the_cassette_fails_with_the_nearest(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    replay(data, "--json", "--limit", 1, "--cassette", tmp_path / "tape.jsonl")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "elsewhere"))
    capsys.readouterr()

    assert replay(data, "--json", "--model", f"cassette:{tmp_path / 'tape.jsonl'}") == 2

    assert "nearest" in capsys.readouterr().err


# ---- bad input


def test_interrupted_before_the_run_is_kept_it_promises_nothing(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_config: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("assay.cli.replay.begin.load", interrupted)

    assert replay(data, "--out", tmp_path / "out") == 130
    assert capsys.readouterr().err == "assay: interrupted\n"


BAD = {
    "a missing file": (("--data", "gone.jsonl"), "no data file 'gone.jsonl'"),
    "an unknown method": (("--method", "cmy"), "did you mean 'cmi'"),
    "an unknown model": (("--model", "lokal"), "did you mean 'local'"),
    "an unknown protocol": (("--protocol", "blnd"), "did you mean 'blind'"),
    "an unknown policy": (("--on-undecided", "withold"), "did you mean 'withhold'"),
    "K above the bank": (("--k", "4"), "K is 4, but the bank of 'conv-0_qa' holds 3 records"),
    "diagnostics, blind": (("--from-diagnostics", "x.csv"), "--protocol published only"),
    "published, nothing": (("--protocol", "published"), "pass --from-diagnostics FILE"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_unusable_input_is_one_line_and_exit_code_2(
    data: Path,
    arguments: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert replay(data, *arguments) == 2

    error = capsys.readouterr().err
    assert message.replace("'", "") in error.replace("'", "")
    assert error.count("\n") == 1


@pytest.mark.parametrize("arguments", [("--limit", "0"), ("--k", "0"), ("--concurrency", "0")])
def test_a_count_below_1_is_a_usage_error(
    data: Path, arguments: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(data, *arguments) == 2
    assert arguments[0] in capsys.readouterr().err


def test_an_unknown_suite_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("replay", "causal-lokomo") == 2
    assert "causal-locomo" in capsys.readouterr().err


def test_a_malformed_line_is_named(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data.write_text(data.read_text() + '{"example_id": 3}\n')

    assert replay(data) == 2

    assert "data.jsonl, line 4: expected `str`, got `int`" in capsys.readouterr().err


def test_data_that_changed_since_the_run_began_is_refused(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replay(data, "--out", tmp_path / "out")
    data.write_text(data.read_text().replace("harp", "drum"))
    capsys.readouterr()

    assert run("replay", "--resume", tmp_path / "out") == 2

    assert "has changed since the run began" in capsys.readouterr().err


def test_resuming_nothing_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("replay", "--resume", tmp_path) == 2
    assert "expected the file run.json" in capsys.readouterr().err


def test_replay_alone_shows_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("replay") == 2
    shown = capsys.readouterr()
    assert "causal-locomo" in shown.out + shown.err


def test_the_published_protocol_meets_the_recording(
    shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(
        "replay", "causal-locomo", "--data", shared_data / "causal_locomo.jsonl",
        "--protocol", "published", "--from-diagnostics", shared_data / "cmi_diagnostics.csv",
        "--json",
    )  # fmt: skip

    found = printed(capsys)
    assert code == 0
    assert (found["reproduced"], found["decisions"]) == (261, 261)
    assert found["methods"]["cmi"]["useful_f1"] == pytest.approx(0.8755, abs=5e-5)
    assert found["methods"]["cmi_no_labels"]["poisoned"] == 12
