"""P14: what is logged, by anyone and at any level, holds no secret and nothing anybody said."""

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import stamina.instrumentation as retries
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import assay
from assay.cli import main
from assay.errors import AssayError, ConfigError, StoreError
from assay.guards.protocols import Case, Decision, Experimenter
from assay.runtime.commands import ToolResult
from assay.runtime.http.app import make_app
from assay.runtime.http.service import open_service
from assay.runtime.observe import span
from assay.runtime.settings import ModelSettings, Settings
from assay.stores.records import Origin

from ..runtime.models.fault_server import (  # noqa: TID252 - the fault server of the models' tests
    answer,
    http,
    serving,
    streamed,
)
from ..scenarios.support_causal import example  # noqa: TID252
from .conftest import Promise
from .log_canaries import (
    ANSWER,
    BODY,
    KEY,
    RAISED,
    RECORD,
    SAID,
    SECRETS,
    SERVICE_KEY,
    TEXTS,
    TOOL,
    URL,
    everything_logged,
    found,
)
from .log_running import run, served, variables

STATEMENT = "no secret and no personal text in a log, at any level"
ALL = (*SECRETS, *TEXTS)
ECHO = f"{BODY}; {SAID} Your key is {KEY}."
TOOLS = '[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]'
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a":1}'}}


def _error(status: int) -> bytes:
    headers = {"X-Request-Id": f"r-{status}"}
    return http({"error": {"message": ECHO, "code": "x"}}, status=status, headers=headers)


RIGHT = http(answer(ANSWER))
CALLS = http(answer(message={"role": "assistant", "content": None, "tool_calls": [CALL]}))
BAD: Mapping[str, bytes] = {
    "401": _error(401),
    "400": _error(400),
    "500": _error(500),
    "no JSON": http(f"{KEY} {ECHO}"),
    "no completion": http({"said": ECHO}),
    "no HTTP": f"{ECHO}\r\n\r\n".encode(),
    "error in a stream": streamed({"error": {"message": ECHO}}),
    "refusal": http(answer(message={"content": None, "refusal": ECHO})),
}


class Broken:
    """A guard with a bug: its exception quotes what it was given."""

    name = "broken"

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        raise RuntimeError(f"{RAISED}: {case!r} {laboratory!r}")


