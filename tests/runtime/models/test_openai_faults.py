"""What endpoints do wrong, on a real connection, and what comes of it."""

import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import anyio
import anyio.lowlevel
import openai
import pytest

from assay.errors import (
    ContextOverflow,
    MalformedAnswer,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)
from assay.runtime.models.sdk_errors import MAPPED, retry_after

from .fault_server import (
    Reply,
    answer,
    chunk,
    dripping,
    http,
    serving,
    streamed,
    then_close,
    then_silence,
    usage_chunk,
)
from .support import KEY, asking, endpoint

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
RIGHT = http(answer("Paris"))


def error(status: int, message: str = "no", **more: str) -> bytes:
    return http({"error": {"message": message, **more}}, status=status)


def logprobs(value: str) -> bytes:
    body = answer(logprobs={"content": [{"token": "Paris", "logprob": 0, "top_logprobs": []}]})
    return http(http(body).partition(b"\r\n\r\n")[2].replace(b'"logprob": 0', value.encode()))


@pytest.mark.parametrize(
    ("reply", "expected", "said"),
    [
        pytest.param(error(400), ModelRefused, "status 400", id="bad request"),
        pytest.param(error(401), ModelRefused, "status 401", id="wrong key"),
        pytest.param(error(403), ModelRefused, "status 403", id="forbidden"),
        pytest.param(error(404), ModelRefused, "status 404", id="unknown model"),
        pytest.param(error(422), ModelRefused, "status 422", id="unprocessable"),
        pytest.param(
            error(429, code="insufficient_quota"), ModelRefused, "status 429", id="no quota"
        ),
        pytest.param(
            http("", status=302, headers={"Location": "http://127.0.0.1:1/v1"}),
            ModelRefused,
            "redirect",
            id="redirect",
        ),
        pytest.param(
            error(400, code="context_length_exceeded"), ContextOverflow, "400", id="too long"
        ),
        pytest.param(
            error(400, type="exceed_context_size_error"), ContextOverflow, "400", id="llama long"
        ),
        pytest.param(http('{"choices": [{"mess'), MalformedAnswer, "JSON", id="truncated JSON"),
        pytest.param(http("[" * 100_000), MalformedAnswer, "JSON", id="deep JSON"),
        pytest.param(
            http("<html>Hi</html>", kind="text/html"), MalformedAnswer, "text/html", id="HTML"
        ),
        pytest.param(http("null"), MalformedAnswer, "completion", id="null"),
        pytest.param(http(answer(choices=[])), MalformedAnswer, "empty list", id="no choices"),
        pytest.param(http(answer(choices=None)), MalformedAnswer, "completion", id="null choices"),
        pytest.param(http(answer("")), MalformedAnswer, "neither", id="empty content"),
        pytest.param(http(answer(None)), MalformedAnswer, "neither", id="null content"),
        pytest.param(
            http(answer("half", finish_reason="content_filter")),
            ModelRefused,
            "filter",
            id="content filter",
        ),
        pytest.param(
            http(answer(message={"content": None, "refusal": "I won't"})),
            ModelRefused,
            "I won't",
            id="refusal",
        ),
        pytest.param(
            http(b"\x1f\x8b....", headers={"Content-Encoding": "gzip"}),
            MalformedAnswer,
            "gzip",
            id="packed body",
        ),
        pytest.param(http(b" " * 30_000_000), MalformedAnswer, "more than", id="30 MB"),
    ],
)
async def test_a_wrong_answer_fails_at_once(
    reply: bytes, expected: type[ModelError], said: str
) -> None:
    async with serving(reply) as server, endpoint(server.url) as model:
        with pytest.raises(expected, match=said):
            await model.complete(asking())

        assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        pytest.param(error(500), "status 500", id="500"),
        pytest.param(error(408), "status 408", id="408"),
        pytest.param(error(429), "status 429", id="429"),
        pytest.param(then_close(b""), "RemoteProtocolError", id="closed at once"),
        pytest.param(then_close(RIGHT[:-9]), "RemoteProtocolError", id="cut body"),
        pytest.param(then_silence(), "no answer within", id="slow head"),
        pytest.param(then_silence(RIGHT[:-9]), "no answer within", id="slow body"),
        pytest.param(dripping(RIGHT, seconds=0.05), "no answer within", id="one byte at a time"),
    ],
)
async def test_what_may_pass_is_tried_again_and_then_told(reply: Reply, said: str) -> None:
    async with serving(reply) as server, endpoint(server.url, timeout=0.3, retries=1) as model:
        with pytest.raises(ModelUnavailable, match=said) as raised:
            await model.complete(asking())

        assert len(server.bodies) == 2

    assert "2 attempts in" in str(raised.value)
    assert server.url in str(raised.value)


