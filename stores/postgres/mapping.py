"""PostgreSQL's errors and the driver's as the store's errors, here and nowhere else."""

from urllib.parse import urlsplit

import asyncpg  # type: ignore[import-untyped]  # as in connection.py

from assay.errors import ConfigError, StoreCorrupt, StoreError

FOREIGN: tuple[type[Exception], ...] = (
    OSError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
"""What the driver raises."""

LOST: tuple[type[Exception], ...] = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InternalClientError,
)
"""What it raises for a connection that is of no more use, even if it does not know."""

_SCHEMES = {"postgresql", "postgres"}
_UNREADABLE = (
    "the bank's URL cannot be read: expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE with one "
    "@; percent-encode what is special in its parts (@ is %40, / is %2F, : is %3A, ? is %3F, # is %23)"
)


def shown(url: str) -> str:
    """The URL without its password, for messages.

    Raises:
        ConfigError: If it is no URL of PostgreSQL.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        # What it says may quote the password.
        raise ConfigError(_UNREADABLE) from None
    if parts.scheme not in _SCHEMES:
        raise ConfigError(
            "a bank in PostgreSQL is given as postgresql://USER:PASSWORD@HOST:PORT/DATABASE, "
            f"got a URL that begins with {parts.scheme!r}"
        )
    user, at, host = parts.netloc.partition("@")
    if "@" in f"{host}{parts.path}{parts.query}{parts.fragment}":
        raise ConfigError(_UNREADABLE)
    # A password may also stand among the options; none of them is needed to tell banks apart.
    return f"{parts.scheme}://{user.partition(':')[0]}{at}{host}{parts.path}"


def is_passing(error: BaseException) -> bool:
    """Whether the same work may succeed on another connection, or a moment later."""
    if isinstance(error, asyncpg.QueryCanceledError | asyncpg.DatabaseDroppedError):
        return False
    if isinstance(error, asyncpg.InterfaceError):
        # The driver has no class of its own for a lost connection.
        return "closed" in str(error) or "released back" in str(error)
    return isinstance(
        error,
        OSError
        | asyncpg.PostgresConnectionError
        # The server said goodbye before the driver asked: it is confused for good.
        | asyncpg.InternalClientError
        | asyncpg.OperatorInterventionError
        | asyncpg.TransactionRollbackError
        | asyncpg.InvalidCachedStatementError
        | asyncpg.OutdatedSchemaCacheError
        | asyncpg.TooManyConnectionsError
        | asyncpg.IdleInTransactionSessionTimeoutError,
    )


def is_starting(error: BaseException) -> bool:
    """Whether a server is there that takes no connections yet."""
    return isinstance(error, asyncpg.CannotConnectNowError)


def mapped(error: Exception, name: str) -> StoreError:
    """The store's error for one of ``FOREIGN``.

    Args:
        error: What was raised.
        name: The bank's URL without its password.
    """
    if isinstance(error, asyncpg.DataCorruptedError | asyncpg.IndexCorruptedError):
        return StoreCorrupt(f"the bank {name} is damaged: {_said(error)}; restore it from a backup")
    return StoreError(f"the bank {name} cannot be used: {_said(error)}{_advice(error)}")


def _said(error: Exception) -> str:
    """The first line: further ones may quote rows."""
    if isinstance(error, TimeoutError):
        return "the server did not answer in time"
    return str(error).partition("\n")[0] or type(error).__name__


_NO_SERVER = (
    "; start PostgreSQL (`docker compose up -d postgres`, or your own server), or correct the URL"
)
_NO_PGVECTOR = "; install pgvector 0.8 or later on the server (image `pgvector/pgvector`)"
_NO_RIGHT = (
    "; the user needs CREATE on the database and its schema, or an administrator runs "
    "`CREATE EXTENSION vector` there first"
)

_ADVICE: tuple[tuple[type[Exception], str], ...] = (
    (asyncpg.InvalidAuthorizationSpecificationError, "; check user and password of the URL"),
    (asyncpg.InvalidCatalogNameError, "; make it with `createdb`, or correct the URL"),
    (asyncpg.ReadOnlySQLTransactionError, "; it is a standby, give the URL of the primary"),
    (asyncpg.TooManyConnectionsError, "; raise max_connections, or run fewer workers"),
    (asyncpg.InsufficientResourcesError, "; give the server more room"),
    (asyncpg.ProgramLimitExceededError, "; keep names and ids below 2,000 bytes"),
    (asyncpg.DuplicateTableError, "; give Assay a database of its own"),
    (asyncpg.InsufficientPrivilegeError, _NO_RIGHT),
    (asyncpg.UndefinedFileError, _NO_PGVECTOR),
    (asyncpg.FeatureNotSupportedError, _NO_PGVECTOR),
    (asyncpg.PostgresConnectionError, _NO_SERVER),
    (OSError, _NO_SERVER),
)


def _advice(error: Exception) -> str:
    """What to do, after a semicolon; empty for an error that nobody foresaw."""
    return next((advice for kind, advice in _ADVICE if isinstance(error, kind)), "")
