"""What was probably meant by a name that is not known."""

import difflib
from collections.abc import Iterable


def close_names(given: str, known: Iterable[str]) -> str:
    """A phrase with the nearest known names and then all of them, to end an error message with."""
    names = sorted(known)
    close = difflib.get_close_matches(given, names, n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    return f"{hint} (known: {', '.join(names)})"
