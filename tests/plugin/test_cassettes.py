"""A scenario with a model that is not free: recorded once, then replayed beside the scenario.

A script file stands for the real model: it has an identity and costs nothing to ask.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

from assay.errors import ScenarioError
from assay.guards.protocols import ChatModel, Completion, ToolCall
from assay.runtime.models.cassette import FORMAT, CassetteModel, Header
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.settings import Settings
from assay.scenarios.cases import recording
from assay.scenarios.cases.checking import findings
from assay.scenarios.cases.files import CaseFile, read
from assay.scenarios.cases.playing import play
from assay.scenarios.cases.trying import Unmet, tried

from .support import TOLD, write

REAL = TOLD.replace('user = "robin"', 'user = "robin"\nmodel = "local"')


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    """What ``local`` opens here."""
    scripted = ScriptedModel(identity="local:tiny@sha256:0")

    @asynccontextmanager
    async def opened(
        spec: str, *, settings: Settings, base_url: str | None = None
    ) -> AsyncGenerator[ChatModel]:
        yield scripted

    monkeypatch.setattr(recording, "open_model", opened)
    return scripted


@pytest.fixture
def file(tmp_path: Path) -> CaseFile:
    return read(write(tmp_path / "told.toml", REAL))[0]


def test_what_was_recorded_replays_without_the_model(model: ScriptedModel, file: CaseFile) -> None:
    live = tried(file, record=True)
    asked = len(model.asked)

    replayed = tried(file)

    assert file.cassette.name == "told.cassette.jsonl"
    assert asked == live.spent.live > 0
    assert len(model.asked) == asked
    assert [taken.reply and taken.reply.text for taken in replayed.taken] == [
        taken.reply and taken.reply.text for taken in live.taken
    ]


def test_recording_again_writes_the_same_file(model: ScriptedModel, file: CaseFile) -> None:
    tried(file, record=True)
    first = file.cassette.read_bytes()

    tried(file, record=True)

    assert file.cassette.read_bytes() == first


def test_a_failed_scenario_is_recorded_too(model: ScriptedModel, tmp_path: Path) -> None:
    text = REAL.replace('"Okafor"', '"Dr. No"')
    [unmet] = read(write(tmp_path / "unmet.toml", text))

    with pytest.raises(Unmet, match=r"Dr\. No"):
        tried(unmet, record=True)

    assert unmet.cassette.exists()


def test_without_a_cassette_the_command_that_records_is_named(file: CaseFile) -> None:
    with pytest.raises(ScenarioError, match=r"no recorded answers of 'local'.*--assay-record"):
        tried(file)


def test_a_cassette_of_another_version_is_refused(file: CaseFile) -> None:
    header = Header(format=FORMAT + 1, identity="local:tiny", context_tokens=0)
    write(file.cassette, msgspec.json.encode(header).decode() + "\n")

    with pytest.raises(
        ScenarioError, match=rf"format {FORMAT + 1}.*reads {FORMAT}.*--assay-record"
    ):
        tried(file)


def test_a_missing_answer_fails_with_the_nearest_miss(model: ScriptedModel, file: CaseFile) -> None:
    tried(file, record=True)
    write(file.path, REAL.replace("My doctor", "Our doctor"))
    [changed] = read(file.path)

    with pytest.raises(
        Unmet, match=r"(?s)not in the cassette.*nearest differs.*Our doctor"
    ) as raised:
        tried(changed)

    assert "--assay-record" in str(raised.value)


async def test_tool_calls_are_answered_and_checked(tmp_path: Path, model: ScriptedModel) -> None:
    call = ToolCall(id="c1", name="lookup", arguments="{}")
    answers = [
        Completion(text="", finish_reason="tool_calls", tool_calls=(call,)),
        Completion(text="It is 42."),
    ]
    asking = ScriptedModel(lambda _: answers.pop(0), identity="tools")
    text = """
scenario = "A tool is asked"

[[turn]]
say = "What is the answer?"
tools = [{ type = "function", function = { name = "lookup" } }]
tool_outputs = { lookup = "42" }

[turn.expect]
answer_contains = ["42"]
tool_calls = []
"""
    [file] = read(write(tmp_path / "tools.toml", text))

    played = await play(file, model=asking)

    assert findings(played) == []
    assert played.taken[0].left == ("lookup({}) gave: 42",)


async def test_a_cassette_holds_each_answer_once(model: ScriptedModel, file: CaseFile) -> None:
    await anyio.to_thread.run_sync(lambda: tried(file, record=True))

    cassette = await CassetteModel.open(file.cassette)

    assert cassette.identity == model.identity
