"""``assay replay locomo-faults`` as typed by a user."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from assay.cli import main
from assay.scenarios.faults_cohort import read_cohort
from assay.scenarios.locomo_build import build, write
from assay.scenarios.locomo_data import Locomo, load
from assay.stores.embeddings import HashingEmbedder

from .support_faults import FACTS, write_benchmark

FIGURES = {"evaluations", "rounds", "recall", "complete", "exact", "recovery", "extra"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))


@pytest.fixture
def replaying(tmp_path: Path) -> list[str]:
    """The command over a small benchmark and a model that any wrong record misleads."""
    rules = [
        {"question": name, "prompt": f"a {thing}", "reply": f"a {thing}"}
        for name, right, wrong in FACTS
        for thing in (wrong, right)
    ]
    script = tmp_path / "script.jsonl"
    script.write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    data = write_benchmark(tmp_path / "data")
    return f"replay locomo-faults --data {data} --model scripted:{script} --utility answer".split()


def run(arguments: Sequence[str]) -> int:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    return int(caught.value.code or 0)


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_json_is_one_object_with_what_was_verified_and_each_methods_figures(
    replaying: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = run([*replaying, "--seed", "3", "--method", "pivot", "--method", "meclear", "--json"])

    found = printed(capsys)
    assert code == 0
    assert (found["suite"], found["seed"], found["cases"], found["verified"]) == (
        "locomo-faults",
        3,
        9,
        6,
    )
    assert found["by_structure"]["joint"]["why_not"] == {"one part alone misleads": 3}
    assert list(found["methods"]) == ["pivot", "meclear"]
    assert set(found["methods"]["pivot"]) >= {*FIGURES, "intervals", "structures"}
    assert found["methods"]["pivot"]["recovery"] == 1
    assert found["published"]["meclear"]["recall"] == 0.859


def test_every_method_runs_blind_and_a_table_is_printed(
    replaying: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = run([*replaying, "--protocol", "blind", "--embedder", "hashing", "--limit", "3"])

    out = capsys.readouterr().out
    assert code == 0
    assert "Verified by the model" in out
    assert "llm_filter" in out


def test_the_plain_scripted_model_gives_likelihoods(
    replaying: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    data = replaying[replaying.index("--data") + 1]

    code = run(
        f"replay locomo-faults --data {data} --model scripted --structure direct --json".split()
    )

    found = printed(capsys)
    assert code == 0
    assert (found["utility"], found["cases"]) == ("contrast", 3)


def test_the_same_command_goes_on_and_pays_nothing_twice(
    replaying: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*replaying, "--out", str(tmp_path / "out"), "--method", "pivot", "--json"]
    run([*command, "--limit", "3"])
    first = printed(capsys)

    run(command)
    whole = printed(capsys)
    run(command)
    again = printed(capsys)

    assert (first["cases"], whole["cases"]) == (3, 9)
    assert whole == again
    assert {file.name for file in (tmp_path / "out").iterdir()} == {
        "faults.json",
        "cases.jsonl",
        "results.json",
        "results.md",
        "report.html",
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--method pivit", "did you mean 'pivot'"),
        ("--structure dirct", "did you mean 'direct'"),
        ("--protocol blnd", "did you mean 'blind'"),
        ("--utility answr", "did you mean 'answer'"),
        ("--bar 0.8", "--bar goes with --protocol blind only"),
        ("--concurrency 3", "--concurrency must be one of"),
        ("--data nowhere", "assay faults build --out DIR"),
    ],
)
def test_unusable_input_is_one_line_and_exit_code_2(
    replaying: list[str], options: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run([*replaying, *options.split()])

    error = capsys.readouterr().err
    assert code == 2
    assert message in error
    assert "Traceback" not in error


def test_a_folder_without_cases_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_benchmark(tmp_path / "empty", [])

    code = run(f"replay locomo-faults --data {data} --model scripted".split())

    assert code == 2
    assert "holds no natural case" in capsys.readouterr().err


async def test_what_the_build_writes_can_be_replayed(shared_data: Path, tmp_path: Path) -> None:
    data = load(shared_data / "locomo10.json")
    small = Locomo(conversations=data.conversations[:1], defects={})
    write(await build(small, seed=7, embedder=HashingEmbedder()), small, tmp_path)

    cohort = read_cohort(tmp_path)

    assert cohort.cases
    assert list(cohort.turns) == [small.conversations[0].id]
