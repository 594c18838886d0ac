"""A bank: every store over one place, opened and closed together."""

from assay.stores.exact import ExactIndex
from assay.stores.hybrid import HybridRetriever
from assay.stores.memory import InMemoryArchive, InMemoryCache, InMemoryJournal, InMemoryStore
from assay.stores.protocols import Bank, Clock, Embedder


def memory_bank(*, embedder: Embedder, clock: Clock) -> Bank:
    """A bank that lives as long as the process: the oracle, and what tests use."""
    store = InMemoryStore()
    return Bank(
        store=store,
        archive=InMemoryArchive(),
        journal=InMemoryJournal(),
        cache=InMemoryCache(),
        retriever=HybridRetriever(
            records=store,
            keywords=store,
            vectors=ExactIndex(store=store, embedder=embedder),
            embedder=embedder,
        ),
        embedder=embedder,
    )
