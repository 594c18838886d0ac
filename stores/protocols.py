"""What the rest of the house may ask of a store. Implementations stand beside this file."""

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Literal, NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from assay.stores.records import (
    ArchiveTurn,
    Candidate,
    MemoryRecord,
    Namespace,
    RecordId,
    SessionId,
    TurnId,
)

FloatMatrix: TypeAlias = npt.NDArray[np.float32]
"""Shape ``(n_texts, dimension)``, rows of unit length."""


class Clock(Protocol):
    """The only source of time."""

    def now(self) -> datetime:
        """The time of day, timezone-aware, in UTC; may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""
        ...


class Changes(NamedTuple):
    """What happened to a namespace after a version.

    Attributes:
        records: Records written, oldest first.
        erased: Ids erased.
        version: The version this brings the reader to.
    """

    records: list[MemoryRecord]
    erased: list[RecordId]
    version: int


class Ranked(NamedTuple):
    """A search hit: ``score`` is higher for better, comparable within one search only."""

    record_id: RecordId
    score: float


class MemoryStore(Protocol):
    """Records, durable and versioned.

    Promises: a write that returned is durable (as far as the implementation is); a batch is all
    or nothing; writing the same record twice is harmless; nothing crosses a namespace.
    """

    async def write(self, records: Sequence[MemoryRecord]) -> None:
        """Write a batch, all or nothing, idempotent by (namespace, id).

        Raises:
            ConflictingWrite: If an id exists with other content, or was erased; nothing was written.
            ValueError: On empty text, a NUL in text or ids, or a naive time.
        """
        ...

    async def get(self, namespace: Namespace, record_ids: Sequence[RecordId]) -> list[MemoryRecord]:
        """The records under these ids, in the order asked, superseded and expired ones included.

        Raises:
            RecordNotFound: For the first id that is not there.
        """
        ...

    async def current(self, namespace: Namespace, *, at: datetime) -> list[MemoryRecord]:
        """Records that hold at ``at``: not superseded by then, valid; in order of writing."""
        ...

    async def changes(self, namespace: Namespace, *, after: int) -> Changes:
        """What was written and erased after a version; 0 is the beginning."""
        ...

    async def erase(self, namespace: Namespace, record_ids: Sequence[RecordId]) -> int:
        """Remove records for good and leave tombstones; gives how many were there."""
        ...


class KeywordIndex(Protocol):
    """Full-text search over the records of one namespace."""

    async def match(self, namespace: Namespace, text: str, *, limit: int) -> list[Ranked]:
        """The best BM25 matches for any word of ``text``; no query syntax is interpreted."""
        ...


class Archive(Protocol):
    """The past turns themselves."""

    async def append(self, turns: Sequence[ArchiveTurn]) -> None:
        """Append turns, all or nothing, idempotent by (namespace, id)."""
        ...

    async def recent(
        self, namespace: Namespace, session: SessionId, *, limit: int
    ) -> list[ArchiveTurn]:
        """The last ``limit`` turns of a session, oldest first."""
        ...

    async def search(
        self, namespace: Namespace, texts: Sequence[str], *, limit: int
    ) -> list[list[ArchiveTurn]]:
        """For each text, the turns that share most with it (BM25), best first."""
        ...

    async def all(self, namespace: Namespace) -> list[ArchiveTurn]:
        """Every turn of a namespace, in order of time, then position."""
        ...


class VectorIndex(Protocol):
    """Vectors of the records of one namespace; derived from the store, rebuildable."""

    async def search(
        self, namespace: Namespace, vector: FloatMatrix, *, limit: int
    ) -> list[Ranked]:
        """Nearest records by cosine, for one query of shape ``(1, dimension)``.

        The index first catches up with the store, so a search sees every acknowledged write.
        """
        ...


class Embedder(Protocol):
    """Texts to unit vectors."""

    @property
    def name(self) -> str:
        """Name and revision; a bank is bound to it."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["query", "passage"]
    ) -> FloatMatrix:
        """Shape ``(len(texts), dimension)``, float32, unit rows; off the event loop."""
        ...


class JournalEntry(NamedTuple):
    """One durable event: ``sequence`` counts from 0 without gaps within its session."""

    sequence: int
    payload: bytes


class Journal(Protocol):
    """Durable events, ordered per session."""

    async def append(self, session: SessionId, entries: Sequence[JournalEntry]) -> None:
        """Append, all or nothing; the same entry again is harmless.

        Raises:
            ConflictingWrite: If a sequence number is taken by other content, or leaves a gap.
        """
        ...

    async def read(self, session: SessionId, *, after: int = -1) -> list[JournalEntry]:
        """Entries with a sequence number above ``after``, in order."""
        ...

    async def sessions(self) -> list[SessionId]:
        """Every session that has an entry, in order of first write."""
        ...


class Lease(NamedTuple):
    """The right of one process to take turns of a session, for a while.

    Attributes:
        session: The session's name in the journal.
        owner: Who holds it.
        revision: Fencing token: grows by one whenever the session changes hands, never goes back.
    """

    session: SessionId
    owner: str
    revision: int


class Leases(Protocol):
    """Who may take turns of which session, timed by one clock, the store's own."""

    async def acquire(self, session: SessionId, *, owner: str, seconds: float) -> Lease | None:
        """Take a free or expired lease; ``None`` while another owner holds it.

        The owner who holds it gets it again, with the same revision and its time renewed.
        """
        ...

    async def renew(self, lease: Lease, *, seconds: float) -> None:
        """Hold it for ``seconds`` from now.

        Raises:
            LeaseLost: If it expired and another owner took it.
        """
        ...

    async def release(self, lease: Lease) -> None:
        """Give it back at once; harmless if it was lost."""
        ...

    def fenced(self, journal: Journal, lease: Lease) -> Journal:
        """The journal, whose appends raise ``LeaseLost`` once the lease is in other hands.

        The check and the append are one step: no append of an old owner comes after one of a new.
        """
        ...


