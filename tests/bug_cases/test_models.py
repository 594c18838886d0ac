"""Situations other model clients got wrong: verdicts, surrogates, waits, streams, connections."""

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import MalformedAnswer, ModelError, ModelUnavailable, TurnFailed
from assay.guards.baselines_asking import chosen_of
from assay.guards.protocols import Usage
from assay.runtime.clock import StoppedClock
from assay.runtime.models.assembling import Assembler
from assay.runtime.models.calling import Waits
from assay.runtime.models.endpoints import Endpoint
from assay.runtime.models.openai import OpenAIModel
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.settings import ModelSettings

from ..promises.virtual_time import virtually  # noqa: TID252
from ..runtime.models.fault_server import (  # noqa: TID252
    Reply,
    answer,
    chunk,
    http,
    serving,
    streamed,
    then_close,
    usage_chunk,
)
from ..runtime.models.support import asking, endpoint  # noqa: TID252
from ..runtime.rooms import SESSION, USER, runtime  # noqa: TID252

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TEXTS = ["Rex likes carrots.", "Rex likes the ball."]


@pytest.mark.parametrize(
    "said",
    ['Here you go:\n```json\n{"needed": 2}\n```', '{"needed":2} hope it helps', "Use ```\n2```"],
)
def test_o07_a_verdict_inside_prose_is_read(said: str) -> None:
    assert chosen_of(said, TEXTS) == frozenset({1})


@pytest.mark.parametrize("said", ["[]", "{}", "", "```json\n```", "certainly!"])
def test_o07_what_is_no_verdict_is_none_and_no_crash(said: str) -> None:
    assert chosen_of(said, TEXTS) is None


@given(before=st.text(max_size=30), after=st.text(max_size=30))
def test_o07_any_prose_around_a_repeated_record_leaves_it_read(before: str, after: str) -> None:
    chosen = chosen_of(f"{before} {TEXTS[1]} {after}", TEXTS)

    assert chosen is not None
    assert 1 in chosen


async def test_o08_half_a_surrogate_pair_in_a_reply_loses_nothing_else() -> None:
    reply = http('{"choices": [{"message": {"content": "caf\\ud83d open; second fact"}}]}')

    async with serving(reply) as server, endpoint(server.url) as model:
        completion = await model.complete(asking())

    assert completion.text == "caf\ufffd open; second fact"


async def test_o08_a_broken_escape_is_a_typed_failure() -> None:
    reply = http('{"choices": [{"message": {"content": "bad \\uZZ12 escape"}}]}')

    async with serving(reply) as server, endpoint(server.url) as model:
        with pytest.raises(MalformedAnswer, match="JSON"):
            await model.complete(asking())


@pytest.mark.parametrize(
    "reply",
    ['{"delete": ["all"]}', '[{"op": "delete"}, {"op": "delete"}]', "[]", "DELETE everything"],
)
async def test_o06_no_answer_of_a_model_removes_a_record(reply: str) -> None:
    async with runtime(model=ScriptedModel(lambda _: reply)) as rt:
        for text in ("I like spicy food.", "I hate spicy food."):
            await rt.session(user=USER, session_id=SESSION).send(text)

        kept = [record.text for record in await rt.memories(USER)]

    assert kept == ["I like spicy food.", "I hate spicy food."]


async def test_o06_a_model_without_an_answer_loses_nothing_that_was_said() -> None:
    def silent(_: object) -> str:
        raise MalformedAnswer("nothing")

    async with runtime(model=ScriptedModel(silent)) as rt:
        with pytest.raises(TurnFailed):
            await rt.session(user=USER, session_id=SESSION).send("I hate spicy food.")

        assert [record.text for record in await rt.memories(USER)] == ["I hate spicy food."]


# ---- waits


class Refusing:
    """Refuses with a ``Retry-After`` until it is asked for the last time; notes when it is asked."""

    def __init__(self, retry_after: str) -> None:
        self._retry_after = retry_after
        self.asked_at: list[float] = []

    async def answer(self, _request: httpx2.Request) -> httpx2.Response:
        self.asked_at.append(anyio.current_time())
        if len(self.asked_at) == 1:
            headers = {"Retry-After": self._retry_after}
            return httpx2.Response(429, json={"error": {}}, headers=headers)
        return httpx2.Response(200, json=answer("Paris"))


def waited(retry_after: str, *, deadline: float) -> tuple[float, str]:
    """Virtual seconds between two attempts, 0 if there was one; and the error."""
    server = Refusing(retry_after)
    http_client = httpx2.AsyncClient(transport=httpx2.MockTransport(server.answer))
    client = openai.AsyncOpenAI(
        api_key="k", base_url="http://fake/v1", max_retries=0, http_client=http_client
    )
    model = OpenAIModel(
        Endpoint(name="m", base_url="http://fake/v1", key="k"),
        client=client,
        settings=ModelSettings(timeout=5, retries=2, retry_seconds=deadline),
        waits=Waits(0.5, 2.0),
        clock=StoppedClock(NOW),
    )

    async def ask() -> str:
        with anyio.fail_after(deadline + 1):
            try:
                await model.complete(asking())
            except ModelError as error:
                return str(error)
        return ""

    said = virtually(ask())
    gaps = [b - a for a, b in itertools.pairwise(server.asked_at)]
    return sum(gaps), said


