"""P11: a bad endpoint gives a typed outcome in time, and leaves nothing behind."""

import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import anyio
import anyio.lowlevel
import pytest

from assay.errors import ModelError, ModelUnavailable
from assay.runtime.clock import StoppedClock
from assay.runtime.models.calling import Waits
from assay.runtime.models.embedding import open_embedding_endpoint
from assay.runtime.models.openai import open_endpoint
from assay.runtime.settings import ModelSettings

from ..runtime.models.fault_server import (  # noqa: TID252 - the fault server of the models' tests
    FaultServer,
    answer,
    embeddings,
    http,
    serving,
)
from ..runtime.models.support import asking  # noqa: TID252
from .conftest import Promise
from .endpoint_faults import EMBEDDED, NOW, OFFSETS, STREAM, STREAMED, WHOLE, Fault, cut_at

STATEMENT = "a bad endpoint gives a typed outcome in time, keeps nothing and no connection"
SETTINGS = ModelSettings(timeout=0.15, retries=1, retry_seconds=0.4, concurrency=1)
"""One connection: a call that kept it would leave none for the next."""

DEADLINE = 1.5
"""Seconds for what ``SETTINGS`` allow .4: the machine may be busy."""

WAITS = Waits(0.001, 0.002)
KEYS = {"OPENAI_API_KEY": "sk-canary-1234567890"}

Ask = Callable[[], Awaitable[object]]
"""Asks once."""


class Client(NamedTuple):
    """One way to an endpoint.

    Attributes:
        ask: Opens it and gives a way to ask.
        right: A right answer to it.
        before: Right answers it needs when it is opened.
    """

    ask: Callable[[str], "AsyncGenerator[Ask]"]
    right: bytes
    before: Sequence[bytes] = ()


async def _whole(url: str) -> AsyncGenerator[Ask]:
    async with open_endpoint(
        "m", settings=SETTINGS, base_url=url, env=KEYS, waits=WAITS, clock=StoppedClock(NOW)
    ) as model:

        async def ask() -> object:
            completion = await model.complete(asking(top_logprobs=1))
            # No number is no measurement: nothing that could be read as certainty.
            assert completion.logprobs is None
            assert completion.usage.prompt_tokens > 0
            return completion.text

        yield ask


async def _streamed(url: str) -> AsyncGenerator[Ask]:
    async with open_endpoint(
        "m", settings=SETTINGS, base_url=url, env=KEYS, waits=WAITS, clock=StoppedClock(NOW)
    ) as model:

        async def ask() -> object:
            return (await model.complete(asking(), sink=lambda _: None)).text

        yield ask


async def _embedded(url: str) -> AsyncGenerator[Ask]:
    async with open_embedding_endpoint(
        "e", settings=SETTINGS, base_url=url, env=KEYS, waits=WAITS, clock=StoppedClock(NOW)
    ) as embedder:

        async def ask() -> object:
            return (await embedder.embed(["Paris"], kind="query")).tolist()

        yield ask


ROW = embeddings([[1.0, 0.0]])
CHAT = Client(_whole, http(answer("Paris")))
STREAMING = Client(_streamed, STREAM)
EMBEDDER = Client(_embedded, ROW, before=[ROW])


async def suffer(client: Client, fault: Fault) -> str:
    """Ask through a fault, then once more; gives what is wrong, or nothing."""
    rest = [fault.then] if fault.then else [fault.reply] * (1 if _is_retried(fault) else 0)
    replies = [*client.before, fault.reply, *rest, client.right]
    async with serving(*replies) as server:
        async with asynccontextmanager(client.ask)(server.url) as ask:
            came = await _outcome(ask)
            # A streamed fault may or may not be tried again: go on to the right answer.
            server.skip_to_last()
            again = await _outcome(ask)
        left = await _left_open(server)
    wrong = "" if _expected(came, fault) else f"expected {fault.outcome}, got {came!r}"
    wrong = wrong or ("" if _is_right(again) else f"then expected a right answer, got {again!r}")
    return f"{fault.name}: {wrong or f'{left} connections left'}" if wrong or left else ""


def _is_retried(fault: Fault) -> bool:
    return fault.outcome is ModelUnavailable


async def _outcome(ask: Ask) -> object:
    with anyio.move_on_after(DEADLINE):
        try:
            return await ask()
        except ModelError as error:
            return error
    return "nothing in time"


def _expected(came: object, fault: Fault) -> bool:
    return _is_right(came) if fault.outcome is None else type(came) is fault.outcome


def _is_right(came: object) -> bool:
    return came in ("Paris", [[1.0, 0.0]])


async def _left_open(server: FaultServer) -> int:
    with anyio.move_on_after(DEADLINE):
        while server.connections:
            await anyio.lowlevel.checkpoint()
    return server.connections


async def wrong_of(client: Client, faults: Sequence[Fault]) -> list[str]:
    return [wrong for fault in faults if (wrong := await suffer(client, fault))]


@pytest.mark.promise("P11", STATEMENT)
@pytest.mark.parametrize(
    ("client", "faults", "what"),
    [
        pytest.param(CHAT, WHOLE, "of a chat model", id="chat"),
        pytest.param(STREAMING, STREAMED, "of a stream", id="stream"),
        pytest.param(EMBEDDER, EMBEDDED, "of an embedder", id="embedder"),
    ],
)
async def test_every_fault_of_the_table_is_handled(
    client: Client, faults: Sequence[Fault], what: str, promise: Promise
) -> None:
    wrong = await wrong_of(client, faults)

    assert wrong == []
    promise.kept(f"{len(faults)} of {len(faults)} endpoint faults handled, {what}")


@pytest.mark.promise("P11", STATEMENT)
async def test_a_stream_cut_at_any_offset_is_no_answer(promise: Promise) -> None:
    offsets = OFFSETS if promise.long else OFFSETS[::9]

    wrong = await wrong_of(STREAMING, [cut_at(offset) for offset in offsets])

    assert wrong == []
    promise.kept(f"{len(offsets)} of {len(offsets)} endpoint faults handled, cuts of a stream")


@pytest.mark.promise("P11", STATEMENT)
async def test_an_endpoint_that_is_not_there_is_told(promise: Promise) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    urls = [f"http://127.0.0.1:{port}/v1", "http://no-such-host.invalid/v1"]

    came = [await _asked_at(client, url) for client in (CHAT, STREAMING) for url in urls]
    opened = [await _opened_at(url) for url in urls]

    assert [type(outcome) for outcome in (*came, *opened)] == [ModelUnavailable] * 6
    promise.kept("6 of 6 endpoint faults handled, no connection and no such host")


async def _asked_at(client: Client, url: str) -> object:
    async with asynccontextmanager(client.ask)(url) as ask:
        return await _outcome(ask)


async def _opened_at(url: str) -> object:
    async def open_it() -> object:
        async with asynccontextmanager(_embedded)(url):
            return "open"

    return await _outcome(open_it)