class Appended(NamedTuple):
    """That an entry was appended to a journal; what it says is in the journal only.

    Attributes:
        session: The stream.
        sequence: The entry's number in it.
        namespace: Whose stream it is.
        cursor: Where to go on reading after it; opaque.
    """

    session: SessionId
    sequence: int
    namespace: Namespace
    cursor: str


Wait: TypeAlias = Callable[[float], Coroutine[None, None, None]]
"""Waits for news, at most so many seconds; raises ``StoreError`` where none would come any more."""


class Outbox(Protocol):
    """What was appended to a journal and is to be told others, kept in the same transaction.

    Rows come in an order in which nothing is ever added before what was read; the entries of one
    stream come in their order. News may be lost for good (only the latest 100,000 or so are kept),
    entries never: who missed some reads the journal.
    """

    async def read(self, *, after: str = "", limit: int) -> list[Appended]:
        """What was appended after a cursor, oldest first; an empty cursor is the beginning."""
        ...

    async def trim(self, cursor: str) -> int:
        """Forget rows up to a cursor, itself included: they were told; gives how many."""
        ...

    def listening(self) -> AbstractAsyncContextManager[Wait]:
        """Something to wait with: it returns when entries were appended, or after so many seconds."""
        ...


class CacheRow(NamedTuple):
    """One remembered answer.

    Attributes:
        key: SHA-256 hex of what was asked.
        value: The encoded answer.
        request: The encoded question, kept for export and for explaining a miss.
        record_ids: Records whose text was in the question, so that erasure reaches the row.
    """

    key: str
    value: bytes
    request: bytes
    record_ids: tuple[RecordId, ...]


class Cache(Protocol):
    """Answers already paid for; no row crosses a namespace."""

    async def get(self, namespace: Namespace, keys: Sequence[str]) -> dict[str, bytes]:
        """The values of those keys that are there."""
        ...

    async def put(self, namespace: Namespace, rows: Sequence[CacheRow]) -> None:
        """Keep rows; the first value of a key stands."""
        ...

    def rows(self, namespace: Namespace) -> AsyncIterator[CacheRow]:
        """Every row of a namespace, in order of writing."""
        ...

    async def forget(self, namespace: Namespace, record_ids: Sequence[RecordId]) -> int:
        """Drop every row that lists one of these records; gives how many."""
        ...


def turn_source(turn_id: TurnId) -> RecordId:
    """How a row of the cache lists an archived turn whose text was in the question."""
    return RecordId(f"turn:{turn_id}")


class ReplacedEntry(NamedTuple):
    """What is left of a journal entry whose text is erased: ``payload`` stands in its place."""

    session: SessionId
    sequence: int
    payload: bytes


class Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be erased of one namespace, in one step.

    Attributes:
        namespace: Whose; nothing of another one is reached.
        record_ids: Records; those that are gone already are passed over.
        turn_ids: Archived turns.
        entries: Journal entries, with what stands in their place.
        cache_keys: Cached answers, beside those that list one of the records or turns.
        whole: Everything of the namespace, the key of its journal included; the rest is ignored.
    """

    namespace: Namespace
    record_ids: tuple[RecordId, ...] = ()
    turn_ids: tuple[TurnId, ...] = ()
    entries: tuple[ReplacedEntry, ...] = ()
    cache_keys: tuple[str, ...] = ()
    whole: bool = False


class Erased(msgspec.Struct, frozen=True, kw_only=True):
    """What an erasure found; counts are of rows.

    Attributes:
        bodies: The records that were there, encoded, in order of writing.
        turns: Archived turns.
        entries: Journal entries.
        cache_rows: Cached answers.
    """

    bodies: dict[RecordId, bytes]
    turns: int
    entries: int
    cache_rows: int


class Eraser(Protocol):
    """Erases in every place of a bank at once, and knows whose places there are."""

    async def erase(self, erasures: Sequence[Erasure]) -> list[Erased]:
        """Erase, all or nothing; when it returns nothing of it is found any more, whatever crashes.

        Raises:
            StoreError: If a place cannot be written; what is left is finished at the next opening.
        """
        ...

    async def finish(self) -> int:
        """Finish erasures that were cut short; gives how many namespaces were affected."""
        ...

    async def namespaces(self) -> list[Namespace]:
        """Every namespace that has a record, a turn or a cached answer, sorted."""
        ...

    async def secret(self) -> bytes:
        """The bank's own key for the hashes of receipts."""
        ...


class Retriever(Protocol):
    """From a question to candidates."""

    async def retrieve(
        self, namespace: Namespace, text: str, *, limit: int, at: datetime
    ) -> list[Candidate]:
        """The best ``limit`` current records for ``text``, best first; fewer if the bank has fewer."""
        ...


class Bank(NamedTuple):
    """One open bank: the protocols over one place, opened and closed together.

    ``leases`` keep processes apart that take turns over one bank; ``None``: one process has it.
    ``outbox`` is what others are told from; ``None``: there is nobody else.
    """

    store: MemoryStore
    archive: Archive
    journal: Journal
    cache: Cache
    retriever: Retriever
    embedder: Embedder
    eraser: Eraser
    leases: Leases | None = None
    outbox: Outbox | None = None
