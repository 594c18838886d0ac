"""Lines from standard input, from a terminal, a pipe or a file, without blocking the loop."""

import os
import sys
from collections.abc import AsyncIterator

import anyio
import anyio.to_thread

_CHUNK = 65_536


async def typed_lines(prompt: str) -> AsyncIterator[str]:
    """Lines as they come, without their ends; ends with the input.

    Args:
        prompt: Shown before each line on a terminal only.
    """
    descriptor = sys.stdin.fileno()
    shown = prompt if sys.stdin.isatty() else ""
    rest = b""
    while True:
        if b"\n" in rest:
            line, _, rest = rest.partition(b"\n")
            yield _decoded(line)
            continue
        print(shown, end="", flush=True)
        chunk = await _read(descriptor)
        if not chunk:
            break
        rest += chunk
    if rest:
        yield _decoded(rest)


async def _read(descriptor: int) -> bytes:
    try:
        await anyio.wait_readable(descriptor)
    except (
        OSError,
        NotImplementedError,
    ):  # a regular file is always ready, and cannot be waited for
        return await anyio.to_thread.run_sync(os.read, descriptor, _CHUNK)
    return os.read(descriptor, _CHUNK)


def _decoded(line: bytes) -> str:
    """Bytes that are no UTF-8 stay recognisable, so that they are refused and not changed."""
    return line.decode("utf-8", "surrogateescape").rstrip("\r")
