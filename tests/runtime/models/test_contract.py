"""What every chat model promises, over every implementation; the local one is the real SmolLM2."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

import anyio
import msgspec
import pytest

from assay.errors import ContextOverflow
from assay.guards.keys import Question, encode_question
from assay.guards.protocols import ChatModel, Message, Request
from assay.runtime.models.cassette import CassetteModel, RecordingCache
from assay.runtime.models.llama import Llama
from assay.runtime.models.local import LocalModel, inspect_file
from assay.runtime.models.scripted import ScriptedModel
from assay.stores.memory import InMemoryCache
from assay.stores.protocols import CacheRow
from assay.stores.records import Namespace

from .fault_server import chunk, http, serving, streamed, usage_chunk
from .support import asking, endpoint

Opened: TypeAlias = Callable[[], AbstractAsyncContextManager[ChatModel]]

SHORT = asking("Count: one two three", max_tokens=4, top_logprobs=1, system="Repeat.")
LONG = asking("word " * 50_000, max_tokens=4)


@asynccontextmanager
async def scripted(_: Path, __: Llama) -> AsyncGenerator[ChatModel]:
    yield ScriptedModel(lambda _: "one two three four five six")


@asynccontextmanager
async def cassette(folder: Path, _: Llama) -> AsyncGenerator[ChatModel]:
    script = ScriptedModel(lambda _: "one two three four five six", identity="m")
    file = folder / "run.jsonl"
    recorder = RecordingCache(InMemoryCache(), file, model=script)
    value = msgspec.json.encode(await script.complete(SHORT))
    row = CacheRow("k", value, encode_question(Question(request=SHORT)), ())
    await recorder.put(Namespace("ns"), [row])
    yield await CassetteModel.open(file)


@asynccontextmanager
async def remote(_: Path, __: Llama) -> AsyncGenerator[ChatModel]:
    logprobs: dict[str, object] = {
        "content": [{"token": "one", "logprob": -0.1, "top_logprobs": []}]
    }
    choice: dict[str, object] = {
        "message": {"content": "one two"},
        "finish_reason": "length",
        "logprobs": logprobs,
    }
    usage = {"prompt_tokens": 11, "completion_tokens": 2}
    whole = http({"choices": [choice], "usage": usage})
    last = chunk(" two", finish="length")
    last["choices"][0]["logprobs"] = logprobs
    parts = streamed(chunk("one"), last, usage_chunk())
    async with serving(whole, parts) as server, endpoint(server.url) as model:
        yield model


@asynccontextmanager
async def local(_: Path, llama: Llama) -> AsyncGenerator[ChatModel]:
    file = await anyio.to_thread.run_sync(inspect_file, "")
    yield LocalModel(file, llama, context_tokens=512, timeout=60)


@pytest.fixture(params=[scripted, cassette, remote, local], ids=lambda opened: opened.__name__)
def opened(request: pytest.FixtureRequest, tmp_path: Path, llama: Llama) -> Opened:
    return partial(request.param, tmp_path, llama)


async def test_a_model_answers_within_its_limits(opened: Opened) -> None:
    async with opened() as model:
        first = await model.complete(SHORT)
        pieces: list[str] = []
        second = await model.complete(SHORT, sink=pieces.append)

        assert model.identity
        assert first.text
        assert first.finish_reason == "length"
        assert 0 < first.usage.completion_tokens <= SHORT.parameters.max_tokens
        assert 0 < first.usage.prompt_tokens <= model.count_tokens(SHORT.messages)
        assert first.logprobs
        assert all(token.logprob <= 0 for token in first.logprobs)
        assert "".join(pieces) == second.text == first.text


async def test_a_prompt_that_does_not_fit_is_not_sent(opened: Opened) -> None:
    async with opened() as model:
        with pytest.raises(ContextOverflow, match="context"):
            await model.complete(LONG)


async def test_more_text_never_counts_less(opened: Opened) -> None:
    def counted(model: ChatModel, text: str) -> int:
        return model.count_tokens([Message(role="user", content=text)])

    async with opened() as model:
        assert counted(model, "") < counted(model, "one two") < counted(model, "one two three, 4!")


def test_an_encoded_request_is_the_same_for_equal_requests() -> None:
    again = msgspec.json.decode(msgspec.json.encode(SHORT), type=Request)

    assert again == SHORT
