"""``assay replay jointcorebench --stage model`` from the command line."""

import json
from pathlib import Path

import pytest

from assay.cli import main

SCRIPT = """
[[rule]]
prompt = "Condition: authorization is ALLOW(.|\\n)*authorization=ALLOW"
reply = "YES"

[[rule]]
reply = "NO"
"""


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "cache"))


@pytest.fixture
def script(tmp_path: Path) -> str:
    file = tmp_path / "labels.toml"
    file.write_text(SCRIPT.replace("\\n", "\\\\n"), encoding="utf-8")
    return f"scripted:{file}"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(("replay", "jointcorebench", *arguments))
    output = capsys.readouterr()
    return int(stopped.value.code or 0), output.out, output.err


def test_the_model_stage_prints_one_json_object(
    capsys: pytest.CaptureFixture[str], script: str, tmp_path: Path
) -> None:
    page, folder = tmp_path / "page.md", tmp_path / "run"
    options = (
        "--stage", "model", "--model", script, "--subset", "1", "--representation", "all",
        "--interface", "boolean", "--out", str(folder), "--markdown", str(page), "--json",
    )  # fmt: skip

    code, out, _ = run(capsys, *options)
    again, repeated, _ = run(capsys, *options)

    report = json.loads(out)
    assert (code, again) == (0, 0)
    assert json.loads(repeated) == report
    assert (report["stage"], report["seed"], report["tasks"]) == ("model", 26082901, 1)
    assert report["scoring"] == "teacher forcing"
    assert [cell["representation"] for cell in report["cells"]] == [
        "unknown", "deletion", "pending", "counterfactual",
    ]  # fmt: skip
    assert report["cells"][0]["methods"]["jointcore"]["min_cost"][0] == 1.0
    assert "--representation counterfactual" in page.read_text(encoding="utf-8")


def test_the_model_stage_shows_tables(capsys: pytest.CaptureFixture[str], script: str) -> None:
    options = ("--stage", "model", "--model", script, "--subset", "1")

    code, out, _ = run(capsys, *options, "--interface", "ab", "--interface", "direct")

    assert code == 0
    assert "A/B labels, omitted records by unknown" in out
    assert "Archive fallback" in out
    assert "--subset 1" in out


def test_a_folder_of_another_run_is_not_touched(
    capsys: pytest.CaptureFixture[str], script: str, tmp_path: Path
) -> None:
    options = ("--stage", "model", "--model", script, "--out", str(tmp_path / "run"))
    run(capsys, *options, "--subset", "1")

    code, out, err = run(capsys, *options, "--subset", "2")

    assert (code, out) == (2, "")
    assert "holds a run of another configuration" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--stage model asks a model; pass --model"),
        (("--model", "lokal"), "unknown model 'lokal'"),
        (
            ("--model", "scripted", "--interface", "bool"),
            "unknown interface 'bool'; did you mean 'boolean'",
        ),
        (("--model", "scripted", "--representation", "none"), "unknown representation 'none'"),
        (
            ("--model", "scripted", "--method", "jointcor"),
            "unknown method 'jointcor'; did you mean 'jointcore'",
        ),
        (("--model", "scripted", "--n", "16"), "--n does not go with --stage model"),
    ],
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = run(capsys, "--stage", "model", *arguments)

    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_model_does_not_go_with_the_exact_stage(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "--model", "scripted")

    assert code == 2
    assert "--model does not go with --stage exact" in err
