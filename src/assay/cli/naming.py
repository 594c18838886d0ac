"""Wrong names get the nearest right ones (typer does it for commands; this is for values)."""

from collections.abc import Iterable

from assay.errors import ConfigError
from assay.runtime.naming import close_names


def nearest(kind: str, given: str, known: Iterable[str]) -> ConfigError:
    """The error for an unknown name: what came, and the nearest names, or all where none is near."""
    return ConfigError(f"unknown {kind} {given!r}{close_names(given, known)}")
