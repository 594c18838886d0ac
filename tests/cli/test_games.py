"""``assay replay games`` and ``assay faults build`` as typed by a user."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from assay.cli import main

FIGURES = {"evaluations", "rounds", "recall", "complete", "exact", "recovery", "extra", "silent"}


def run(arguments: Sequence[str]) -> int:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    return int(caught.value.code or 0)


def test_games_print_one_json_object_with_the_figures_of_each_method(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = run(
        "replay games --size 8 --seed 3 --k 5 --k 6 --workers 1 --method pivot --method meclear "
        "--json".split()
    )

    result = json.loads(capsys.readouterr().out)
    assert code == 0
    assert set(result["methods"]) == {"pivot", "meclear"}
    assert set(result["methods"]["pivot"]) >= FIGURES
    assert result["methods"]["pivot"]["recovery"] == 1
    assert set(result["by_k"]) == {"5", "6"}


def test_games_keep_a_page_and_tables_where_asked(tmp_path: Path) -> None:
    code = run(f"replay games --size 4 --workers 1 --method pivot --out {tmp_path / 'out'}".split())

    assert code == 0
    assert {file.name for file in (tmp_path / "out").iterdir()} == {
        "games.json",
        "games.md",
        "games.html",
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--method pivit", "did you mean 'pivot'"),
        ("--answers noisy", "unknown answers 'noisy'"),
        ("--size 0", "--size must be at least 1"),
        ("--concurrency 3", "--concurrency must be one of"),
        ("--sd nan --answers gaussian", "--sd must be positive"),
        ("--k 0", "--k must be at least 1"),
        ("--k 5 --k -1", "--k must be at least 1"),
        ("--k 1 --method pivot", "raise --k"),
        (f"--out {__file__}", "--out must be a folder"),
    ],
)
def test_unusable_input_is_one_line_and_exit_code_2(
    options: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["replay", "games", "--workers", "1", *options.split()])

    error = capsys.readouterr().err
    assert code == 2
    assert message in error
    assert error.count("\n") == 1


def test_building_faults_from_a_missing_file_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["faults", "build", "--data", str(tmp_path / "no.json"), "--out", str(tmp_path)])

    assert code == 2
    assert "cannot read" in capsys.readouterr().err


def test_building_faults_into_a_file_is_refused_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = run(["faults", "build", "--data", "no.json", "--out", __file__])

    error = capsys.readouterr().err
    assert (code, error.count("\n")) == (2, 1)
    assert "--out must be a folder" in error
