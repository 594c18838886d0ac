"""Wrong names get the nearest right ones (typer does it for commands; this is for values)."""

import difflib
from collections.abc import Iterable

from assay.errors import ConfigError


def nearest(kind: str, given: str, known: Iterable[str]) -> ConfigError:
    """The error for an unknown name: what came, and the nearest names, or all where none is near."""
    names = sorted(known)
    close = difflib.get_close_matches(given, names, n=3, cutoff=0.5)
    if close:
        meant = " or ".join(map(repr, close))
        return ConfigError(f"unknown {kind} {given!r}; did you mean {meant}?")
    return ConfigError(f"unknown {kind} {given!r} (known: {', '.join(names)})")
