"""Ways from workers to servers that can be cut: network namespaces where the machine allows them, else proxies.

A cut loses packets without a word: connections stay as they are on both ends and nothing arrives.
A proxy cannot lose packets; it holds them back, and closes the connections when it is healed.
"""

import os
import subprocess
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, SocketStream, TaskGroup

LOCAL = "127.0.0.1"
_NETWORK = f"10.213.{os.getpid() % 256}"
_NAME = f"af{os.getpid() % 100_000}"


class Ways(Protocol):
    """From each worker to the servers, by the worker's number from 0."""

    @property
    def kind(self) -> str:
        """What cuts."""
        ...

    @property
    def host(self) -> str:
        """Where servers must listen."""
        ...

    def command(self, worker: int) -> Sequence[str]:
        """What begins the command line of a worker."""
        ...

    async def url(self, worker: int, url: str) -> str:
        """A server's URL as a worker reaches it."""
        ...

    async def cut(self, worker: int) -> None:
        """Let nothing through."""
        ...

    async def heal(self, worker: int) -> None:
        """Let everything through again."""
        ...


class Namespaces:
    """A network namespace for each worker, all plugged into one bridge where the servers listen."""

    kind = "network namespaces"
    host = f"{_NETWORK}.1"

    def command(self, worker: int) -> Sequence[str]:
        """As ``Ways``."""
        return ("ip", "netns", "exec", f"{_NAME}n{worker}")

    async def url(self, worker: int, url: str) -> str:
        """As ``Ways``: all see the same address."""
        del worker
        return url

    async def cut(self, worker: int) -> None:
        """As ``Ways``: the plug is pulled at the bridge."""
        await anyio.to_thread.run_sync(_ip, "link", "set", f"{_NAME}p{worker}", "down")

    async def heal(self, worker: int) -> None:
        """As ``Ways``."""
        await anyio.to_thread.run_sync(_ip, "link", "set", f"{_NAME}p{worker}", "up")


class Proxies:
    """A proxy in this process for each worker and server."""

    kind = "TCP proxies"
    host = LOCAL

    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._open: dict[int, anyio.Event] = {}
        self._cut: dict[int, anyio.Event] = {}

    def command(self, worker: int) -> Sequence[str]:
        """As ``Ways``."""
        del worker
        return ()

    async def url(self, worker: int, url: str) -> str:
        """As ``Ways``: that of a new proxy."""
        self._cut.setdefault(worker, anyio.Event())
        self._open.setdefault(worker, _set())
        server = urlsplit(url).port or 0
        listener = await anyio.create_tcp_listener(local_host=LOCAL)
        port: int = listener.listeners[0].extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - no query

        async def serve(client: SocketStream) -> None:
            await self._forward(worker, client, server)

        self._group.start_soon(listener.serve, serve)
        return _at(url, LOCAL, port)

    async def cut(self, worker: int) -> None:
        """As ``Ways``."""
        self._open[worker] = anyio.Event()
        self._cut[worker].set()

    async def heal(self, worker: int) -> None:
        """As ``Ways``."""
        self._cut[worker] = anyio.Event()
        self._open[worker].set()

    async def _forward(self, worker: int, client: SocketStream, port: int) -> None:
        await self._open[worker].wait()
        async with client:
            try:
                server = await anyio.connect_tcp(LOCAL, port)
            except OSError:
                return
            async with server, anyio.create_task_group() as group:
                group.start_soon(self._until_healed, worker, group.cancel_scope)
                for one, other in ((client, server), (server, client)):
                    group.start_soon(self._copy, worker, one, other, group.cancel_scope)

    async def _until_healed(self, worker: int, connection: anyio.CancelScope) -> None:
        await self._cut[worker].wait()
        await self._open[worker].wait()
        connection.cancel()

    async def _copy(
        self,
        worker: int,
        source: ByteReceiveStream,
        target: ByteSendStream,
        connection: anyio.CancelScope,
    ) -> None:
        try:
            async for data in source:
                if not self._open[worker].is_set():
                    return
                await target.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        if self._open[worker].is_set():
            connection.cancel()


def _set() -> anyio.Event:
    event = anyio.Event()
    event.set()
    return event


def _at(url: str, host: str, port: int) -> str:
    parts = urlsplit(url)
    user, at, _ = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user}{at}{host}:{port}"))


@asynccontextmanager
async def ways(workers: int, *, proxies: bool = False) -> AsyncGenerator[Ways]:
    """The best ways this machine allows.

    Args:
        workers: How many need one.
        proxies: Take proxies in any case.
    """
    if not proxies and _can_namespaces():
        with _namespaces(workers):
            yield Namespaces()
        return
    async with anyio.create_task_group() as group:
        yield Proxies(group)
        group.cancel_scope.cancel()


def _can_namespaces() -> bool:
    if os.geteuid() != 0:
        return False
    try:
        with _namespaces(1):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


@contextmanager
def _namespaces(workers: int) -> Generator[None]:
    bridge = f"{_NAME}b"
    try:
        _ip("link", "add", bridge, "type", "bridge")
        _ip("addr", "add", f"{Namespaces.host}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for worker in range(workers):
            _plug_in(worker, bridge)
        yield
    finally:
        for worker in range(workers):
            _ip("netns", "delete", f"{_NAME}n{worker}", check=False)
            _ip("link", "delete", f"{_NAME}p{worker}", check=False)
        _ip("link", "delete", bridge, check=False)


def _plug_in(worker: int, bridge: str) -> None:
    name, plug, inside = f"{_NAME}n{worker}", f"{_NAME}p{worker}", f"{_NAME}i{worker}"
    _ip("netns", "add", name)
    _ip("link", "add", plug, "type", "veth", "peer", "name", inside, "netns", name)
    _ip("link", "set", plug, "master", bridge, "up")
    _ip("-netns", name, "addr", "add", f"{_NETWORK}.{worker + 2}/24", "dev", inside)
    for device in (inside, "lo"):
        _ip("-netns", name, "link", "set", device, "up")


def _ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=True)  # noqa: S603, S607 - our own words
