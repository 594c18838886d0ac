"""Sessions kept open between requests, the latest used ones only; the journal has them all."""

import hashlib
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from assay.runtime.events import (
    AnyEvent,
    MemoriesWritten,
    MessageReceived,
    TurnCancelled,
    decode,
)
from assay.runtime.facade import Runtime
from assay.runtime.session import Session
from assay.runtime.streams import stream_of
from assay.stores.records import Namespace

KEPT = 256
"""Sessions kept open; another one is read from the journal when it goes on."""

REPEATED_WITHIN = timedelta(minutes=10)
"""A message that comes again later than this is said again, not sent again."""


@dataclass(slots=True)
class OpenSession:
    """A session and what the user said in it.

    Attributes:
        session: The open session.
        said: How often each message was taken, by the digest of its text.
        latest: When each was last taken.
        read: Number of the last entry of its journal that was looked at.
    """

    session: Session
    said: Counter[bytes] = field(default_factory=Counter[bytes])
    latest: dict[bytes, datetime] = field(default_factory=dict[bytes, datetime])
    read: int = -1
    _named: set[str] = field(default_factory=set[str])
    _last: MessageReceived | None = None

    def is_repeated(self, text: str, *, times: int, at: datetime) -> bool:
        """Whether a message was taken already: a client tries again, or wants another answer.

        Args:
            text: The message.
            times: How often the client's conversation holds it, this one included.
            at: Now.
        """
        key = _digest(text)
        before = self.latest.get(key)
        return before is not None and at - before <= REPEATED_WITHIN and self.said[key] >= times

    def took(self, text: str, at: datetime, *, request: str = "") -> None:
        """A message was taken, and remembered; under one name only once."""
        if request in self._named:
            return
        if request:
            self._named.add(request)
        key = _digest(text)
        self.said[key] += 1
        self.latest[key] = at

    def take_in(self, event: AnyEvent) -> None:
        """The same from the journal: a message does not count that left nothing behind."""
        last = self._last
        match event:
            case MessageReceived():
                self.took(event.text, event.at, request=event.request)
                self._last = event
            case TurnCancelled() | MemoriesWritten(exchange=0, archived=0) if (
                last is not None and last.turn_id == event.turn_id
            ):
                self.said[_digest(last.text)] -= 1
                self._last = None
            case _:
                return


class OpenSessions:
    """At most :data:`KEPT` sessions.

    Args:
        runtime: Whose.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._open: OrderedDict[tuple[Namespace, str], OpenSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    async def open(self, namespace: Namespace, session_id: str) -> OpenSession:
        """The session, as far as the journal has it: from it if it is not open.

        Raises:
            ValueError: If the id cannot be one.
            StoreError: If the journal cannot be read.
        """
        key = namespace, session_id
        known = self._open.get(key)
        if known is None:
            known = OpenSession(self._runtime.session(user=namespace, session_id=session_id))
            await self._read(known)
            self._open[key] = known
        elif self._runtime.is_shared:
            await self._read(known)
        self._open.move_to_end(key)
        while len(self._open) > KEPT:
            self._open.popitem(last=False)
        return known

    def took(self, opened: OpenSession, text: str, at: datetime, *, request: str = "") -> None:
        """A message was taken through here; with others over the bank, the journal tells of all."""
        if not self._runtime.is_shared:
            opened.took(text, at, request=request)

    async def _read(self, opened: OpenSession) -> None:
        session = opened.session
        stream = stream_of(session.user, session.id)
        for entry in await self._runtime.bank.journal.read(stream, after=opened.read):
            opened.take_in(decode(entry.payload))
            opened.read = entry.sequence


def _digest(text: str) -> bytes:
    return hashlib.blake2s(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()
