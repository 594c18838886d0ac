"""A bank is bound to the embedder it was made with: vectors of two are not comparable."""

from typing import Protocol

from assay.errors import EmbedderMismatch
from assay.stores.protocols import Embedder


class Facts(Protocol):
    """Facts about a whole bank, kept in it."""

    async def meta(self, key: str) -> str | None:
        """A fact; ``None`` if it was never set."""
        ...

    async def set_meta_once(self, key: str, value: str) -> str:
        """Set a fact unless it is set already; gives the one that stands."""
        ...


async def bind(facts: Facts, place: str, embedder: Embedder) -> None:
    """Bind a new bank to its embedder, and refuse another one afterwards.

    Args:
        facts: Of the bank.
        place: Where the bank is, for messages.
        embedder: The one it is opened with.

    Raises:
        EmbedderMismatch: If it was made with another; nothing was written.
    """
    bound = await facts.meta("embedder")
    if bound is None:
        bound = await facts.set_meta_once("embedder", embedder.name)
    if bound != embedder.name:
        raise EmbedderMismatch(
            f"the bank {place} was made with embedder {bound!r}, got {embedder.name!r}; "
            f"open it with {bound!r}, or start another bank",
            bound=bound,
            given=embedder.name,
        )
