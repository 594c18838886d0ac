"""Opening a connection to NATS: what makes a server unusable is said at once, and how to mend it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from nats.aio.client import Client
from nats.errors import Error
from nats.js import JetStreamContext

from assay.errors import BusError
from assay.runtime.nats.address import Address, address_of
from assay.runtime.nats.connection import Connection

_REQUEST_SECONDS = 2.0
_RECONNECT_SECONDS = 0.2
_CONNECT_SECONDS = 3
_CLOSE_SECONDS = 2.0
_PING_SECONDS = 10
_HANDSHAKES = 30
_OLDEST = (2, 11)
_HOW_TO_START = "start one with `nats-server -js`, or give another --bus"


class _NotEncrypted(Error):
    """A server that was to be asked over TLS takes connections in plain text."""


class _EncryptedClient(Client):
    """Leaves a server that does not ask for TLS, before it tells it a password; at each connection."""

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:  # noqa: FBT001, FBT002  # the client's signature
        if initial_connection and not info.get("tls_required"):
            raise _NotEncrypted("it does not ask for TLS")
        await super()._process_info(info, initial_connection)


@asynccontextmanager
async def connected(url: str) -> AsyncGenerator[Connection]:
    """A connection to a server with JetStream; it is made anew whenever it breaks.

    Args:
        url: As for ``address_of``.

    Raises:
        ConfigError: If the URL is none.
        BusError: If the server is down, refuses the credentials, is too old, lacks JetStream, or TLS
            where the URL asks for it.
    """
    address = address_of(url)
    client, connection = await _connect(address)
    try:
        await _check(client, connection)
        connection.is_open = True
        yield connection
    finally:
        connection.is_open = False
        await _close(client)


async def _connect(address: Address) -> tuple[Client, Connection]:
    tries = 0
    while True:
        client = _EncryptedClient() if address.servers[0].startswith("tls://") else Client()
        connection = Connection(client, address)
        error = await _failure(client, connection, address)
        if error is None:
            return client, connection
        tries += 1
        # A server that refuses says why and hangs up; what it says may be lost with the connection.
        if tries == _HANDSHAKES or not isinstance(error, ConnectionResetError | BrokenPipeError):
            raise _not_connected(address, error) from error


async def _failure(client: Client, connection: Connection, address: Address) -> Exception | None:
    """Connect; gives why it failed, if it did."""
    last: list[Exception] = []

    async def note(error: Exception) -> None:
        last[:] = [error]

    async def lost() -> None:
        connection.note_lost()

    async def reconnected() -> None:
        await connection.note_reconnected()

    try:
        await client.connect(
            address.servers,
            error_cb=note,
            disconnected_cb=lost,
            reconnected_cb=reconnected,
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            connect_timeout=_CONNECT_SECONDS,
            ping_interval=_PING_SECONDS,
        )
    except (Error, OSError) as error:
        await _close(client)
        return last[0] if last else error
    except BaseException:
        await _close(client)
        raise
    # A connection that was never made fails at once; one that breaks is made anew for ever.
    client.options.update(
        allow_reconnect=True, max_reconnect_attempts=-1, reconnect_time_wait=_RECONNECT_SECONDS
    )
    return None


async def _close(client: Client) -> None:
    # What could not be sent to a server that is away cannot be flushed to it now.
    with anyio.CancelScope(shield=True), anyio.move_on_after(_CLOSE_SECONDS), suppress(OSError):
        await client.close()


def _not_connected(address: Address, error: Exception) -> BusError:
    if "authorization" in str(error).lower():
        return BusError(
            f"the bus at {address.shown} refused the user or password; "
            "give them as nats://user:password@host:port"
        )
    if isinstance(error, _NotEncrypted):
        return BusError(
            f"expected TLS of the bus at {address.shown}, but the server takes connections in plain "
            "text; set up tls in its configuration, or give it as nats://host:port"
        )
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return BusError(
            f"the server at {address.shown} hangs up ({error}); if it is a NATS server that asks "
            "for a user and password, give them as nats://user:password@host:port"
        )
    return BusError(f"no NATS server answers at {address.shown} ({error}); {_HOW_TO_START}")


async def _check(client: Client, connection: Connection) -> None:
    version = client.connected_server_version
    if (version.major, version.minor) < _OLDEST:
        raise BusError(
            f"the NATS server at {connection.shown} is version {version.major}.{version.minor}."
            f"{version.patch}; at least {_OLDEST[0]}.{_OLDEST[1]} is needed"
        )
    try:
        await JetStreamContext(client, timeout=_REQUEST_SECONDS).account_info()
    except (Error, OSError) as error:
        raise BusError(
            f"the NATS server at {connection.shown} runs without JetStream; "
            "start it with `nats-server -js`"
        ) from error
