"""What a derived index has to take in to agree with the store again."""

from typing import NamedTuple

import numpy as np

from assay.stores.protocols import Changes, Embedder, FloatMatrix, MemoryStore
from assay.stores.records import Namespace, RecordId

EMBED_BATCH = 64
"""Texts embedded at once, so that a long catch-up can be cancelled between batches."""


class Delta(NamedTuple):
    """Rows to add and to drop.

    Attributes:
        ids: Records to add, oldest first.
        vectors: Their vectors, shape ``(len(ids), dimension)``.
        erased: Records to drop.
        version: The store's version this brings the index to.
    """

    ids: list[RecordId]
    vectors: FloatMatrix
    erased: list[RecordId]
    version: int


async def embedded(changes: Changes, embedder: Embedder) -> Delta:
    """The changes with a vector for each new record.

    Raises:
        ModelError: If the embedder cannot embed; the index stays where it was.
    """
    texts = [record.text for record in changes.records]
    batches = [
        await embedder.embed(texts[start : start + EMBED_BATCH], kind="passage")
        for start in range(0, len(texts), EMBED_BATCH)
    ]
    empty = np.zeros((0, embedder.dimension), dtype=np.float32)
    vectors = np.concatenate([empty, *batches])
    return Delta([r.id for r in changes.records], vectors, changes.erased, changes.version)


async def delta(store: MemoryStore, embedder: Embedder, namespace: Namespace, after: int) -> Delta:
    """Everything after a version of the store."""
    return await embedded(await store.changes(namespace, after=after), embedder)