async def test_a_passing_failure_is_not_seen_by_the_caller() -> None:
    replies = [error(500), then_close(b""), RIGHT]

    async with serving(*replies) as server, endpoint(server.url) as model:
        completion = await model.complete(asking())

    assert completion.text == "Paris"
    assert len(server.bodies) == 3


async def test_a_refused_connection_says_what_was_tried_and_for_how_long() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    async with endpoint(f"http://127.0.0.1:{port}/v1", retries=1) as model:
        with pytest.raises(ModelUnavailable, match=rf"127.0.0.1:{port}.*2 attempts in \d"):
            await model.complete(asking())


async def test_a_host_without_an_address_is_told() -> None:
    async with endpoint("http://no-such-host.invalid/v1", timeout=3, retries=0) as model:
        with pytest.raises(ModelUnavailable, match=r"no-such-host\.invalid.*1 attempt in"):
            await model.complete(asking())


async def test_retry_after_is_waited_for() -> None:
    wait = http({"error": {}}, status=429, headers={"Retry-After": "0.2"})

    async with serving(wait, RIGHT) as server, endpoint(server.url) as model:
        started = anyio.current_time()
        await model.complete(asking())

        assert anyio.current_time() - started >= 0.2


async def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    wait = http({"error": {}}, status=429, headers={"Retry-After": "61"})

    async with serving(wait) as server, endpoint(server.url, retry_seconds=5) as model:
        with anyio.fail_after(2), pytest.raises(ModelUnavailable, match=r"1 attempt in.*wait 61 s"):
            await model.complete(asking())


async def test_all_attempts_together_keep_the_deadline() -> None:
    async with (
        serving(then_silence()) as server,
        endpoint(server.url, timeout=5, retries=20, retry_seconds=0.3) as model,
    ):
        with anyio.fail_after(2), pytest.raises(ModelUnavailable, match=r"0\.3 s in all"):
            await model.complete(asking())


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("61", 61.0),
        ("1e9", 1e9),
        ("-5", None),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        (None, None),
        (format_datetime(NOW + timedelta(seconds=30), usegmt=True), 30.0),
        (format_datetime(NOW - timedelta(days=1), usegmt=True), 0.0),
    ],
)
def test_retry_after_is_understood(header: str | None, seconds: float | None) -> None:
    assert retry_after(header, now=NOW) == seconds


@pytest.mark.parametrize(
    "given",
    ['"logprob": NaN', '"logprob": -Infinity', '"logprob": null', '"x": 1', '"logprob": "a"'],
)
async def test_a_logprob_that_is_no_number_is_no_measurement(given: str) -> None:
    async with serving(logprobs(given)) as server, endpoint(server.url) as model:
        completion = await model.complete(asking(top_logprobs=1))

    assert completion.text == "Paris"
    assert completion.logprobs is None


async def test_logprobs_come_with_their_alternatives() -> None:
    content = [
        {
            "token": "Paris",
            "logprob": -0.5,
            "top_logprobs": [
                {"token": "Paris", "logprob": -0.5},
                {"token": "Rome", "logprob": float("nan")},
            ],
        }
    ]
    reply = http(answer(logprobs={"content": content}))

    async with serving(reply) as server, endpoint(server.url) as model:
        completion = await model.complete(asking(top_logprobs=2))

    assert completion.logprobs is not None
    assert completion.logprobs[0].top == (("Paris", -0.5),)


