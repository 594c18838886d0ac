"""An evaluation cache in a file of its own, apart from any bank."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from assay.errors import StoreError
from assay.stores.protocols import Cache
from assay.stores.sqlite import Database
from assay.stores.sqlite_cache import SqliteCache


@asynccontextmanager
async def open_cache(path: Path) -> AsyncGenerator[Cache]:
    """An evaluation cache in the SQLite file ``path``; the file and its folder are made if missing.

    Several processes may have it open.

    Raises:
        NewerFormat: If a newer Assay wrote it; it is not touched.
        StoreCorrupt: If the file is damaged or not a cache.
        StoreError: If it cannot be made or opened.
    """
    await make_folder(path.parent)
    async with Database(path) as database:
        yield SqliteCache(database)


async def make_folder(path: Path) -> None:
    """Make a folder that only its owner may read; memories are private.

    Raises:
        StoreError: If it cannot be made, or a file is in the way.
    """
    try:
        await anyio.Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path} cannot be used as a folder: {error.strerror}") from error
