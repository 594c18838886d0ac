"""Erasure over the in-memory stores; each step is atomic, as nothing in them awaits."""

import secrets
from collections.abc import Sequence

from assay.stores.memory import InMemoryArchive, InMemoryCache, InMemoryJournal, InMemoryStore
from assay.stores.protocols import Erased, Erasure, turn_source
from assay.stores.records import MemoryRecord, Namespace
from assay.stores.rows import encoded


class InMemoryEraser:
    """``Eraser`` over dictionaries."""

    def __init__(
        self,
        store: InMemoryStore,
        archive: InMemoryArchive,
        journal: InMemoryJournal,
        cache: InMemoryCache,
    ) -> None:
        self._store = store
        self._archive = archive
        self._journal = journal
        self._cache = cache
        self._secret = secrets.token_bytes(32)

    async def erase(self, erasures: Sequence[Erasure]) -> list[Erased]:
        return [await self._erase(erasure) for erasure in erasures]

    async def _erase(self, erasure: Erasure) -> Erased:
        namespace = erasure.namespace
        written = (await self._store.changes(namespace, after=0)).records
        if erasure.whole:
            return await self._erase_subject(namespace, written)
        known = set(erasure.record_ids)
        sources = (*erasure.record_ids, *map(turn_source, erasure.turn_ids))
        dropped = self._cache.drop(namespace, erasure.cache_keys)
        await self._store.erase(namespace, erasure.record_ids)
        return Erased(
            bodies={record.id: encoded(record) for record in written if record.id in known},
            turns=self._archive.erase(namespace, erasure.turn_ids),
            entries=self._journal.replace(erasure.entries),
            cache_rows=dropped + await self._cache.forget(namespace, sources),
        )

    async def _erase_subject(self, namespace: Namespace, written: list[MemoryRecord]) -> Erased:
        await self._store.erase(namespace, [record.id for record in written])
        turns = [turn.id for turn in await self._archive.all(namespace)]
        return Erased(
            bodies={record.id: encoded(record) for record in written},
            turns=self._archive.erase(namespace, turns),
            entries=self._journal.erase(namespace),
            cache_rows=self._cache.drop(namespace, self._cache.keys(namespace)),
        )

    async def finish(self) -> int:
        return 0

    async def namespaces(self) -> list[Namespace]:
        stores = (self._store, self._archive, self._cache)
        return sorted({namespace for store in stores for namespace in store.namespaces()})

    async def secret(self) -> bytes:
        return self._secret
