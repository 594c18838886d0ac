"""Wrong names get the nearest right ones (typer does it for commands; this is for values)."""

import difflib
from collections.abc import Iterable

from assay.errors import ConfigError


def nearest(kind: str, given: str, known: Iterable[str]) -> ConfigError:
    """The error for an unknown name: what came, the nearest names, and all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(given, names, n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    return ConfigError(f"unknown {kind} {given!r}{hint} (known: {', '.join(names)})")
