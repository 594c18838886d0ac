"""A real HTTP server on this machine that answers what a test tells it to, right or wrong."""

import inspect
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio
from anyio.abc import SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

Reply: TypeAlias = (
    bytes | Callable[[dict[str, Any]], bytes] | Callable[[SocketStream], Awaitable[None]]
)
"""Bytes to send as they are, a function of the request that gives them, or an async function that
does what it likes with the connection."""


class FaultServer:
    """Answers request after request with the replies in order; the last one again and again."""

    def __init__(self, replies: Sequence[Reply], port: int) -> None:
        self._replies = list(replies)
        self.url = f"http://127.0.0.1:{port}/v1"
        self.bodies: list[dict[str, Any]] = []
        self.heads: list[str] = []
        self.connections = 0

    async def handle(self, stream: SocketStream) -> None:
        self.connections += 1
        try:
            async with stream:
                await self._talk(stream)
        except (anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead):
            pass
        except anyio.ClosedResourceError:
            pass
        finally:
            self.connections -= 1

    async def _talk(self, stream: SocketStream) -> None:
        incoming = BufferedByteReceiveStream(stream)
        while True:
            head = (await incoming.receive_until(b"\r\n\r\n", 65_536)).decode()
            body = await incoming.receive_exactly(_length(head))
            reply = self._replies[min(len(self.heads), len(self._replies) - 1)]
            self.heads.append(head)
            self.bodies.append(json.loads(body))
            if inspect.iscoroutinefunction(reply):
                await reply(stream)
                return
            await stream.send(reply if isinstance(reply, bytes) else reply(self.bodies[-1]))


@asynccontextmanager
async def serving(*replies: Reply) -> AsyncGenerator[FaultServer]:
    """A server for the length of a block."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610
        server = FaultServer(replies, port)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, server.handle)
            yield server
            tasks.cancel_scope.cancel()


def http(
    body: bytes | str | object,
    *,
    status: int = 200,
    kind: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """A whole HTTP answer."""
    data = (
        body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else _json(body)
    )
    lines = [
        f"HTTP/1.1 {status} Status",
        f"Content-Type: {kind}",
        f"Content-Length: {len(data)}",
        *(f"{name}: {value}" for name, value in (headers or {}).items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def answer(text: str | None = "Paris", **changes: Any) -> dict[str, Any]:
    """The JSON of a right answer; ``changes`` replace parts of its one choice or of its top."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    choice |= {name: value for name, value in changes.items() if name in _OF_CHOICE}
    top = {
        "id": "x",
        "object": "chat.completion",
        "model": "m",
        "choices": [choice],
        "usage": {"prompt_tokens": 11, "completion_tokens": 1, "total_tokens": 12},
    }
    return top | {name: value for name, value in changes.items() if name not in _OF_CHOICE}


def embeddings(rows: Sequence[Sequence[float]]) -> bytes:
    """An HTTP answer with these vectors."""
    data = [{"index": i, "embedding": list(row)} for i, row in enumerate(rows)]
    return http({"model": "e", "data": data})


def vectors(body: dict[str, Any]) -> bytes:
    """Answers rightly: three numbers for each text."""
    return embeddings([[1.0, len(text), sum(text.encode()) % 7] for text in body["input"]])


def streamed(*chunks: object, end: str = "data: [DONE]\n\n", length: int | None = None) -> bytes:
    """An HTTP answer of server-sent events; ``length`` announces more bytes than there are."""
    text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + end
    whole = http(text, kind="text/event-stream")
    if length is not None:
        announced = f"Content-Length: {len(text.encode())}".encode()
        whole = whole.replace(announced, f"Content-Length: {length}".encode())
    return whole


def chunk(text: str | None = None, *, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    """One streamed chunk."""
    return {
        "model": "m",
        "choices": [{"index": 0, "delta": {"content": text, **delta}, "finish_reason": finish}],
    }


def usage_chunk() -> dict[str, Any]:
    """The last chunk, with the usage."""
    return {"model": "m", "choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 2}}


def then_close(data: bytes) -> Reply:
    """Send these bytes and close the connection."""

    async def reply(stream: SocketStream) -> None:
        await stream.send(data)

    return reply


def then_silence(data: bytes = b"") -> Reply:
    """Send these bytes and then nothing, for ever."""

    async def reply(stream: SocketStream) -> None:
        if data:
            await stream.send(data)
        await stream.receive()

    return reply


def dripping(data: bytes, *, seconds: float) -> Reply:
    """Send byte by byte."""

    async def reply(stream: SocketStream) -> None:
        for byte in data:
            await stream.send(bytes([byte]))
            await anyio.sleep(seconds)

    return reply


_OF_CHOICE = frozenset({"message", "finish_reason", "logprobs"})


def _json(body: object) -> bytes:
    return json.dumps(body).encode()  # writes NaN as it is, like the endpoints that do


def _length(head: str) -> int:
    for line in head.lower().splitlines():
        if line.startswith("content-length:"):
            return int(line.partition(":")[2])
    return 0
