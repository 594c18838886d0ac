"""Recorded runs: what is in the file comes back, everything else is a clear miss."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import msgspec
import pytest

from assay.errors import CassetteMiss, ConfigError
from assay.guards.keys import Question, encode_question
from assay.guards.protocols import Completion, Message, Request
from assay.runtime.models.cassette import (
    Cassette,
    CassetteModel,
    RecordingCache,
    explain_miss,
    read_cassette,
)
from assay.runtime.models.scripted import ScriptedModel
from assay.stores.memory import InMemoryCache
from assay.stores.protocols import CacheRow
from assay.stores.records import Namespace

from .support import KEY, asking

ANN = Namespace("ann")
HEADER = b'{"format":1,"identity":"m","context_tokens":100}\n'


def row(request: Request, text: str, *, key: str | None = None) -> CacheRow:
    question = encode_question(Question(request=request))
    return CacheRow(key or text, msgspec.json.encode(Completion(text=text)), question, ())


async def read(file: Path) -> Cassette:
    return await anyio.to_thread.run_sync(read_cassette, file)


def likelihood_row(request: Request, answer: str, value: float) -> CacheRow:
    question = encode_question(Question(request=request, answer=answer))
    return CacheRow(answer, msgspec.json.encode(value), question, ())


async def test_what_was_put_comes_back(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "run.jsonl"
    recorder = RecordingCache(InMemoryCache(), file, model=ScriptedModel(context_tokens=900))
    await recorder.put(ANN, [row(asking("a"), "A"), likelihood_row(asking("a"), "A!", -0.5)])

    model = await CassetteModel.open(file)

    assert (model.identity, model.context_tokens) == ("m", 900)
    assert (await model.complete(asking("a"))).text == "A"
    assert await model.log_likelihood(asking("a"), "A!") == -0.5


async def test_a_replay_counts_tokens_as_the_recorded_model_did(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"

    class Exact(ScriptedModel):
        def count_tokens(self, messages: Sequence[Message]) -> int:
            return 42

    await RecordingCache(InMemoryCache(), file, model=Exact()).put(ANN, [row(asking("a"), "A")])
    model = await CassetteModel.open(file)

    assert model.count_tokens(asking("a").messages) == 42
    assert model.count_tokens(asking("b").messages) > 42


async def test_what_was_found_in_the_cache_is_recorded_too(tmp_path: Path) -> None:
    cache = InMemoryCache()
    await cache.put(ANN, [row(asking("a"), "A"), row(asking("b"), "B"), row(asking("c"), "C")])
    recorder = RecordingCache(cache, tmp_path / "run.jsonl")

    first = await recorder.get(ANN, ["A", "missing"])
    await recorder.get(ANN, ["A", "B"])

    assert first.keys() == {"A"}
    entries = (await read(tmp_path / "run.jsonl")).entries
    assert [entry.completion and entry.completion.text for entry in entries] == ["A", "B"]


async def test_a_cassette_is_continued_without_repeating(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    await RecordingCache(InMemoryCache(), file).put(ANN, [row(asking("a"), "A")])

    again = RecordingCache(InMemoryCache(), file)
    await again.put(ANN, [row(asking("a"), "A"), row(asking("b"), "B")])

    assert len((await read(file)).entries) == 2


async def test_a_cassette_of_another_model_is_not_touched(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    await RecordingCache(InMemoryCache(), file).put(ANN, [row(asking("a"), "A")])
    before = file.read_bytes()

    other = RecordingCache(InMemoryCache(), file)
    with pytest.raises(ConfigError, match="recordings of m, not of n"):
        await other.put(ANN, [row(asking("a", model="n"), "A")])

    assert file.read_bytes() == before


async def test_another_file_is_not_touched(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_bytes(b"my notes")

    with pytest.raises(ConfigError, match="header"):
        await RecordingCache(InMemoryCache(), file).put(ANN, [row(asking("a"), "A")])

    assert file.read_bytes() == b"my notes"


async def test_a_miss_shows_which_part_differs(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    rows = [row(asking("Where does Ann live?", seed=7), "A"), row(asking("Hello", seed=1), "B")]
    await RecordingCache(InMemoryCache(), file).put(ANN, rows)
    model = await CassetteModel.open(file)

    with pytest.raises(CassetteMiss) as raised:
        await model.complete(asking("Where does Ann work?", seed=7))

    assert str(raised.value).splitlines() == [
        "the request is not in the cassette (2 entries); the nearest differs in",
        "  message 1 (user): from character 15 on, asked 'work?', recorded 'live?'",
    ]


async def test_a_redraw_that_was_not_recorded_names_the_seed(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    await RecordingCache(InMemoryCache(), file).put(ANN, [row(asking("a", seed=7), "A")])

    told = explain_miss((await read(file)), asking("a", seed=8))

    assert "parameters.seed: from character 0 on, asked '8', recorded '7'" in told


async def test_explaining_a_hit_says_so(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    await RecordingCache(InMemoryCache(), file).put(ANN, [row(asking("a"), "A")])

    assert explain_miss((await read(file)), asking("a")) == "the request is in the cassette"
    assert "answer: asked, but not recorded" in explain_miss((await read(file)), asking("a"), "A")


async def test_an_empty_cassette_misses_clearly(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_bytes(HEADER)

    with pytest.raises(CassetteMiss, match="no entries"):
        await (await CassetteModel.open(file)).complete(asking("a", max_tokens=1))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "line 1"),
        (b"hello\n", "line 1"),
        (HEADER.replace(b'"format":1', b'"format":2'), "format 2, this Assay reads 1"),
        (HEADER + b"{}\n", "line 2"),
        (HEADER + b"\n\xff\n", "line 3"),
    ],
)
async def test_a_malformed_cassette_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "run.jsonl"
    file.write_bytes(content)

    with pytest.raises(ConfigError, match=said):
        await CassetteModel.open(file)


async def test_a_missing_cassette_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        await CassetteModel.open(tmp_path / "none.jsonl")


@pytest.mark.parametrize("left", [0, 10, 30, 60, 100, -10, -1])
async def test_a_half_written_line_is_cut_off_when_recording_goes_on(
    tmp_path: Path, left: int
) -> None:
    file = tmp_path / "run.jsonl"
    await RecordingCache(InMemoryCache(), file).put(ANN, [row(asking("a"), "A")])
    whole = file.read_bytes()
    file.write_bytes(whole[:left])

    await RecordingCache(InMemoryCache(), file).put(ANN, [row(asking("a"), "A")])

    assert file.read_bytes() == whole


async def test_a_killed_recording_is_whole_up_to_its_last_line(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    script = Path(__file__).with_name("recording.py")
    async with await anyio.open_process(
        [sys.executable, str(script), str(file)], stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        told = b""
        while told.count(b"\n") < 25:
            told += await process.stdout.receive()
        process.kill()

    acknowledged = told.count(b"\n")
    cassette = await read(file)
    await RecordingCache(InMemoryCache(), file).put(ANN, [row(asking("later"), "L")])

    texts = [entry.completion.text for entry in cassette.entries if entry.completion]
    assert len(texts) >= acknowledged
    assert texts == [f"answer {number}" for number in range(len(texts))]
    assert len((await read(file)).entries) == len(texts) + 1


async def test_no_secret_of_the_environment_is_in_a_cassette(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    file = tmp_path / "run.jsonl"

    await RecordingCache(InMemoryCache(), file).put(ANN, [row(asking("a"), "A")])

    assert KEY.encode() not in file.read_bytes()
    entry = msgspec.json.decode(file.read_bytes().splitlines()[1], type=dict[str, object])
    assert entry.keys() == {"request", "completion"}