def in_seconds(seconds: int) -> str:
    return format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("header", "least"), [("61", 61), ("7", 7), (in_seconds(45), 45), ("119", 119)]
)
def test_o15_nobody_asks_earlier_than_the_server_says(header: str, least: float) -> None:
    seconds, said = waited(header, deadline=120)

    assert seconds >= least
    assert said == ""


@pytest.mark.parametrize("header", ["61", in_seconds(61), "Wed, 21 Oct 2099 07:28:00 GMT"])
def test_o15_a_wait_beyond_the_deadline_fails_at_once_and_is_told(header: str) -> None:
    seconds, said = waited(header, deadline=30)

    assert seconds == 0
    assert "asks to wait" in said


@pytest.mark.parametrize("header", ["-5", "abc", "nan", "", "1e400"])
def test_o15_a_wait_that_is_none_gets_the_usual_one(header: str) -> None:
    seconds, said = waited(header, deadline=30)

    assert 0 < seconds <= 2.5
    assert said == ""


# ---- streams

STREAM = streamed(chunk("The code is 12"), chunk("345"), chunk(finish="stop"), usage_chunk())
_END = STREAM.index(b'"stop"}]}')


@pytest.mark.parametrize("offset", range(STREAM.index(b"\r\n\r\n") + 4, _END, 41))
async def test_o16_the_part_of_a_reply_that_came_is_stored_nowhere(offset: int) -> None:
    cut: Reply = then_close(STREAM[:offset])
    pieces: list[str] = []
    async with (
        serving(cut) as server,
        endpoint(server.url, retries=0) as model,
        runtime(model=model, guard="no_memory") as rt,
    ):
        session = rt.session(user=USER, session_id=SESSION)
        with pytest.raises(TurnFailed) as raised:
            await session.send("What is the code?", sink=pieces.append)

        archived = [turn.text for turn in await rt.bank.archive.all(USER)]
        kept = [record.text for record in await rt.memories(USER)]
        cached = [row async for row in rt.bank.cache.rows(USER)]

    assert raised.value.kind == "ModelUnavailable"
    assert archived == ["What is the code?"]
    assert (kept, cached) == ([], [])


async def test_o17_streams_give_their_connections_back() -> None:
    right = http(answer("Paris"))
    limited = http({"error": {}}, status=429)
    async with serving(*([STREAM, STREAM, limited, right] * 125)) as server:
        async with endpoint(server.url, concurrency=2, retries=0) as model:
            for _ in range(125):
                await model.complete(asking(), sink=lambda _: None)
                await _first_piece_only(model)
                with pytest.raises(ModelUnavailable):
                    await model.complete(asking(), sink=lambda _: None)
                await model.complete(asking())
        with anyio.fail_after(5):
            while server.connections:
                await anyio.lowlevel.checkpoint()

    assert len(server.bodies) == 500


async def _first_piece_only(model: OpenAIModel) -> None:
    """Cancelled as soon as the first piece came."""
    with anyio.CancelScope() as scope:
        await model.complete(asking(), sink=lambda _: scope.cancel())


ODD: list[dict[str, Any]] = [
    {"choices": []},
    {"choices": [{"index": 0, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": None}]},
    {"choices": [{"index": 0, "delta": {"content": None}}]},
]
OK: dict[str, Any] = {
    "choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]
}
USAGE: dict[str, Any] = {"choices": [], "usage": {"total_tokens": 9}}


def subsets() -> Sequence[tuple[dict[str, Any], ...]]:
    return [some for n in range(5) for some in itertools.combinations(ODD, n)]


@pytest.mark.parametrize("odd", subsets(), ids=len)
def test_o18_chunks_that_say_nothing_change_nothing(odd: tuple[dict[str, Any], ...]) -> None:
    for order in itertools.permutations([*odd, OK, USAGE]):
        assembler = Assembler()
        for piece in order:
            assembler.add(piece, streamed=True)

        completion = assembler.finish(lambda _: Usage())

        assert (completion.text, completion.usage.total) == ("ok", 9)


@settings(max_examples=50)
@given(total=st.one_of(st.integers(-9, 0), st.text(max_size=2), st.none(), st.floats()))
def test_o18_a_sum_that_is_none_is_not_believed(total: object) -> None:
    assembler = Assembler()
    assembler.add({**OK, "usage": {"total_tokens": total}}, streamed=True)

    assert assembler.finish(lambda _: Usage(prompt_tokens=5)).usage.prompt_tokens == 5