SETTINGS = Settings(model=ModelSettings(retries=1, retry_seconds=1.0, timeout=0.5))


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in variables(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


async def _talk_through(url: str, bank: Path, **chosen: Any) -> str:
    """Say it, whatever comes; gives what the caller is told of a failure."""
    async with assay.open_runtime(
        model="openai:m", base_url=url, bank=bank, embedder="hashing", settings=SETTINGS, **chosen
    ) as runtime:
        await runtime.remember("ann", RECORD, origin=Origin(writer="user", channel="import:x"))
        session = runtime.session(user="ann")
        try:
            reply = await session.send(f"{SAID} What is the cat chip?", tools=TOOLS)
            if reply.tool_calls:
                results = [ToolResult(call=call, output=TOOL) for call in reply.tool_calls]
                await session.answer_tools(results)
        except AssayError as error:
            return str(error)
    return ""


@pytest.mark.promise("P14", STATEMENT)
async def test_a_program_that_embeds_assay_logs_none(tmp_path: Path, promise: Promise) -> None:
    told: list[str] = []
    with everything_logged() as logged, _retries_logged():
        for number, bad in enumerate(BAD.values()):
            for guard, replies in (
                ("vector", (CALLS, bad, bad, RIGHT)),
                ("cmi", (bad, bad, RIGHT)),
            ):
                async with serving(*replies) as server:
                    bank = tmp_path / f"{guard}{number}"
                    told.append(await _talk_through(server.url, bank, guard=guard))
        async with serving(RIGHT) as server:
            told.append(await _talk_through(server.url, tmp_path / "b", guard=Broken()))
            told.append(await _refused(server.url, _damaged(tmp_path / "vector0")))
        told.append(await _refused_model(_no_model(tmp_path)))

    assert found("".join(told), SECRETS) == []
    assert [line for line in logged.lines if found(line, ALL)] == []
    assert any("stamina" in line for line in logged.lines)
    promise.kept(_figure(len(told), logged.lines))


@contextmanager
def _retries_logged() -> Generator[None]:
    """As a program hears of retries that set up nothing."""
    before = retries.get_on_retry_hooks()
    retries.set_on_retry_hooks([retries.LoggingOnRetryHook])
    try:
        yield
    finally:
        retries.set_on_retry_hooks(before)


def _damaged(bank: Path) -> Path:
    """Half of each of its files is what somebody said."""
    for file in (each for each in bank.rglob("*") if each.is_file()):
        content = bytearray(file.read_bytes())
        content[len(content) // 2 :] = SAID.encode() * (len(content) // 64)
        file.write_bytes(content)
    return bank


async def _refused(url: str, bank: Path) -> str:
    with pytest.raises(StoreError) as raised:
        await _talk_through(url, bank, guard="vector")
    return str(raised.value)


def _no_model(folder: Path) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(b"GGUF" + SAID.encode() * 99)
    return path


async def _refused_model(path: Path) -> str:
    with pytest.raises(ConfigError) as raised:
        async with assay.open_runtime(model=f"local:{path}", embedder="hashing"):
            pass
    return str(raised.value)


def _figure(places: int, lines: Sequence[str]) -> str:
    return f"{len(ALL)} canaries in {places} places, {len(lines):,} log lines at DEBUG searched: 0 found"


def _not_for_the_user(err: str) -> str:
    """Lines of stderr but those that answer who typed: these may say what the endpoint said."""
    lines = err.splitlines()
    return "\n".join(line for line in lines if not line.startswith("assay: ") or "again in" in line)


@pytest.mark.promise("P14", STATEMENT)
async def test_a_chat_logs_none(tmp_path: Path, promise: Promise) -> None:
    async with serving(RIGHT, BAD["500"], BAD["500"], BAD["401"]) as server:
        ran = await run(
            tmp_path,
            *("chat", "--model", "openai:m", "--base-url", server.url, "--guard", "vector"),
            *("--embedder", "hashing", "--bank", str(tmp_path / "bank")),
            said=f"{SAID}\n{SAID} Again.\n{SAID} Once more.\n",
        )

    assert ran.code == 1, ran.err
    assert found(ran.out + ran.err, SECRETS) == []
    assert found(_not_for_the_user(ran.err), TEXTS) == []
    assert [line for line in ran.log if found(line, ALL)] == []
    assert "answer-0009" in ran.out
    promise.kept(_figure(4, [*ran.log, *ran.err.splitlines()]))


@pytest.mark.promise("P14", STATEMENT)
async def test_a_replay_logs_none(tmp_path: Path, promise: Promise) -> None:
    data, out = tmp_path / "data.jsonl", tmp_path / "out"
    row = example(0)
    row["current_task"]["instruction"] = f"What did Ada buy? {SAID}"
    data.write_text(json.dumps(row) + "\n")
    async with serving(RIGHT, BAD["500"], BAD["401"]) as server:
        ran = await run(
            tmp_path,
            *("replay", "causal-locomo", "--data", str(data), "--method", "cmi", "--k", "4"),
            *("--model", "openai:m", "--base-url", server.url, "--embedder", "hashing"),
            *("--out", str(out)),
        )
    written = "".join(p.read_bytes().decode("latin-1") for p in out.rglob("*") if p.is_file())

    assert ran.code == 0, ran.err  # the declared policy decides where the guard cannot measure
    assert "status 500; again in" in ran.err
    assert found(ran.out + ran.err + written, SECRETS) == []
    assert found(_not_for_the_user(ran.err), TEXTS) == []
    assert [line for line in ran.log if found(line, ALL)] == []
    promise.kept(_figure(3, [*ran.log, *ran.err.splitlines()]))


def _asked(text: str, **more: object) -> dict[str, object]:
    return {
        "model": "openai:m",
        "user": "ann",
        "messages": [{"role": "user", "content": text}],
        **more,
    }


@pytest.mark.promise("P14", STATEMENT)
async def test_a_service_logs_none(tmp_path: Path, promise: Promise) -> None:
    bad = [reply for reply in BAD.values() for _ in range(2)]
    async with (
        serving(CALLS, RIGHT, *bad, RIGHT) as server,
        served(tmp_path, server.url) as (address, ran),
        httpx2.AsyncClient(base_url=address, timeout=15) as client,
    ):
        statuses = await _use(client)
    left = ran()

    assert {200, 400, 401, 404, 502, 503} <= set(statuses)
    assert left.code == 0, left.err
    assert found(left.err, ALL) == []
    assert [line for line in left.log if found(line, ALL)] == []
    assert len(left.log) > 50
    promise.kept(_figure(len(statuses), [*left.log, *left.err.splitlines()]))


async def _use(client: httpx2.AsyncClient) -> list[int]:
    path, good = "/v1/chat/completions", {"Authorization": f"Bearer {SERVICE_KEY}"}
    statuses: list[int] = []

    async def post(content: object, headers: dict[str, str] = good, query: str = "") -> None:
        body = content if isinstance(content, str) else json.dumps(content)
        done = await client.post(path + query, content=body, headers=headers)
        assert found(done.text, SECRETS) == []
        statuses.append(done.status_code)

    tools = json.loads(TOOLS)
    await post(_asked(SAID, tools=tools))
    called = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    result = {"role": "tool", "tool_call_id": "c1", "content": TOOL}
    messages = [{"role": "user", "content": SAID}, called, result]
    await post(_asked(SAID, tools=tools, messages=messages))
    for number in range(len(BAD)):
        await post(_asked(f"{SAID} Number {number}."), query=f"?said={SAID}")
    await post(_asked(SAID, stream=True))
    await post(SAID)
    await post({"messages": SAID})
    await post(_asked(SAID), {"Authorization": f"Bearer {KEY}"})
    pages = (f"/nowhere/{SAID}?key={KEY}", "/inspect/", "/metrics")
    return statuses + [(await client.get(page, headers=good)).status_code for page in pages]


@pytest.mark.promise("P14", STATEMENT)
def test_a_secret_in_a_url_is_told_to_nobody(
    tmp_path: Path, promise: Promise, capsys: pytest.CaptureFixture[str]
) -> None:
    row = tmp_path / "data.jsonl"
    row.write_text(json.dumps(example(0)) + "\n")
    bank, out = ("--bank", str(tmp_path / "b")), ("--out", str(tmp_path / "o"))
    commands = [
        ("chat", *bank),
        ("serve", *bank, "--port", "0"),
        ("serve", "--check", "--json"),
        ("replay", "causal-locomo", "--data", str(row), *out),
        ("simulate", "personal_assistant", "--sessions", "1", *out),
    ]
    with everything_logged() as logged:
        codes = [_exit_code(*command) for command in commands]
    shown = capsys.readouterr()
    written = "".join(p.read_bytes().decode("latin-1") for p in tmp_path.rglob("*") if p.is_file())

    assert codes == [2] * len(commands)
    assert found(shown.out + shown.err + written + "".join(logged.lines), ALL) == []
    assert "holds a user or password" in shown.err
    promise.kept(_figure(len(commands), [*logged.lines, *shown.err.splitlines()]))


def _exit_code(*command: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main([*command, "--model", "openai:m", "--base-url", URL, "--embedder", "hashing"])
    return ended.value.code


@pytest.mark.promise("P14", STATEMENT)
def test_a_trace_notes_the_kind_of_an_error_alone(promise: Promise) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    with pytest.raises(RuntimeError), span(provider.get_tracer("assay"), "turn"):
        raise RuntimeError(RAISED)

    [noted] = [each.to_json(indent=None) for each in exporter.get_finished_spans()]
    assert found(noted, ALL) == []
    assert '"error.type": "RuntimeError"' in noted
    promise.kept(_figure(1, [noted]).replace("log lines at DEBUG", "spans"))


@pytest.mark.promise("P14", STATEMENT)
async def test_a_broken_page_is_logged_without_what_it_quotes(promise: Promise) -> None:
    async def broken(request: Request) -> Response:
        raise RuntimeError(RAISED)

    async with (
        assay.open_runtime(model="scripted", embedder="hashing") as runtime,
        open_service(runtime, model="m", keys={SERVICE_KEY: ""}) as service,
    ):
        app = make_app(service, routes=[Route("/broken", broken)])
        transport = httpx2.ASGITransport(app=app, raise_app_exceptions=True)
        async with httpx2.AsyncClient(transport=transport, base_url="http://here") as client:
            with everything_logged() as logged:
                headers = {"Authorization": f"Bearer {SERVICE_KEY}"}
                done = await client.get("/broken", headers=headers)

    assert done.status_code == 500
    assert [line for line in logged.lines if found(line, ALL)] == []
    assert any("RuntimeError" in line and "test_logs" in line for line in logged.lines)
    promise.kept(_figure(1, logged.lines))