@pytest.mark.parametrize(
    "usage",
    [None, {}, {"prompt_tokens": -1, "completion_tokens": 1}, {"prompt_tokens": "many"}, "x"],
)
async def test_a_usage_that_cannot_be_believed_is_counted_here(usage: object) -> None:
    async with serving(http(answer("Paris", usage=usage))) as server, endpoint(server.url) as model:
        completion = await model.complete(asking())

        assert completion.usage.prompt_tokens == model.count_tokens(asking().messages)

    assert completion.usage.completion_tokens == len("Paris")


@pytest.mark.parametrize(
    ("given", "meant"),
    [("stop", "stop"), ("length", "length"), ("eos", "stop"), (None, "stop")],
)
async def test_the_finish_reason_is_kept(given: str | None, meant: str) -> None:
    reply = http(answer("Paris", finish_reason=given))

    async with serving(reply) as server, endpoint(server.url) as model:
        completion = await model.complete(asking())

    assert completion.finish_reason == meant


async def test_tool_calls_pass_through_as_they_are() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    reply = http(answer(None, message={"tool_calls": [call]}, finish_reason="tool_calls"))
    tools = '[{"type": "function", "function": {"name": "f"}}]'

    async with serving(reply) as server, endpoint(server.url) as model:
        completion = await model.complete(asking(tools=tools))

    assert server.bodies[0]["tools"][0]["function"]["name"] == "f"
    assert completion.finish_reason == "tool_calls"
    assert [(c.id, c.name, c.arguments) for c in completion.tool_calls] == [("c1", "f", '{"a": 1}')]


async def test_tools_that_are_no_json_are_refused_before_sending() -> None:
    async with serving(RIGHT) as server, endpoint(server.url) as model:
        with pytest.raises(ModelRefused, match="JSON array"):
            await model.complete(asking(tools="nonsense"))

    assert server.bodies == []


async def test_half_a_surrogate_pair_is_refused_before_sending() -> None:
    async with serving(RIGHT) as server, endpoint(server.url) as model:
        with pytest.raises(ModelRefused, match="surrogate"):
            await model.complete(asking("a\ud800b"))

    assert server.bodies == []


async def test_half_a_surrogate_pair_in_an_answer_is_replaced() -> None:
    async with serving(http(answer("a\ud800b"))) as server, endpoint(server.url) as model:
        completion = await model.complete(asking())

    assert completion.text == "a\ufffdb"


# ---- streams


async def test_a_stream_reaches_the_sink_and_gives_the_same_completion() -> None:
    pieces: list[str] = []
    reply = streamed(chunk("Pa"), chunk("ris"), chunk(finish="stop"), usage_chunk())

    async with serving(reply) as server, endpoint(server.url) as model:
        completion = await model.complete(asking(), sink=pieces.append)

    assert pieces == ["Pa", "ris"]
    assert completion.text == "Paris"
    assert completion.usage.prompt_tokens == 11
    assert server.bodies[0]["stream"] is True


async def test_streamed_tool_calls_are_put_together() -> None:
    first = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": '{"a"'}}
    second = {"index": 0, "function": {"arguments": ": 1}"}}
    reply = streamed(
        chunk(tool_calls=[first]), chunk(tool_calls=[second]), chunk(finish="tool_calls")
    )

    async with serving(reply) as server, endpoint(server.url) as model:
        completion = await model.complete(asking(), sink=lambda _: None)

    assert completion.tool_calls[0].arguments == '{"a": 1}'


STREAM = streamed(chunk("Pa"), chunk("ris"), chunk(finish="stop"))
HEAD = STREAM.index(b"\r\n\r\n") + 4
LAST_NEEDED = STREAM.index(b'"stop"}]}') + len(b'"stop"}]}\n\n')


@pytest.mark.parametrize("offset", range(0, LAST_NEEDED - 2, 13))
async def test_a_stream_cut_anywhere_gives_no_completion(offset: int) -> None:
    pieces: list[str] = []
    cut = then_close(STREAM[:offset])

    async with serving(cut) as server, endpoint(server.url, retries=1) as model:
        with pytest.raises(ModelUnavailable):
            await model.complete(asking(), sink=pieces.append)

        # Another attempt would say again what was said already.
        assert len(server.bodies) == (1 if pieces else 2)


