"""What a client sees, and the log says, of a first piece that is late, a bank that is away, and a stop."""

import logging
from typing import NoReturn

import anyio
import httpx2
import pytest

from assay.errors import (
    AssayError,
    BusError,
    JobFailed,
    LeaseLost,
    ModelRefused,
    RecordNotFound,
    StoreCorrupt,
    StoreError,
    TurnFailed,
)
from assay.guards.protocols import Completion, DeltaSink, Request
from assay.runtime.http import chat
from assay.runtime.http.errors import api_error, log_broken, reason_of
from assay.runtime.models.scripted import ScriptedModel

from .served import KEY, PATH, Served, body, served

ADDRESS = "postgresql://assay@db.example:5432/assay"
AWAY = StoreError(f"the bank {ADDRESS} cannot be used: refused; start PostgreSQL")


class LateModel(ScriptedModel):
    """Says nothing of the reply until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_to_reply = anyio.Event()
        self.may_begin = anyio.Event()

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        if sink is not None:
            self.asked_to_reply.set()
            await self.may_begin.wait()
        return await super().complete(request, sink=sink)


async def test_a_stream_whose_first_piece_is_late_lives_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chat, "HEAD_SECONDS", 0.01)
    monkeypatch.setattr(chat, "PING_SECONDS", 0.01)
    model = LateModel()
    async with (
        served(model=model) as one,
        one.client() as client,
        client.stream("POST", PATH, json=body("My cat is Miso.", stream=True)) as answer,
    ):
        lines = answer.aiter_lines()
        seen = [await anext(lines)]
        while seen[-1] != ": still here":
            seen.append(await anext(lines))
        model.may_begin.set()
        rest = [line async for line in lines]
        memories = await one.service.runtime.memories(one.service.namespace_of("acme", "ann"))
        figures = one.figures()

    assert answer.status_code == 200
    assert rest[-2:] == ["data: [DONE]", ""]
    assert "error" not in "".join(rest)
    assert [record.text for record in memories] == ["My cat is Miso."]
    assert "assay_dropped_total 0.0" in figures


def _take_away(one: Served, monkeypatch: pytest.MonkeyPatch, error: AssayError) -> None:
    """From now on the journal cannot be read."""

    async def fail(*_: object, **__: object) -> NoReturn:
        raise error

    journal = one.service.runtime.bank.journal
    for name in ("read", "sessions"):
        monkeypatch.setattr(type(journal), name, fail)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_bank_that_is_away_is_a_503_and_the_log_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, stream: bool
) -> None:
    async with served() as one, one.client() as client:
        _take_away(one, monkeypatch, AWAY)

        answer = await client.post(PATH, json=body("Hello", stream=stream))

    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (503, "bank_unavailable")
    assert int(answer.headers["retry-after"]) > 0
    assert "db.example" not in answer.text
    assert f"request.failed: StoreError: {AWAY}" in caplog.messages


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [(AWAY, 503, "cannot be used now"), (StoreCorrupt(f"{ADDRESS} is damaged"), 500, "is damaged")],
)
async def test_the_inspector_says_plainly_that_the_bank_is_of_no_use(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: StoreError,
    status: int,
    words: str,
) -> None:
    async with served() as one, one.client() as client:
        await client.post("/inspect/sign-in", data={"key": KEY})
        _take_away(one, monkeypatch, error)

        page = await client.get("/inspect/")

    assert page.status_code == status
    assert words in page.text
    assert "db.example" not in page.text
    assert f"request.failed: {type(error).__name__}: {error}" in caplog.messages


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (AWAY, 503, "bank_unavailable"),
        (TurnFailed(str(AWAY), kind="StoreError"), 503, "bank_unavailable"),
        (LeaseLost("taken over"), 503, "session_taken_over"),
        (BusError("away"), 503, "no_worker"),
        (StoreCorrupt("damaged"), 500, "internal_error"),
    ],
)
def test_what_may_pass_is_worth_another_try(error: AssayError, status: int, code: str) -> None:
    told = api_error(error)

    assert (told.status, told.code) == (status, code)
    assert (told.retry_after is not None) == (status == 503)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (AWAY, f"StoreError: {AWAY}"),
        (TurnFailed("it is away", kind="StoreError"), "StoreError: it is away"),
        (StoreError("invalid input: 'My cat is"), "StoreError: invalid input:..."),
        (StoreError("not stored\nDETAIL: My cat"), "StoreError: not stored"),
        (RecordNotFound("r1", "ann"), "RecordNotFound"),
        (ModelRefused("You said Miso"), "ModelRefused"),
        (TurnFailed("You said Miso", kind="ModelRefused"), "ModelRefused"),
        (JobFailed("You said Miso", kind="BusError"), "BusError"),
        (ValueError("You said Miso"), "ValueError"),
    ],
)
def test_a_reason_holds_nothing_that_anybody_said(error: AssayError, reason: str) -> None:
    assert reason_of(error) == reason


def test_a_bug_is_logged_with_its_kind_and_place(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> NoReturn:
        raise RuntimeError("You said Miso")

    with pytest.raises(RuntimeError) as raised:
        broken()
    log_broken(raised.value)

    [line] = caplog.messages
    assert line.startswith("request.broken: RuntimeError at ")
    assert "test_failing.py" in line
    assert "Miso" not in line


@pytest.mark.parametrize("stream", [False, True])
async def test_a_stop_that_cannot_wait_tells_the_client_to_try_again(
    caplog: pytest.LogCaptureFixture, *, stream: bool
) -> None:
    model = LateModel()
    answers: list[httpx2.Response] = []
    async with served(model=model, stop_seconds=0.05) as one, one.client() as client:

        async def ask() -> None:
            answers.append(await client.post(PATH, json=body("Hello", stream=stream)))

        with caplog.at_level(logging.ERROR):
            async with anyio.create_task_group() as group:
                group.start_soon(ask)
                await model.asked_to_reply.wait()
                one.stop.set()
        memories = await one.service.runtime.memories(one.service.namespace_of("acme", "ann"))

    [answer] = answers
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "service_stopping")
    assert int(answer.headers["retry-after"]) > 0
    assert memories == []
    assert caplog.messages == []


RIGHTS = f"Authorization: Bearer {KEY}\r\n"


@pytest.mark.parametrize(
    ("path", "rights", "status"),
    [(PATH, "", 401), ("/v1/nothing", RIGHTS, 404), ("/health", "", 405), (PATH, RIGHTS, 413)],
)
async def test_a_refused_client_that_still_sends_is_told_why_and_may_ask_again(
    path: str, rights: str, status: int
) -> None:
    said = b'{"messages": []}' * 100
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\n{rights}Content-Length: {len(said)}\r\n\r\n"
    async with served(body_bytes=1024) as service:
        port = int(service.address.rpartition(":")[2])
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(head.encode())
            with pytest.raises(TimeoutError), anyio.fail_after(0.05):
                await stream.receive()  # not before the body has come
            await stream.send(said)
            refused = await stream.receive()
            await stream.send(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")

            assert refused.startswith(b"HTTP/1.1 %d" % status)
            assert (await stream.receive()).startswith(b"HTTP/1.1 200")


async def test_a_refused_client_that_never_ends_is_told_why_and_hung_up_on() -> None:
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n"
    async with served() as service:
        port = int(service.address.rpartition(":")[2])
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(head.encode() + b"x" * 70_000)
            with anyio.fail_after(10):
                answer = await stream.receive()

            assert answer.startswith(b"HTTP/1.1 401")
            assert b"\r\nconnection: close\r\n" in answer.lower()
