"""Banks in memory and on disk."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from assay.stores.bank import memory_bank, open_bank
from assay.stores.embeddings import HashingEmbedder
from assay.stores.protocols import Bank

from ..stores.support import NoonClock, OpenBank  # noqa: TID252 - builders of the stores' tests


@pytest.fixture(params=["memory", "sqlite"])
def open_any_bank(request: pytest.FixtureRequest, tmp_path: Path) -> OpenBank:
    """Opens a bank; on disk, opening again finds what was there."""
    kept = memory_bank(embedder=HashingEmbedder(), clock=NoonClock())

    @asynccontextmanager
    async def opened() -> AsyncGenerator[Bank]:
        if request.param == "memory":
            yield kept
            return
        async with open_bank(
            tmp_path / "bank", embedder=HashingEmbedder(), clock=NoonClock()
        ) as bank:
            yield bank

    return opened