async def test_a_stream_that_just_ends_gives_no_completion() -> None:
    async with serving(streamed(chunk("Pa"))) as server, endpoint(server.url) as model:
        with pytest.raises(ModelUnavailable, match="cut off"):
            await model.complete(asking(), sink=lambda _: None)


async def test_an_error_inside_a_stream_is_an_error() -> None:
    reply = streamed(chunk("Pa"), {"error": {"message": "out of memory"}})

    async with serving(reply) as server, endpoint(server.url) as model:
        with pytest.raises(ModelUnavailable, match="out of memory"):
            await model.complete(asking(), sink=lambda _: None)


async def test_an_endpoint_that_does_not_stream_is_heard_all_the_same() -> None:
    pieces: list[str] = []

    async with serving(RIGHT) as server, endpoint(server.url) as model:
        completion = await model.complete(asking(), sink=pieces.append)

    assert (completion.text, pieces) == ("Paris", ["Paris"])


async def test_a_stream_of_nonsense_is_malformed() -> None:
    reply = streamed(end="data: {nonsense\n\n")

    async with serving(reply) as server, endpoint(server.url) as model:
        with pytest.raises(MalformedAnswer, match="JSON"):
            await model.complete(asking(), sink=lambda _: None)


# ---- promises


async def test_the_key_is_in_no_message() -> None:
    reply = error(401, message=f"Incorrect API key provided: {KEY}")

    async with serving(reply) as server, endpoint(server.url) as model:
        with pytest.raises(ModelRefused) as raised:
            await model.complete(asking())

        assert KEY in server.heads[0]
        assert KEY not in model.identity

    assert KEY not in str(raised.value)
    assert "[key]" in str(raised.value)


async def test_a_prompt_that_does_not_fit_is_not_sent() -> None:
    async with serving(RIGHT) as server, endpoint(server.url, context_tokens=200) as model:
        with pytest.raises(ContextOverflow):
            await model.complete(asking("word " * 100))

    assert server.bodies == []


async def test_calls_in_flight_keep_the_limit() -> None:
    most = 0

    async with (
        serving(then_silence()) as server,
        endpoint(server.url, concurrency=2) as model,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(6):
            tasks.start_soon(model.complete, asking())
        with anyio.fail_after(5):
            while len(server.bodies) < 2:
                await anyio.lowlevel.checkpoint()
        await anyio.wait_all_tasks_blocked()
        most = server.connections
        tasks.cancel_scope.cancel()

    assert most == 2


async def test_the_rate_limit_holds_back_what_is_too_much() -> None:
    async with serving(RIGHT) as server, endpoint(server.url, requests_per_minute=2) as model:
        await model.complete(asking())
        await model.complete(asking())
        with anyio.move_on_after(0.3) as scope:
            await model.complete(asking())

    assert scope.cancelled_caught
    assert len(server.bodies) == 2


async def test_another_model_than_asked_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    reply = http(answer("Paris", model="cheaper"))

    async with serving(reply) as server, endpoint(server.url) as model:
        await model.complete(asking())
        await model.complete(asking())

    told = [(r.message, vars(r)["answered"]) for r in caplog.records if r.name == "assay.models"]
    assert told == [("model.answered_as_another", "cheaper")]


async def test_cancelled_calls_leave_no_connection() -> None:
    async with serving(then_silence()) as server:
        async with endpoint(server.url) as model:
            with anyio.move_on_after(0.2):
                await model.complete(asking())
        with anyio.fail_after(5):
            while server.connections:
                await anyio.lowlevel.checkpoint()

    assert server.connections == 0


def test_every_error_of_the_sdk_is_mapped() -> None:
    members = [getattr(openai, name) for name in dir(openai) if not name.startswith("_")]
    errors = {m for m in members if isinstance(m, type) and issubclass(m, openai.OpenAIError)}

    assert errors - MAPPED.keys() == set()
