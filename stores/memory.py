"""In-memory stores: the oracle of the contract tests, and a bank for tests and short runs.

Nothing here awaits anything, so each method is atomic under one event loop.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from assay.errors import ConflictingWrite, ErasedInput, RecordNotFound
from assay.stores.bm25 import Bm25
from assay.stores.checks import (
    checked_characters,
    checked_limit,
    checked_namespace,
    checked_record,
    checked_turn,
    in_utc,
    superseded_from,
)
from assay.stores.protocols import CacheRow, Changes, JournalEntry, Ranked, ReplacedEntry
from assay.stores.records import (
    ArchiveTurn,
    MemoryRecord,
    Namespace,
    RecordId,
    SessionId,
    TurnId,
)
from assay.stores.subject_keys import owner_named, owner_of


class InMemoryStore:
    """Records and their keyword index in dictionaries (``MemoryStore``, ``KeywordIndex``)."""

    def __init__(self) -> None:
        self._version = 0
        self._records: dict[tuple[Namespace, RecordId], tuple[int, MemoryRecord]] = {}
        self._superseded: dict[tuple[Namespace, RecordId], datetime] = {}
        self._tombstones: dict[tuple[Namespace, RecordId], int] = {}
        self._keywords: Bm25[RecordId] = Bm25()

    async def write(self, records: Sequence[MemoryRecord]) -> None:
        new: dict[tuple[Namespace, RecordId], MemoryRecord] = {}
        for record in map(checked_record, records):
            key = record.namespace, record.id
            if key in self._tombstones:
                raise ConflictingWrite(f"record {record.id!r} was erased and may not come back")
            known = new.get(key) or (self._records[key][1] if key in self._records else None)
            if known is None:
                new[key] = record
            elif known != record:
                raise ConflictingWrite(f"record {record.id!r} exists with other content")
        for key, record in new.items():
            self._version += 1
            self._records[key] = self._version, record
            self._keywords.add(record.namespace, record.id, record.text)
            self._supersede(record)

    def _supersede(self, record: MemoryRecord) -> None:
        if record.supersedes is None:
            return
        key = record.namespace, record.supersedes
        time = superseded_from(record)
        self._superseded[key] = min(time, self._superseded.get(key, time))

    async def get(self, namespace: Namespace, record_ids: Sequence[RecordId]) -> list[MemoryRecord]:
        checked_namespace(namespace)
        found: list[MemoryRecord] = []
        for record_id in record_ids:
            if (namespace, record_id) not in self._records:
                raise RecordNotFound(record_id, namespace)
            found.append(self._records[namespace, record_id][1])
        return found

    async def current(self, namespace: Namespace, *, at: datetime) -> list[MemoryRecord]:
        checked_namespace(namespace)
        time = in_utc("at", at)
        return [
            record
            for (owner, _), (_, record) in self._records.items()
            if owner == namespace and self._holds(record, time)
        ]

    async def current_among(
        self, namespace: Namespace, record_ids: Sequence[RecordId], *, at: datetime
    ) -> list[MemoryRecord]:
        """Those of these records that are there and hold at ``at``, in the order asked."""
        checked_namespace(namespace)
        time = in_utc("at", at)
        known = (self._records.get((namespace, record_id)) for record_id in record_ids)
        return [row[1] for row in known if row is not None and self._holds(row[1], time)]

    def _holds(self, record: MemoryRecord, time: datetime) -> bool:
        superseded = self._superseded.get((record.namespace, record.id))
        return (
            (superseded is None or time < superseded)
            and (record.valid_from is None or record.valid_from <= time)
            and (record.valid_to is None or time < record.valid_to)
        )

    async def changes(self, namespace: Namespace, *, after: int) -> Changes:
        checked_namespace(namespace)
        written = [
            (version, record)
            for (owner, _), (version, record) in self._records.items()
            if owner == namespace and version > after
        ]
        erased = [
            (version, record_id)
            for (owner, record_id), version in self._tombstones.items()
            if owner == namespace and version > after
        ]
        newest = max([after, *(v for v, _ in written), *(v for v, _ in erased)])
        return Changes([record for _, record in written], [i for _, i in erased], newest)

    async def erase(self, namespace: Namespace, record_ids: Sequence[RecordId]) -> int:
        checked_namespace(namespace)
        there = [i for i in dict.fromkeys(record_ids) if (namespace, i) in self._records]
        for record_id in there:
            self._version += 1
            del self._records[namespace, record_id]
            self._keywords.remove(namespace, record_id)
            self._tombstones[namespace, record_id] = self._version
        return len(there)

    async def match(self, namespace: Namespace, text: str, *, limit: int) -> list[Ranked]:
        checked_namespace(namespace)
        checked_characters("text", text)
        best = self._keywords.best(namespace, text, limit=checked_limit(limit))
        return [Ranked(record_id, score) for record_id, score in best]

    def namespaces(self) -> list[Namespace]:
        """Those that have a record."""
        return [namespace for namespace, _ in self._records]


class InMemoryArchive:
    """Past turns in a dictionary (``Archive``)."""

    def __init__(self) -> None:
        self._turns: dict[tuple[Namespace, TurnId], ArchiveTurn] = {}
        self._erased: set[tuple[Namespace, TurnId]] = set()
        self._keywords: Bm25[TurnId] = Bm25()

    async def append(self, turns: Sequence[ArchiveTurn]) -> None:
        new: dict[tuple[Namespace, TurnId], ArchiveTurn] = {}
        for turn in map(checked_turn, turns):
            key = turn.namespace, turn.id
            if key in self._erased:
                raise ConflictingWrite(f"turn {turn.id!r} was erased and may not come back")
            known = new.get(key) or self._turns.get(key)
            if known is None:
                new[key] = turn
            elif known != turn:
                raise ConflictingWrite(f"turn {turn.id!r} exists with other content")
        for key, turn in new.items():
            self._turns[key] = turn
            self._keywords.add(turn.namespace, turn.id, f"{turn.speaker} {turn.text}")

    async def recent(
        self, namespace: Namespace, session: SessionId, *, limit: int
    ) -> list[ArchiveTurn]:
        checked_namespace(namespace)
        turns = [
            turn
            for turn in self._turns.values()
            if turn.namespace == namespace and turn.session == session
        ]
        turns.sort(key=lambda turn: turn.position)
        return turns[max(0, len(turns) - checked_limit(limit)) :]

    async def search(
        self, namespace: Namespace, texts: Sequence[str], *, limit: int
    ) -> list[list[ArchiveTurn]]:
        checked_namespace(namespace)
        for text in texts:
            checked_characters("text", text)
        found = [self._keywords.best(namespace, t, limit=checked_limit(limit)) for t in texts]
        return [[self._turns[namespace, turn_id] for turn_id, _ in best] for best in found]

    def erase(self, namespace: Namespace, turn_ids: Sequence[TurnId]) -> int:
        """Remove turns and leave tombstones; gives how many were there."""
        there = [i for i in turn_ids if self._turns.pop((namespace, i), None) is not None]
        for turn_id in there:
            self._keywords.remove(namespace, turn_id)
        self._erased.update((namespace, turn_id) for turn_id in turn_ids)
        return len(there)

    async def all(self, namespace: Namespace) -> list[ArchiveTurn]:
        checked_namespace(namespace)
        turns = [turn for turn in self._turns.values() if turn.namespace == namespace]
        return sorted(turns, key=lambda turn: (turn.at, turn.position))

    def namespaces(self) -> list[Namespace]:
        """Those that have a turn."""
        return [namespace for namespace, _ in self._turns]


class InMemoryJournal:
    """Events in lists (``Journal``)."""

    def __init__(self) -> None:
        self._payloads: dict[SessionId, list[bytes]] = {}
        self._erased: set[SessionId] = set()

    async def append(self, session: SessionId, entries: Sequence[JournalEntry]) -> None:
        checked_characters("session", session)
        self._refuse_erased(session)
        payloads = list(self._payloads.get(session, ()))
        for entry in entries:
            if entry.sequence == len(payloads):
                payloads.append(entry.payload)
            elif not 0 <= entry.sequence < len(payloads):
                raise ConflictingWrite(
                    f"session {session!r} expects entry {len(payloads)} next, got {entry.sequence}"
                )
            elif payloads[entry.sequence] != entry.payload:
                raise ConflictingWrite(
                    f"entry {entry.sequence} of session {session!r} exists with other content"
                )
        if payloads:
            self._payloads[session] = payloads

    async def read(self, session: SessionId, *, after: int = -1) -> list[JournalEntry]:
        self._refuse_erased(session)
        payloads = self._payloads.get(session, [])
        return [
            JournalEntry(sequence, payload)
            for sequence, payload in enumerate(payloads)
            if sequence > after
        ]

    async def sessions(self) -> list[SessionId]:
        return list(self._payloads)

    def replace(self, entries: Sequence[ReplacedEntry]) -> int:
        """Put other content in the place of entries; gives how many were there."""
        there = [e for e in entries if e.sequence < len(self._payloads.get(e.session, ()))]
        for entry in there:
            self._payloads[entry.session][entry.sequence] = entry.payload
        return len(there)

    def erase(self, namespace: Namespace) -> int:
        """Erase every stream of a namespace; gives how many entries there were."""
        owner = owner_named(namespace)
        doomed = [session for session in self._payloads if owner_of(session) == owner]
        self._erased.update(session for session in doomed if session != f"{owner}/")
        return sum(len(self._payloads.pop(session)) for session in doomed)

    def _refuse_erased(self, session: SessionId) -> None:
        if session in self._erased:
            raise ErasedInput(f"erased input: session {session!r} was erased; begin a new one")


class InMemoryCache:
    """Answers in a dictionary per namespace (``Cache``)."""

    def __init__(self) -> None:
        self._rows: defaultdict[Namespace, dict[str, CacheRow]] = defaultdict(dict)

    async def get(self, namespace: Namespace, keys: Sequence[str]) -> dict[str, bytes]:
        checked_namespace(namespace)
        rows = self._rows[namespace]
        return {key: rows[key].value for key in keys if key in rows}

    async def put(self, namespace: Namespace, rows: Sequence[CacheRow]) -> None:
        checked_namespace(namespace)
        for row in rows:
            self._rows[namespace].setdefault(row.key, row)

    async def rows(self, namespace: Namespace) -> AsyncIterator[CacheRow]:
        checked_namespace(namespace)
        for row in list(self._rows[namespace].values()):
            yield row

    async def forget(self, namespace: Namespace, record_ids: Sequence[RecordId]) -> int:
        checked_namespace(namespace)
        rows = self._rows[namespace]
        gone = [key for key, row in rows.items() if set(row.record_ids) & set(record_ids)]
        return self.drop(namespace, gone)

    def drop(self, namespace: Namespace, keys: Sequence[str]) -> int:
        """Drop rows by key; gives how many were there."""
        return sum(self._rows[namespace].pop(key, None) is not None for key in keys)

    def keys(self, namespace: Namespace) -> list[str]:
        """The key of every row."""
        return list(self._rows[namespace])

    def namespaces(self) -> list[Namespace]:
        """Those that have a row."""
        return [namespace for namespace, rows in self._rows.items() if rows]
