"""A bound on what an endpoint may send, whatever path reads it."""

from collections.abc import AsyncIterator

import httpx2

LARGEST_BODY = 8 * 1024 * 1024
"""Bytes of one answer, error pages and streams included."""


class BodyTooLarge(httpx2.TransportError):
    """An endpoint sent more than an answer can take, or packed it although asked not to."""


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends with an error once it has grown too large."""

    def __init__(self, stream: httpx2.AsyncByteStream, largest: int) -> None:
        self._stream = stream
        self._largest = largest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        async for part in self._stream:
            seen += len(part)
            if seen > self._largest:
                raise BodyTooLarge(f"the endpoint sent more than {self._largest} bytes")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


async def bound_body(response: httpx2.Response) -> None:
    """Event hook: bound the body before anyone reads it.

    Packed bodies are refused, since a few bytes could unpack to any size; the client asks for
    plain ones.

    Raises:
        BodyTooLarge: If the body is packed.
    """
    packed = response.headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("", "identity"):
        raise BodyTooLarge(f"the endpoint sent a body packed with {packed[:20]!r}, asked for plain")
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream, LARGEST_BODY)
