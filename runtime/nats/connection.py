"""One connection to NATS in the words of the bus: requests outlive the server, errors are mapped."""

import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import NamedTuple, TypeVar

import anyio
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import (
    ConnectionClosedError,
    ConnectionReconnectingError,
    Error,
    MaxPayloadError,
    NoRespondersError,
    OutboundBufferLimitError,
    StaleConnectionError,
)
from nats.errors import TimeoutError as NatsTimeout
from nats.js import JetStreamContext
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError, ServiceUnavailableError

from assay.errors import BusError
from assay.runtime.nats.address import Address

PATIENCE = 30.0
"""Seconds a request is repeated for while the server is away, unless told otherwise."""

_log = logging.getLogger("assay.bus")

_REQUEST_SECONDS = 2.0
_RETRY_SECONDS = 0.2
_CLOSE_SECONDS = 2.0
_FULL = 10077
_NO_SPACE = 10047
_SHORT_REPLY = 9

_T = TypeVar("_T")
_FAILED = (Error, OSError)
_AWAY = (
    NatsTimeout,
    NoRespondersError,
    NoStreamResponseError,
    ServiceUnavailableError,
    OutboundBufferLimitError,
    ConnectionReconnectingError,
    StaleConnectionError,
    OSError,
)


class StreamFull(BusError):
    """The stream takes no more; ``same`` says that this very subject is in it already."""

    def __init__(self, message: str, *, same: bool) -> None:
        super().__init__(message)
        self.same = same


class MessageTooLarge(BusError):
    """The server takes no message of this size."""


class BusClosed(BusError):
    """The connection is closed for good; it will not come back."""


class Message(NamedTuple):
    """What came over a subject.

    Attributes:
        subject: Where it was sent to.
        data: Its bytes.
        headers: Its headers.
        reply: Where an answer or an acknowledgement goes; empty: nowhere.
    """

    subject: str
    data: bytes
    headers: Mapping[str, str]
    reply: str

    @property
    def attempt(self) -> int:
        """How often a consumer has handed it out, this time included."""
        # $JS.ACK.STREAM.CONSUMER.ATTEMPT..., or the same with domain and account after $JS.ACK
        tokens = self.reply.split(".")
        return int(tokens[4] if len(tokens) == _SHORT_REPLY else tokens[6])


