"""Banks in memory, on disk and in a database."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from assay.stores.bank import memory_bank, open_bank
from assay.stores.embeddings import HashingEmbedder
from assay.stores.postgres.bank import open_postgres_bank
from assay.stores.protocols import Bank

from ..stores.support import NoonClock, OpenBank  # noqa: TID252 - builders of the stores' tests


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def open_any_bank(request: pytest.FixtureRequest, tmp_path: Path) -> OpenBank:
    """Opens a bank; opening again finds what was there."""
    embedder, clock = HashingEmbedder(), NoonClock()
    if request.param == "memory":
        return kept_in_memory(memory_bank(embedder=embedder, clock=clock))
    if request.param == "postgres":
        url: str = request.getfixturevalue("clean_database")
        return lambda: open_postgres_bank(url, embedder=embedder, clock=clock)
    return lambda: open_bank(tmp_path / "bank", embedder=embedder, clock=clock)


def kept_in_memory(bank: Bank) -> Callable[[], AbstractAsyncContextManager[Bank]]:
    @asynccontextmanager
    async def opened() -> AsyncGenerator[Bank]:
        yield bank

    return opened
