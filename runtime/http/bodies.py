"""Request bodies, bounded in size, time and depth before anything parses them."""

import re
from typing import Final

import anyio
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay.runtime.http.errors import ApiError
from assay.runtime.settings import ServeSettings

_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_BRACKET: Final = re.compile(rb"[\[\]{}]")
_UNHEARD_BYTES: Final = 65_536
_UNHEARD_SECONDS: Final = 1.0


class HeardOut:
    """Reads what a client still sends when its answer begins, a little of it and not for long.

    A connection closed while bytes come in is reset, and the client may never see why it was
    refused; one kept open would go on taking a body that never ends. So what does not end is
    answered and closed, and every other connection serves on.

    Args:
        app: What is inside.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_over = False

        async def receiving() -> Message:
            nonlocal is_over
            message = await receive()
            is_over = not message.get("more_body", False)
            return message

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and not is_over:
                await _heard_out(receiving)
                if not is_over:
                    MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        await self._app(scope, receiving, sending)


async def _heard_out(receive: Receive) -> None:
    left = _UNHEARD_BYTES
    with anyio.move_on_after(_UNHEARD_SECONDS):
        while left > 0:
            message = await receive()
            left -= len(message.get("body", b""))
            if not message.get("more_body", False):
                return


async def read_body(request: Request, settings: ServeSettings) -> bytes:
    """The whole body.

    Raises:
        ApiError: 413 if it is too large, 408 if it does not come, 400 if it is nested too deep.
        ClientDisconnect: If the client goes away meanwhile.
    """
    _refuse_announced(request.headers.get("content-length", ""), settings.body_bytes)
    body = bytearray()
    with anyio.move_on_after(settings.read_seconds):
        async for piece in request.stream():
            body += piece
            if len(body) > settings.body_bytes:
                raise _too_large(settings.body_bytes)
        _check_depth(bytes(body), settings.body_depth)
        return bytes(body)
    raise ApiError(
        408,
        f"the body did not come within {settings.read_seconds:g} s; send it at once",
        code="request_timeout",
    )


async def until_gone(request: Request) -> None:
    """Wait until the client has gone away; call it when the body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def depth_of(body: bytes) -> int:
    """How deep the brackets of a JSON text are nested; brackets in strings do not count."""
    depth = deepest = 0
    for bracket in _BRACKET.findall(_STRING.sub(b"", body)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _check_depth(body: bytes, most: int) -> None:
    if (depth := depth_of(body)) > most:
        raise ApiError(
            400,
            f"the body is nested {depth} deep, the limit is {most} (serve.body_depth)",
            code="body_too_deep",
        )


def _refuse_announced(length: str, most: int) -> None:
    if length.isdecimal() and int(length[:20]) > most:
        raise _too_large(most)


def _too_large(most: int) -> ApiError:
    return ApiError(
        413,
        f"the body is larger than {most:,} bytes (serve.body_bytes); send less of the history",
        code="body_too_large",
    )


__all__ = ["ClientDisconnect", "depth_of", "read_body", "until_gone"]
