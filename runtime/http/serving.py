"""Listening: a socket, patience with slow clients that ends, and a stop that loses nothing."""

import asyncio
import errno
import logging
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from math import ceil
from typing import Any

import anyio
import anyio.to_thread
import h11
import sse_starlette.sse
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from assay.errors import ConfigError
from assay.runtime.http.service import Service
from assay.runtime.settings import ServeSettings

MOST_CONNECTIONS = 4096
"""Connections at once; more are answered 503."""

KEEP_ALIVE_SECONDS = 30

LAST_WORDS_SECONDS = 2
"""Time to tell the clients of turns that could not be waited for."""

HEADER_BYTES = 32_768


async def bind(settings: ServeSettings) -> socket.socket:
    """The socket to listen at; closing it is the caller's.

    Raises:
        ConfigError: If the address cannot be had.
    """
    host, port = settings.host, settings.port
    try:
        return await anyio.to_thread.run_sync(_bound, host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"port {port} of {host} is in use; stop what listens there, or pass another --port"
            ) from error
        raise ConfigError(
            f"cannot listen at {host!r}, port {port}: {error.strerror or error}; pass another --host"
        ) from error


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=1024)


async def listen(
    app: ASGIApp,
    service: Service,
    listening: socket.socket,
    *,
    started: Callable[[], None],
    stop: anyio.Event | None = None,
) -> signal.Signals | None:
    """Serve until told to stop, by SIGTERM or SIGINT; open requests may end, new ones are refused.

    Args:
        app: What is served.
        service: Told first, so that ``/ready`` says so.
        listening: Bound already.
        started: Called once requests are taken.
        stop: Stops it too.

    Returns:
        The signal that stopped it; ``None`` if it ended otherwise.
    """
    server = _Server(_config(app, service.settings), tell_started=started)
    stopped_by: signal.Signals | None = None

    async def end_turns() -> None:
        await anyio.sleep(service.settings.stop_seconds)
        service.end_turns()

    def end() -> None:
        if not service.is_stopping:
            group.start_soon(end_turns)
        service.is_stopping = server.should_exit = True
        sse_starlette.sse.AppStatus.should_exit = True  # ends the inspector's streams

    async def wait_for_event(event: anyio.Event) -> None:
        await event.wait()
        end()

    async def wait_for_signal() -> None:
        nonlocal stopped_by
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for number in signals:
                server.force_exit = stopped_by is not None  # the second one does not wait
                stopped_by = stopped_by or number
                end()

    async with anyio.create_task_group() as group:
        group.start_soon(wait_for_signal)
        if stop is not None:
            group.start_soon(wait_for_event, stop)
        await server.serve(sockets=[listening])
        group.cancel_scope.cancel()
    sse_starlette.sse.AppStatus.should_exit = False
    return stopped_by


def _config(app: ASGIApp, settings: ServeSettings) -> uvicorn.Config:
    protocol = type("Patient", (PatientProtocol,), {"read_seconds": settings.read_seconds})
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=ceil(settings.stop_seconds) + LAST_WORDS_SECONDS,
        h11_max_incomplete_event_size=HEADER_BYTES,
        proxy_headers=False,
    )


class _Server(uvicorn.Server):
    """Leaves signals to :func:`listen`: they would end the process before the bank is closed."""

    def __init__(self, config: uvicorn.Config, *, tell_started: Callable[[], None]) -> None:
        super().__init__(config)
        self.tell_started = tell_started

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.tell_started()


class PatientProtocol(H11Protocol):
    """Closes a connection whose headers do not come within ``read_seconds``, however slowly they drip.

    uvicorn's own timer ends with the first byte of a request.
    """

    read_seconds = 20.0
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401  # as the base class has it
        super().connection_made(transport)
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._wait_for_headers()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_headers(self) -> None:
        if self._patience is None:
            self._patience = self.loop.call_later(self.read_seconds, self._out_of_patience)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _out_of_patience(self) -> None:
        self._patience = None
        if self.conn.their_state is h11.IDLE:
            logging.getLogger("assay.http").info("connection.too_slow")
            self.transport.close()
