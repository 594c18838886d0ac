"""P13: the service survives hostile clients. Each attack here is made over a real socket."""

import socket
from collections.abc import AsyncIterator

import anyio
import anyio.to_thread
import httpx2
import pytest
from tests.runtime.http.served import KEY, PATH, body, served

from assay.errors import ConfigError
from assay.runtime.http.upstream import checked_base_url

from .conftest import Promise

STATEMENT = "the HTTP service survives hostile clients"
SHAPE = {"message", "type", "param", "code"}

pytestmark = pytest.mark.promise("P13", STATEMENT)


def _shape(answer: httpx2.Response) -> set[str]:
    return set(answer.json()["error"])


async def test_nothing_but_health_answers_without_a_key(promise: Promise) -> None:
    places = ["/v1/models", "/v1/models/x", PATH, "/metrics", "/", "/docs", "/v1/../metrics"]
    keys = ["", "Bearer", "Bearer sk-test", f"Basic {KEY}", KEY, f"Bearer {KEY}x"]
    async with served() as one, httpx2.AsyncClient(base_url=one.address) as client:
        health = [await client.get("/health"), await client.get("/ready")]
        refused = [
            await client.request(method, place, headers={"Authorization": key})
            for place in places
            for key in keys
            for method in ("GET", "POST")
        ]

    assert [answer.status_code for answer in health] == [200, 200]
    assert {answer.status_code for answer in refused} == {401}
    assert all(_shape(answer) == SHAPE for answer in refused)
    promise.kept(f"{len(refused)} requests without a valid key refused, health answered")


async def test_large_and_deep_bodies_are_refused_before_they_are_parsed(promise: Promise) -> None:
    most = 65_536
    deep = [b"[" * 5_000, b'{"a":' * 5_000, b'{"messages":' + b"[" * 30_000]
    async with served(body_bytes=most) as one, one.client() as client:
        announced = await client.post(PATH, content=b"x" * (most + 1))
        sent = 0

        async def endless() -> AsyncIterator[bytes]:
            nonlocal sent
            while True:
                sent += 4096
                yield b"x" * 4096

        try:
            dripped = (await client.post(PATH, content=endless())).status_code
        except httpx2.TransportError:
            dripped = 413  # the service hung up on us
        nested = [await client.post(PATH, content=text) for text in deep]
        fine = await client.post(PATH, json=body("[{" * 500))

    assert announced.status_code == dripped == 413
    assert sent < 64 * most
    assert [answer.json()["error"]["code"] for answer in nested] == ["body_too_deep"] * 3
    assert fine.status_code == 200
    promise.kept(f"bodies over {most:,} bytes and {len(deep)} deep ones refused")


def _drip(address: str, text: bytes, connections: int) -> int:
    """Open connections, send part of a request, wait; gives how many the service closed."""
    host, port = address.removeprefix("http://").rsplit(":", 1)
    opened = [socket.create_connection((host, int(port)), timeout=10) for _ in range(connections)]
    closed = 0
    for connection in opened:
        connection.sendall(text)
    for connection in opened:
        with connection:
            answer = connection.recv(4096)
            closed += answer == b"" or b" 408 " in answer
    return closed


HEADERS = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n".encode()


async def test_slow_clients_are_cut_off_and_others_served(promise: Promise) -> None:
    count = promise.times(20, 200)
    slow = [b"", b"GE", HEADERS, HEADERS + b"Content-Length: 100\r\n\r\n{"]
    closed: list[int] = []
    statuses: list[int] = []
    async with (
        served(read_seconds=0.5) as one,
        one.client() as client,
        anyio.create_task_group() as group,
    ):

        async def drip(text: bytes) -> None:
            closed.append(await anyio.to_thread.run_sync(_drip, one.address, text, count))

        for text in slow:
            group.start_soon(drip, text)
        statuses.append((await client.post(PATH, json=body("Hello"))).status_code)

    assert statuses == [200]
    assert closed == [count] * len(slow)
    promise.kept(f"{sum(closed)} slow connections cut off, others served meanwhile")


async def test_a_tenant_over_its_rate_waits_and_the_other_does_not(promise: Promise) -> None:
    async with served(requests_per_minute=5) as one, one.client() as client:
        answers = [await client.post(PATH, json=body(f"Hello {i}")) for i in range(8)]
        async with one.client("sk-test-0002") as other:
            others = await other.post(PATH, json=body("Hello"))

    refused = [answer for answer in answers if answer.status_code == 429]
    assert [answer.status_code for answer in answers[:5]] == [200] * 5
    assert len(refused) == 3
    assert all(1 <= int(answer.headers["retry-after"]) <= 60 for answer in refused)
    assert others.status_code == 200
    promise.kept("5 a minute let through, 3 refused with Retry-After, the other tenant served")


async def _refused(url: str, allowed: list[str]) -> bool:
    try:
        await checked_base_url(url, allowed)
    except ConfigError:
        return True
    return False


async def test_only_listed_base_urls_are_asked(
    promise: Promise, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = {"api.evil.example": "10.0.0.5", "cloud.example": "169.254.169.254"}

    async def resolve(host: str, *_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (inside.get(host, host), 0))]

    monkeypatch.setattr(anyio, "getaddrinfo", resolve)
    bad: list[tuple[str, list[str]]] = [
        ("http://169.254.169.254/v1", []),
        ("http://169.254.169.254/v1", ["http://169.254.169.254/v1"]),
        ("http://10.0.0.5/v1", []),
        ("https://api.evil.example/v1", ["https://api.evil.example/v1"]),
        ("https://cloud.example/v1", ["https://cloud.example/v1"]),
        ("http://127.0.0.1:9/v1", ["https://api.openai.com/v1"]),
        ("http://127.0.0.1@cloud.example/v1", []),
    ]

    refused = [await _refused(url, allowed) for url, allowed in bad]

    assert refused == [True] * len(bad)
    assert not await _refused("http://127.0.0.1:9/v1", [])
    promise.kept(f"{len(bad)} base URLs refused, by list or by resolved address")


async def test_broken_requests_never_end_the_service(promise: Promise) -> None:
    texts = [
        b"\0" * 100,
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1 HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000,
        HEADERS + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
        HEADERS + b"Content-Length: 4\r\n\r\n\xff\xfe\xfd\xfc",
        HEADERS + b'Content-Length: 12\r\n\r\n{"model":NaN',
    ]
    async with served(read_seconds=0.5) as one, one.client() as client:
        for text in texts:
            await anyio.to_thread.run_sync(_throw, one.address, text)
        alive = await client.post(PATH, json=body("Hello"))

    assert alive.status_code == 200
    promise.kept(f"{len(texts)} broken requests, the service answers after each")


def _throw(address: str, text: bytes) -> None:
    host, port = address.removeprefix("http://").rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=1) as connection:
        try:
            connection.sendall(text)
            while connection.recv(65_536):
                pass
        except OSError:
            return
