"""``assay demo`` as a user runs it, with the scripted model."""

from pathlib import Path

import pytest

from assay.cli import main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path


def demo(*arguments: object) -> object:
    fast = ("demo", "--model", "scripted", "--embedder", "hashing", "--guard", "cmi")
    with pytest.raises(SystemExit) as exit_:
        main([*fast, *map(str, arguments)])
    return exit_.value.code


def test_every_decision_a_closing_table_and_a_report_come_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo("--out", tmp_path / "out") == 0

    told = capsys.readouterr().out
    assert told.count("  = ") == 13
    assert "+ admitted" in told
    assert "- withheld" in told
    assert "evaluations, 0 of them cached" in told
    assert "planted memory adopted" in told
    assert "assay chat --bank" in told
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000


def test_a_second_demo_leaves_the_first_one_alone(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demo()
    demo()

    reports = sorted(path.parent.name for path in home.glob("assay/*/report.html"))
    assert reports == ["demo", "demo-2"]
    assert str(home / "assay" / "demo-2" / "report.html") in capsys.readouterr().out


def test_an_unknown_guard_is_named_before_anything_is_made(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo("--guard", "panle") == 2

    assert "panel" in capsys.readouterr().err
    assert list(home.iterdir()) == []
