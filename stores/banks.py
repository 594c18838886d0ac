"""Where a bank is: in a folder of this machine, or in a database that any number of hosts reach."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pathlib import Path

from assay.errors import ConfigError
from assay.stores.bank import open_bank
from assay.stores.protocols import Bank, Clock, Embedder

_SCHEMES = {"postgresql", "postgres"}


def is_in_database(location: Path | str) -> bool:
    """Whether a bank's place is the URL of a database and not a folder.

    Raises:
        ConfigError: If it is a URL of something else.
    """
    scheme, separator, _ = str(location).partition("://")
    if not separator or isinstance(location, Path):
        return False
    if scheme not in _SCHEMES:
        raise ConfigError(
            "a bank is a folder or postgresql://USER:PASSWORD@HOST:PORT/DATABASE, "
            f"got a URL that begins with {scheme!r}"
        )
    return True


def shown(location: Path | str) -> str:
    """A bank's place for messages: the folder, or the URL without its password."""
    if not is_in_database(location):
        return str(location)
    require_driver()
    from assay.stores.postgres.mapping import shown as without_password  # noqa: PLC0415  # heavy

    return without_password(str(location))


@asynccontextmanager
async def open_bank_at(
    location: Path | str, *, embedder: Embedder, clock: Clock
) -> AsyncGenerator[Bank]:
    """The bank at a place, made if missing.

    Args:
        location: A folder, or ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE``.
        embedder: What the bank is bound to.
        clock: Time.

    Raises:
        ConfigError: If it is a URL of something else, or the driver is not installed.
        StoreError: If it cannot be made or opened; as the kind of bank says.
    """
    async with _opening(location, embedder, clock) as bank:
        yield bank


def _opening(
    location: Path | str, embedder: Embedder, clock: Clock
) -> AbstractAsyncContextManager[Bank]:
    if not is_in_database(location):
        return open_bank(Path(location), embedder=embedder, clock=clock)
    require_driver()
    from assay.stores.postgres.bank import open_postgres_bank  # noqa: PLC0415  # heavy

    return open_postgres_bank(str(location), embedder=embedder, clock=clock)


def require_driver() -> None:
    """Refuse a database where the package that speaks to it is missing.

    Raises:
        ConfigError: Says how to install it.
    """
    try:
        import_module("asyncpg")
    except ModuleNotFoundError as missing:
        raise ConfigError(
            "a bank in PostgreSQL needs the package asyncpg: pip install 'assay[distributed]'"
        ) from missing


async def embedder_of(url: str) -> str | None:
    """Name of the embedder that a bank in a database is bound to; ``None``: it is new.

    Raises:
        ConfigError: If the driver is not installed.
        StoreError: If the database cannot be used.
    """
    require_driver()
    from assay.stores.postgres.database import Postgres  # noqa: PLC0415  # heavy

    async with Postgres(url) as database:
        return await database.meta("embedder")
