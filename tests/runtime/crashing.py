"""A journal that stops the process, or stands in for that, at a chosen event."""

import hashlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import msgspec

from assay.guards.protocols import Ledger
from assay.runtime.clock import StoppedClock
from assay.runtime.events import AnyEvent, GuardDecided, ReplyProduced
from assay.runtime.models.scripted import ScriptedModel
from assay.stores.bank import open_bank
from assay.stores.embeddings import HashingEmbedder
from assay.stores.protocols import Journal, JournalEntry
from assay.stores.records import SessionId

from .rooms import SESSION, USER, fresh_bank, journal_of, over
from .support import NOW

MESSAGES = ("My cat is called Miso. A rumour says the cat is grey.", "What is my cat called?")
EVENTS = 10
"""Events of the two turns."""


class Killed(BaseException):
    """Stands in for kill -9: nothing handles it."""


def die() -> None:
    raise Killed


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class CrashingJournal:
    """Passes on to a journal, and stops everything at one append.

    Args:
        journal: The real one.
        at: Which append, from 0.
        written: Whether that append is still made: a crash after it, or before it.
        stop: What stops everything.
    """

    def __init__(
        self, journal: Journal, at: int, *, written: bool, stop: Callable[[], None] = die
    ) -> None:
        self._journal = journal
        self._left = at
        self._written = written
        self._stop = stop

    async def append(self, session: SessionId, entries: Sequence[JournalEntry]) -> None:
        crash = self._left == 0
        self._left -= 1
        if crash and not self._written:
            self._stop()
        await self._journal.append(session, entries)
        if crash:
            self._stop()

    async def read(self, session: SessionId, *, after: int = -1) -> list[JournalEntry]:
        return await self._journal.read(session, after=after)

    async def sessions(self) -> list[SessionId]:
        return await self._journal.sessions()


async def talk_until_killed(path: Path, at: int, *, written: bool) -> None:
    """What the child process does: two messages, killed on the way."""
    async with open_bank(path, embedder=HashingEmbedder(), clock=StoppedClock(NOW)) as bank:
        journal = CrashingJournal(bank.journal, at, written=written, stop=kill)
        session = over(bank._replace(journal=journal)).session(user=USER, session_id=SESSION)
        for message in MESSAGES:
            await session.send(message)


def main() -> None:
    path, at, written = sys.argv[1:]

    async def run() -> None:
        await talk_until_killed(Path(path), int(at), written=written == "after")

    anyio.run(run)


def digest() -> None:
    """Print the hash of a conversation's journal and of every prompt it made."""

    async def run() -> str:
        bank, model = fresh_bank(), ScriptedModel()
        session = over(bank, model=model).session(user=USER, session_id=SESSION)
        for message in MESSAGES:
            await session.send(message)
        events = [without_spend(event) for event in await journal_of(bank)]
        return hashlib.sha256(msgspec.json.encode([events, model.asked])).hexdigest()

    sys.stdout.write(anyio.run(run))


def without_spend(event: AnyEvent) -> AnyEvent:
    """An event but for what it cost: a resumed turn finds answers in the cache."""
    if isinstance(event, GuardDecided):
        decision = msgspec.structs.replace(event.decision, spent=Ledger())
        return msgspec.structs.replace(event, decision=decision)
    if isinstance(event, ReplyProduced):
        return msgspec.structs.replace(event, ledger=Ledger())
    return event
