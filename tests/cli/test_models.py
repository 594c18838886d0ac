"""``assay model`` and ``assay explain miss`` as a user runs them."""

import json
from pathlib import Path

import msgspec
import pytest

from assay.cli import main
from assay.guards.keys import Question, encode_question
from assay.guards.protocols import Completion, Message, Parameters, Request
from assay.runtime.models.cassette import RecordingCache
from assay.stores.memory import InMemoryCache
from assay.stores.protocols import CacheRow
from assay.stores.records import Namespace


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path


def asking(text: str) -> Request:
    message = Message(role="user", content=text)
    return Request(model="m", messages=(message,), parameters=Parameters())


def run(*arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    return exit_.value.code


def test_pulling_makes_a_model_known_by_name(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("model", "pull", "smollm2-135m") == 0
    capsys.readouterr()

    assert run("model", "list", "--json") == 0

    (row,) = json.loads(capsys.readouterr().out)["models"]
    assert row == {
        "name": "smollm2-135m",
        "size": 98_362_432,
        "path": str(home / "assay" / "models" / "smollm2-135m.gguf"),
    }


def test_a_wrong_name_exits_with_2_and_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("model", "pull", "smolm2-135m") == 2

    captured = capsys.readouterr()
    assert captured.out == ""
    assert "did you mean 'smollm2-135m'" in captured.err


async def test_a_miss_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cassette, request = tmp_path / "run.jsonl", tmp_path / "request.json"
    value = msgspec.json.encode(Completion(text="A"))
    row = CacheRow("k", value, encode_question(Question(request=asking("one"))), ())
    await RecordingCache(InMemoryCache(), cassette).put(Namespace("ns"), [row])
    request.write_bytes(msgspec.json.encode(asking("two")))

    assert run("explain", "miss", str(cassette), str(request)) == 0

    assert "asked 'two', recorded 'one'" in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff"])
def test_a_malformed_request_exits_with_2(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    cassette, request = tmp_path / "run.jsonl", tmp_path / "request.json"
    cassette.write_bytes(b'{"format":1,"identity":"m","context_tokens":0}\n')
    request.write_bytes(content)

    assert run("explain", "miss", str(cassette), str(request)) == 2

    assert "expected a request" in capsys.readouterr().err
