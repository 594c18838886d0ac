"""What the rest of the house may ask of a store. Implementations stand beside this file."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from assay.stores.records import (
    ArchiveTurn,
    Candidate,
    MemoryRecord,
    Namespace,
    RecordId,
    SessionId,
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


class Retriever(Protocol):
    """From a question to candidates."""

    async def retrieve(
        self, namespace: Namespace, text: str, *, limit: int, at: datetime
    ) -> list[Candidate]:
        """The best ``limit`` current records for ``text``, best first; fewer if the bank has fewer."""
        ...


class Bank(NamedTuple):
    """One open bank: the protocols over one place, opened and closed together."""

    store: MemoryStore
    archive: Archive
    journal: Journal
    cache: Cache
    retriever: Retriever
    embedder: Embedder
