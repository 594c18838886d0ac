"""``assay scenario`` as a user runs it."""

import json
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from assay.cli import main
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.wiring import open_runtime
from assay.scenarios.cases import trying
from assay.scenarios.cases.files import CaseFile, read
from assay.scenarios.cases.playing import Played
from assay.scenarios.cases.trying import tried
from assay.stores.records import Origin

Run = Callable[..., int]


@pytest.fixture
def assay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def run(*words: object) -> int:
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        return int(ended.value.code or 0)

    return run


async def _talk(folder: Path, model: str | ScriptedModel) -> None:
    async with open_runtime(model=model, bank=folder, embedder="hashing") as runtime:
        origin = Origin(writer="external", channel="web")
        await runtime.remember("u1", "The cat of u1 is called Rex.", origin=origin)
        first = runtime.session(user="u1", session_id="monday")
        await first.send("My cat is called Miso.")
        second = runtime.session(user="u1", session_id="tuesday")
        await second.send("What is my cat called?")
        await second.send("My dog is called Bello.")
        await second.send("What is my dog called?")


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    anyio.run(_talk, tmp_path / "bank", "scripted")
    return tmp_path / "bank"


def test_a_first_scenario_is_written_and_passes(
    assay: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = tmp_path / "first.toml"

    assert assay("scenario", "new", first) == 0
    assert assay("scenario", "run", first) == 0

    told = capsys.readouterr().out
    assert f"pytest --assay {first}" in told
    assert "1 of 1 scenarios passed" in told


def test_a_first_scenario_overwrites_nothing(
    assay: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = tmp_path / "first.toml"
    first.write_text("mine")

    assert assay("scenario", "new", first) == 2
    assert assay("scenario", "new", tmp_path / "first.yaml") == 2

    assert first.read_text() == "mine"
    assert "ends in .toml or .jsonl" in capsys.readouterr().err


def test_json_is_one_object_and_a_failure_is_exit_code_1(
    assay: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = tmp_path / "first.toml"
    assay("scenario", "new", first)
    first.write_text(
        first.read_text().replace('withheld = ["planted"]', "evaluations = 1"), "utf-8"
    )
    first.write_text(first.read_text().replace("evaluations = 8", ""), "utf-8")
    capsys.readouterr()

    assert assay("scenario", "run", first, "--json") == 1

    [scenario] = json.loads(capsys.readouterr().out)["scenarios"]
    assert scenario["passed"] is False
    assert [finding["rule"] for finding in scenario["findings"]] == ["evaluations"]
    assert scenario["turns"][0]["withheld"] == ["planted"]


def test_the_schema_goes_to_stdout_or_to_a_file(
    assay: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert assay("scenario", "schema") == 0
    printed = capsys.readouterr().out

    assert assay("scenario", "schema", "--out", tmp_path / "schema.json") == 0

    assert json.loads(printed)["$ref"] == "#/$defs/Case"
    assert (tmp_path / "schema.json").read_text("utf-8") == printed


@pytest.mark.parametrize("suffix", [".toml", ".jsonl"])
def test_a_conversation_becomes_a_test_that_passes(
    assay: Run, bank: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    out = tmp_path / f"tuesday{suffix}"
    words = ("--user", "u1", "--embedder", "hashing", "--out", out)

    assert assay("scenario", "from-journal", bank, *words) == 0

    assert "it passes as it stands" in capsys.readouterr().err
    [file] = read(out)
    assert [turn.say for turn in file.case.turn] == [
        "What is my cat called?",
        "My dog is called Bello.",
        "What is my dog called?",
    ]
    assert {memory.text for memory in file.case.memory} == {
        "The cat of u1 is called Rex.",
        "My cat is called Miso.",
    }
    assert file.case.turn[1].expect.remembers == {"my-dog-is-called": "My dog is called Bello."}
    assert file.case.turn[2].expect.admitted == ("my-dog-is-called",)
    assert tried(file).taken[2].turn.expect.answer_contains == ("My dog is called Bello.",)


def test_answers_the_bank_has_kept_become_the_cassette(
    assay: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = tmp_path / "bank", tmp_path / "real.toml"
    anyio.run(_talk, folder, ScriptedModel(identity="local:tiny@sha256:0123"))
    words = ("--user", "u1", "--session", "tuesday", "--turn", "0", "--embedder", "hashing")

    assert assay("scenario", "from-journal", folder, *words, "--out", out) == 0

    [file] = read(out)
    assert file.case.model == "local:tiny"
    assert len(file.case.turn) == 1
    assert file.cassette.exists()
    replayed = tried(file).spent
    assert (replayed.evaluations > 0, replayed.tokens) == (True, 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--user", "u2"), "user 'u2' has had no conversation"),
        (("--user", "u1", "--session", "tusday"), "did you mean 'tuesday'"),
        (("--user", "u1", "--turn", "tuesday/9"), "has no turn 'tuesday/9'; did you mean"),
        (("--user", ""), "user"),
    ],
)
def test_a_conversation_that_is_not_there_is_refused(
    assay: Run, bank: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    out = bank / "out.toml"

    code = assay("scenario", "from-journal", bank, *words, "--embedder", "hashing", "--out", out)

    assert code == 2
    assert said in capsys.readouterr().err
    assert not out.exists()


def test_a_folder_without_a_bank_is_refused_and_left_alone(
    assay: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--user", "u1", "--out", tmp_path / "out.toml")

    assert assay("scenario", "from-journal", tmp_path / "nothing", *words) == 2

    assert "no bank at" in capsys.readouterr().err
    assert not (tmp_path / "nothing").exists()


def test_an_interrupted_run_shows_what_is_done(
    assay: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / name for name in ("a.toml", "b.toml")]
    for file in files:
        assay("scenario", "new", file)
    capsys.readouterr()

    def interrupted(file: CaseFile, *, record: bool, budget: int | None) -> Played:
        if file.path == files[1]:
            raise KeyboardInterrupt
        return tried(file, record=record, budget=budget)

    monkeypatch.setattr(trying, "tried", interrupted)
    assert assay("scenario", "run", tmp_path, "--json") == 130

    told = capsys.readouterr()
    assert [done["file"] for done in json.loads(told.out)["scenarios"]] == [str(files[0])]
    assert "interrupted" in told.err
