"""A real HTTP server on this machine that answers what a test tells it to, right or wrong."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import anyio
from anyio.abc import SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

Talk: TypeAlias = Callable[[SocketStream], Awaitable[None]]
"""Does what it likes with the connection, and closes it."""


@dataclass(frozen=True)
class Fitting:
    """A reply that depends on the request: its path and its JSON."""

    to: "Callable[[str, dict[str, Any]], Reply]"


Reply: TypeAlias = bytes | Talk | Fitting
"""Bytes to send as they are, what talks with the connection, or what chooses one of both."""


class FaultServer:
    """Answers request after request with the replies in order; the last one again and again."""

    def __init__(self, replies: Sequence[Reply], port: int) -> None:
        self._replies = list(replies)
        self.url = f"http://127.0.0.1:{port}/v1"
        self.bodies: list[dict[str, Any]] = []
        self.heads: list[str] = []
        self.connections = 0
        self._skipped = 0

    def skip_to_last(self) -> None:
        """Answer what comes from now on with the last reply."""
        self._skipped = len(self._replies)

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
            reply = self._replies[min(len(self.heads) + self._skipped, len(self._replies) - 1)]
            self.heads.append(head)
            self.bodies.append(json.loads(body))
            if isinstance(reply, Fitting):
                reply = reply.to(head.split()[1], self.bodies[-1])
            assert not isinstance(reply, Fitting)
            if not isinstance(reply, bytes):
                await reply(stream)
                return
            await stream.send(reply)


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


def _three_numbers(_path: str, body: dict[str, Any]) -> bytes:
    return embeddings([[1.0, len(text), sum(text.encode()) % 7] for text in body["input"]])


vectors = Fitting(_three_numbers)
"""Answers rightly: three numbers for each text."""


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
            with anyio.move_on_after(seconds):  # a client that goes is noticed at once
                await stream.receive()

    return reply


_OF_CHOICE = frozenset({"message", "finish_reason", "logprobs"})


def _json(body: object) -> bytes:
    return json.dumps(body).encode()  # writes NaN as it is, like the endpoints that do


def _length(head: str) -> int:
    for line in head.lower().splitlines():
        if line.startswith("content-length:"):
            return int(line.partition(":")[2])
    return 0
