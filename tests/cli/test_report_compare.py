"""``assay report`` as a user runs it: two runs compared, and a run that has not finished."""

import json
from pathlib import Path

import pytest

from assay.cli import main

from .test_simulate import SMALL


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))


def assay(*arguments: object) -> object:
    with pytest.raises(SystemExit) as exit_:
        main([*map(str, arguments)])
    return exit_.value.code


def families(out: Path, *arguments: object) -> None:
    words = ("--size", 8, "--model", "scripted", "--embedder", "hashing", *arguments)
    assert assay("replay", "families", *words, "--out", out) == 0


def simulation(folder: Path, out: Path, *arguments: object) -> None:
    file = folder / "small.toml"
    file.write_text(SMALL)
    assert assay("simulate", file, "--workers", 1, "--out", out, *arguments) == 0


def test_two_benchmark_runs_are_compared_example_by_example(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    families(a, "--method", "vector", "--method", "full_history")
    families(b, "--method", "full_history", "--method", "no_memory", "--k", 3)
    capsys.readouterr()

    assert assay("report", "compare", a, b, "--json", "--out", tmp_path / "c.html") == 0

    result = json.loads(capsys.readouterr().out)
    rows = {(row["method"], row["measure"]): row for row in result["differences"]}
    assert {method for method, _ in rows} == {"full_history"}
    poison = rows["full_history", "poison_adoption_poisoned"]
    assert poison["difference"] == pytest.approx(poison["a"] - poison["b"])
    assert poison["only_a"] >= poison["only_b"] == 0
    assert 0 < poison["p_mcnemar"] <= 1
    assert rows["full_history", "useful_f1"]["n"] == 8
    assert rows["full_history", "useful_f1"]["p_mcnemar"] is None
    assert result["resampled"] == "conversation"
    page = (tmp_path / "c.html").read_text()
    assert "two runs compared" in page
    assert "--k 3" in page


def test_two_simulations_are_compared_question_by_question_with_intervals_by_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    simulation(tmp_path, tmp_path / "a")
    simulation(tmp_path, tmp_path / "b", "--sessions", 8)
    capsys.readouterr()

    assert assay("report", "compare", tmp_path / "a", tmp_path / "b", "--json") == 0

    result = json.loads(capsys.readouterr().out)
    assert result["resampled"] == "user"
    assert {row["difference"] for row in result["differences"]} == {0.0}
    accuracy = [row for row in result["differences"] if row["measure"] == "accuracy"]
    assert [row["method"] for row in accuracy] == ["careful", "no guard"]
    assert accuracy[0]["p_sign_flip"] == 1.0


def test_one_method_each_is_compared_under_both_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    families(tmp_path / "a", "--method", "vector")
    families(tmp_path / "b", "--method", "full_history")
    capsys.readouterr()

    assert assay("report", "compare", tmp_path / "a", tmp_path / "b") == 0

    told = capsys.readouterr().out
    assert "vector" in told
    assert "full_history" in told


def test_different_suites_are_refused_with_what_was_expected_and_what_came(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    families(tmp_path / "a", "--method", "vector")
    simulation(tmp_path, tmp_path / "b")
    capsys.readouterr()

    assert assay("report", "compare", tmp_path / "a", tmp_path / "b") == 2

    said = capsys.readouterr().err
    assert "expected suite 'families'" in said
    assert "got 'simulation small'" in said


def test_other_data_and_runs_without_a_common_method_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    families(tmp_path / "a", "--method", "vector", "--method", "full_history")
    families(tmp_path / "b", "--method", "vector", "--seed", 8)
    families(tmp_path / "c", "--method", "no_memory")

    assert assay("report", "compare", tmp_path / "a", tmp_path / "b") == 2
    assert "expected data 'sha256" in capsys.readouterr().err
    assert assay("report", "compare", tmp_path / "a", tmp_path / "c") == 2
    assert "expected a method that both runs have" in capsys.readouterr().err


def test_a_folder_without_a_run_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert assay("report", "compare", tmp_path, tmp_path) == 2

    assert "expected run.json or simulation.json" in capsys.readouterr().err


def test_a_run_of_another_kind_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "games.json").write_text("{}")

    assert assay("report", "show", tmp_path) == 2

    assert "holds a run of games, which has a report of its own" in capsys.readouterr().err


@pytest.mark.parametrize("command", [("show",), ("compare",)])
def test_a_run_folder_without_results_says_how_to_get_some(
    command: tuple[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a"
    families(out, "--method", "vector")
    (out / "decisions.jsonl").unlink()
    folders = [out] * (1 + (command[0] == "compare"))

    assert assay("report", *command, *folders) == 2

    said = capsys.readouterr().err
    assert "go on with" in said
    assert str(out) in said


def test_a_run_that_has_not_finished_says_so_and_shows_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a"
    families(out, "--method", "vector", "--method", "full_history")
    kept = (out / "decisions.jsonl").read_bytes().splitlines(keepends=True)[:7]
    (out / "decisions.jsonl").write_bytes(b"".join(kept))
    capsys.readouterr()

    assert assay("report", "show", out) == 0

    assert "7 of 16 decisions are there" in " ".join(capsys.readouterr().out.split())
    page = (out / "report.html").read_text()
    assert "This run has not finished: 7 of 16 decisions are there." in page
    assert "3 of 8 examples" in page


def test_a_benchmark_that_fails_half_way_leaves_a_page_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cassette, out = tmp_path / "answers.jsonl", tmp_path / "out"
    words = ["replay", "families", "--embedder", "hashing", "--method", "vector"]
    assert assay(*words, "--model", "scripted", "--size", 3, "--cassette", cassette) == 0
    # Without the answers that were kept there, the cassette is all there is.
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "elsewhere"))

    assert assay(*words, "--model", f"cassette:{cassette}", "--size", 8, "--out", out) == 2

    assert "This run has not finished: 3 of 8" in (out / "report.html").read_text()
