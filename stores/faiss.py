"""Vectors in FAISS: one flat index per namespace, derived from the store, off the event loop.

The store is the truth. An index file that is missing, damaged, of another bank, another embedder
or a state the store never had is rebuilt; one that is merely old catches up.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Protocol, TypeVar

import anyio
import anyio.to_thread
import numpy as np
import numpy.typing as npt
import structlog

from assay.errors import StoreCorrupt, StoreError
from assay.stores import index_file
from assay.stores.catchup import Delta, delta
from assay.stores.checks import checked_limit, checked_namespace
from assay.stores.exact import checked_query
from assay.stores.index_file import Header, VectorFile
from assay.stores.protocols import Embedder, FloatMatrix, MemoryStore, Ranked
from assay.stores.records import Namespace, RecordId
from assay.stores.rows import owner_token

log = structlog.get_logger(__name__)

T = TypeVar("T")

_THREADS = 4
_SAVE_AFTER = 256
"""Changes after which a file is rewritten, or a tenth of its rows if that is more."""


class FlatIndex(Protocol):
    """What is used of ``faiss.IndexFlatIP``, which has no types."""

    @property
    def ntotal(self) -> int: ...

    def add(self, x: FloatMatrix) -> None: ...

    def remove_ids(self, x: npt.NDArray[np.int64]) -> int: ...

    def search(
        self, x: FloatMatrix, k: int
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]: ...

    def reconstruct_n(self, n0: int, ni: int) -> FloatMatrix: ...


class Shelf:
    """The index of one namespace; its methods block, and the namespace's lock is held around them.

    Attributes:
        index: The rows.
        ids: The record of each row.
        version: The store's version the rows stand for.
        anchors: Ids of which one was written or erased at exactly that version.
        unsaved: Changes since its file was written.
    """

    def __init__(self, dimension: int) -> None:
        self.index: FlatIndex = import_module("faiss").IndexFlatIP(dimension)
        self.ids: list[RecordId] = []
        self.version = 0
        self.anchors: tuple[RecordId, ...] = ()
        self.unsaved = 0

    def apply(self, change: Delta) -> None:
        """Take changes of the store in."""
        erased = set(change.erased)
        gone = [row for row, record_id in enumerate(self.ids) if record_id in erased]
        if gone:
            self.index.remove_ids(np.array(gone, dtype=np.int64))
            self.ids = [record_id for record_id in self.ids if record_id not in erased]
        self.index.add(change.vectors)
        self.ids += change.ids
        self.anchors = (*change.ids[-1:], *change.erased[-1:])
        self.version = change.version
        self.unsaved += len(change.ids) + len(change.erased)

    def search(self, query: FloatMatrix, limit: int) -> list[Ranked]:
        """The best rows for one query, best first."""
        if not self.ids:
            return []
        # Per thread, so set here: more threads burn the CPU of everyone else for one small query.
        import_module("faiss").omp_set_num_threads(1)
        scores, rows = self.index.search(query, min(limit, len(self.ids)))
        found = zip(rows[0].tolist(), scores[0].tolist(), strict=True)
        return [Ranked(self.ids[row], score) for row, score in found]

    def vectors(self) -> FloatMatrix:
        """Every row, in order of ``ids``."""
        return self.index.reconstruct_n(0, self.index.ntotal)


class FaissIndex:
    """Inner product over unit vectors in flat FAISS indexes (``VectorIndex``).

    Args:
        store: What the indexes are derived from.
        embedder: Makes the vectors of records not yet indexed.
        folder: Where index files lie; it exists.
        bank: Identity of the bank; a file of another one is not used.
    """

    def __init__(self, *, store: MemoryStore, embedder: Embedder, folder: Path, bank: str) -> None:
        self._store = store
        self._embedder = embedder
        self._folder = folder
        self._bank = bank
        self._shelves: dict[Namespace, Shelf] = {}
        self._locks: defaultdict[Namespace, anyio.Lock] = defaultdict(anyio.Lock)
        self._limiter = anyio.CapacityLimiter(_THREADS)

    async def search(
        self, namespace: Namespace, vector: FloatMatrix, *, limit: int
    ) -> list[Ranked]:
        checked_namespace(namespace)
        query = checked_query(vector, self._embedder.dimension)
        # Held over the search too: FAISS must not be read while rows are added.
        async with self._locks[namespace]:
            shelf = await self._caught_up(namespace)
            if checked_limit(limit) == 0:
                return []
            return await anyio.to_thread.run_sync(shelf.search, query, limit, limiter=self._limiter)

    async def with_shelf(
        self, namespace: Namespace, use: Callable[[Shelf], Awaitable[T | None]]
    ) -> T:
        """Give ``use`` the namespace's index, and again after catching up while it gives ``None``.

        For searches that see by themselves whether the index is behind the store.
        """
        async with self._locks[namespace]:
            shelf = self._shelves.get(namespace) or await self._caught_up(namespace)
            while (found := await use(shelf)) is None:
                shelf = await self._caught_up(namespace)
            return found

    async def purge(self, namespace: Namespace) -> None:
        """Drop erased records from memory and rewrite the file without them.

        Raises:
            StoreError: If the file cannot be written.
        """
        async with self._locks[checked_namespace(namespace)]:
            shelf = await self._caught_up(namespace)
            try:
                await self._save(namespace, shelf)
            except (OSError, MemoryError) as error:
                reason = str(error) or "not enough memory"
                raise StoreError(f"the vectors cannot be rewritten: {reason}") from error

    async def flush(self) -> None:
        """Write what is not on disk yet; a failure is logged, as the files can be rebuilt."""
        for namespace, shelf in list(self._shelves.items()):
            async with self._locks[namespace]:
                if shelf.unsaved:
                    await self._flush_one(namespace, shelf)

    # ---- under a namespace's lock

    async def _flush_one(self, namespace: Namespace, shelf: Shelf) -> None:
        try:
            newer = await self._store.changes(namespace, after=shelf.version)
        except StoreError as error:
            log.warning("index.unsaved", file=self.path_of(namespace).name, reason=str(error))
            return
        # Another process may have erased since: its file must not be overwritten with ours.
        if not newer.erased:
            await self._try_save(namespace, shelf)

    async def _caught_up(self, namespace: Namespace) -> Shelf:
        shelf = self._shelves.get(namespace)
        if shelf is None:
            shelf = await self._opened(namespace)
            self._shelves[namespace] = shelf
        change = await delta(self._store, self._embedder, namespace, shelf.version)
        if change.version != shelf.version:
            # Not cancelled half way: a thread cannot be, and the loop waits for it.
            await anyio.to_thread.run_sync(shelf.apply, change, limiter=self._limiter)
            if shelf.unsaved >= max(_SAVE_AFTER, len(shelf.ids) // 10):
                await self._try_save(namespace, shelf)
        return shelf

    async def _opened(self, namespace: Namespace) -> Shelf:
        """The index in the namespace's file, or an empty one if the file is of no use."""
        path = self.path_of(namespace)
        try:
            shelf = await anyio.to_thread.run_sync(
                self._read, namespace, path, limiter=self._limiter
            )
            await self._check_anchor(namespace, shelf)
        except FileNotFoundError:
            pass
        except (StoreCorrupt, OSError) as error:
            log.warning("index.rebuilt", file=path.name, reason=str(error))
        else:
            return shelf
        return await anyio.to_thread.run_sync(
            Shelf, self._embedder.dimension, limiter=self._limiter
        )

    def _read(self, namespace: Namespace, path: Path) -> Shelf:
        header, vectors = index_file.read(path)
        expected = self._bank, namespace, self._embedder.name, self._embedder.dimension
        found = header.bank, header.namespace, header.embedder, header.dimension
        if found != expected:
            raise StoreCorrupt("it belongs to another bank, namespace or embedder")
        shelf = Shelf(header.dimension)
        shelf.apply(Delta(list(header.ids), vectors, [], header.version))
        shelf.anchors = header.anchors
        shelf.unsaved = 0
        return shelf

    async def _check_anchor(self, namespace: Namespace, shelf: Shelf) -> None:
        """See that the store went through the file's state.

        A bank restored from a backup counts its versions again, with other records.
        """
        since = await self._store.changes(namespace, after=shelf.version - 1)
        seen = {*(record.id for record in since.records[:1]), *since.erased}
        if not seen & set(shelf.anchors):
            raise StoreCorrupt("the bank never was in the state it stands for")

    async def _try_save(self, namespace: Namespace, shelf: Shelf) -> None:
        try:
            await self._save(namespace, shelf)
        except (OSError, MemoryError) as error:
            log.warning("index.unsaved", file=self.path_of(namespace).name, reason=repr(error))

    async def _save(self, namespace: Namespace, shelf: Shelf) -> None:
        path = self.path_of(namespace)
        if shelf.ids:
            header = Header(
                bank=self._bank,
                namespace=namespace,
                embedder=self._embedder.name,
                dimension=self._embedder.dimension,
                version=shelf.version,
                anchors=shelf.anchors,
                ids=tuple(shelf.ids),
            )
            work = partial(_write, path, header, shelf)
        else:
            work = partial(index_file.remove, path)
        await anyio.to_thread.run_sync(work, limiter=self._limiter)
        shelf.unsaved = 0

    def path_of(self, namespace: Namespace) -> Path:
        """Where a namespace's file lies; its name gives nothing away."""
        return self._folder / f"{owner_token(namespace)}.vectors"


def _write(path: Path, header: Header, shelf: Shelf) -> None:
    index_file.write(path, VectorFile(header, shelf.vectors()))