class Connection:
    """What the rooms of the bus need of one client, in their words.

    Requests are repeated while the server is away; what cannot be repeated says so.

    Attributes:
        prefix: What every subject and stream of this installation begins with.
        shown: The servers without passwords.
        prepare: Called whenever the connection is made anew.
        is_open: Whether it is in use, so that its loss is worth a word in the log.
    """

    def __init__(self, client: Client, address: Address) -> None:
        self.prefix = address.prefix
        self.shown = address.shown
        self._client = client
        self._stream_api = JetStreamContext(client, timeout=_REQUEST_SECONDS)
        self._back = anyio.Event()
        self._asking = set[anyio.CancelScope]()
        self.prepare: Callable[[], Awaitable[None]] | None = None
        self.is_open = False

    async def note_reconnected(self) -> None:
        """Prepare the server, which may be another one or have lost all, and wake whoever waits for it."""
        if self.prepare is not None:
            with suppress(BusError):  # it is away again, and prepared when it is back
                await self.prepare()
        self._back.set()
        self._back = anyio.Event()
        _log.warning("assay: the bus at %s is back", self.shown)

    def note_lost(self) -> None:
        """What was asked will not be answered any more: let it be asked again."""
        for scope in self._asking:
            scope.cancel()
        if self.is_open:
            _log.warning("assay: the bus at %s is lost; it is tried until it is back", self.shown)

    def new_inbox(self) -> str:
        """A subject that nobody else knows."""
        return self._client.new_inbox()

    async def reconnected(self) -> None:
        """Wait for the next time the connection is made anew."""
        await self._back.wait()

    async def publish(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: dict[str, str] | None = None,
        reply: str = "",
    ) -> None:
        """Tell whoever listens now; lost if nobody does, or while the server is away.

        Raises:
            BusError: If it is larger than the server takes, or the connection is closed.
        """
        try:
            await self._client.publish(subject, data, reply, headers)
        except _AWAY:
            return
        except _FAILED as error:
            raise self._mapped("publish", error) from error

    async def store(
        self,
        subject: str,
        data: bytes,
        *,
        message_id: str = "",
        seconds: float = 0.0,
        patience: float = PATIENCE,
    ) -> int:
        """Have the stream of this subject keep a message; gives its number there.

        Args:
            subject: Where.
            data: What.
            message_id: Names the message: the stream keeps one of those with the same name.
            seconds: The stream drops it after so long; 0: as the stream does with all.
            patience: Seconds to go on trying for.

        Raises:
            StreamFull: If the stream has no room.
            BusError: If it could not be kept.
        """
        headers = {"Nats-Msg-Id": message_id} if message_id else None
        lifetime = math.ceil(seconds) or None

        async def ask() -> int:
            kept = await self._stream_api.publish(subject, data, headers=headers, msg_ttl=lifetime)
            return kept.seq

        return await self.persisting("store", ask, patience=patience)

    async def stream_api(
        self,
        what: str,
        ask: Callable[[JetStreamContext], Awaitable[_T]],
        *,
        patience: float = PATIENCE,
    ) -> _T:
        """Ask JetStream's own API for something.

        Raises:
            BusError: If it fails; ``__cause__`` is the client's error.
        """
        return await self.persisting(what, lambda: ask(self._stream_api), patience=patience)

    async def found(self, what: str, ask: Callable[[JetStreamContext], Awaitable[_T]]) -> _T | None:
        """As ``stream_api``; ``None`` if there is no such thing."""
        try:
            return await self.stream_api(what, ask)
        except BusError as error:
            if isinstance(error.__cause__, NotFoundError):
                return None
            raise

    async def acknowledge(self, reply: str, word: bytes = b"+ACK") -> None:
        """Say what became of a message and have it confirmed; if the server stays away it comes again."""

        async def ask() -> None:
            await self._client.request(reply, word, timeout=_REQUEST_SECONDS)

        try:
            await self.persisting("acknowledge", ask, patience=_REQUEST_SECONDS)
        except BusError:
            return

    async def request(self, subject: str, data: bytes) -> Message | None:
        """Ask whoever listens; ``None`` if nobody does, or the server is away. It is not repeated."""
        try:
            return _message(await self._client.request(subject, data, timeout=_REQUEST_SECONDS))
        except _AWAY:
            return None
        except _FAILED as error:
            raise self._mapped("request", error) from error

    @asynccontextmanager
    async def receiving(
        self, subject: str, take: Callable[[Message], None], *, group: str = ""
    ) -> AsyncGenerator[None]:
        """Have messages handed to ``take``, in the server's order, as long as the block runs.

        The server knows of it before the block begins: of what anybody sends from then on none is missed. One that
        is away is told when it is back.

        Args:
            subject: Which; may have wildcards.
            take: Called for each; must not block.
            group: Each message goes to one of those who listen under the same name; empty: to all.
        """

        async def hand_over(message: Msg) -> None:
            take(_message(message))

        try:
            subscribe = self._client.subscribe  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            subscription = await subscribe(subject, queue=group, cb=hand_over)
        except _FAILED as error:
            raise self._mapped("subscribe", error) from error
        try:
            await self._server_told()
            yield
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(_CLOSE_SECONDS):
                await _unsubscribed(subscription.unsubscribe)

    async def persisting(
        self, what: str, ask: Callable[[], Awaitable[_T]], *, patience: float
    ) -> _T:
        """Repeat a request that may be made twice, until it is answered.

        Raises:
            BusError: If it fails for another reason than an absent server, or stays without an answer.
        """
        deadline = anyio.current_time() + patience
        while True:
            try:
                with self.until_lost():
                    return await ask()
            except _AWAY as error:
                if _is_full(error) or anyio.current_time() >= deadline:
                    raise self._mapped(what, error) from error
            except _FAILED as error:
                raise self._mapped(what, error) from error
            await self._pause()

    @contextmanager
    def until_lost(self) -> Generator[None]:
        """Leave the block when the connection breaks: what it awaits will not come."""
        with anyio.CancelScope() as scope:
            self._asking.add(scope)
            try:
                yield
            finally:
                self._asking.discard(scope)

    async def _server_told(self) -> None:
        """Wait until the server has read what was sent to it; not for one that is away.

        The client's ``flush`` may overtake what it has yet to send; a request does not, and that nobody
        answers it is said at once.
        """
        if self._client.is_connected:
            with self.until_lost():
                await self.request(self.new_inbox(), b"")

    async def _pause(self) -> None:
        with anyio.move_on_after(_RETRY_SECONDS):
            await self.reconnected()

    def _mapped(self, what: str, error: Exception) -> BusError:
        if isinstance(error, MaxPayloadError):
            return MessageTooLarge(
                f"a message is larger than the {self._client.max_payload:,} bytes that the bus at "
                f"{self.shown} takes; raise max_payload in the server's configuration"
            )
        if isinstance(error, ConnectionClosedError):
            return BusClosed(f"the connection to the bus at {self.shown} is closed; open it again")
        if isinstance(error, APIError) and _is_full(error):
            description = str(error.description)
            return StreamFull(
                f"the bus at {self.shown} takes no more: {description}; let workers catch up",
                same="per subject" in description,
            )
        hint = ""
        if isinstance(error, APIError) and error.err_code == _NO_SPACE:
            hint = "; the streams reserve 704 MiB: free disk, or raise the server's max_file_store"
        return BusError(f"the bus at {self.shown} could not {what}: {error}{hint}")


def _is_full(error: Exception) -> bool:
    return isinstance(error, APIError) and error.err_code == _FULL


def _message(message: Msg) -> Message:
    return Message(message.subject, message.data, message.headers or {}, message.reply)


async def _unsubscribed(unsubscribe: Callable[[], Awaitable[None]]) -> None:
    try:
        await unsubscribe()
    except _FAILED:
        return  # the connection is gone, and the subscription with it
