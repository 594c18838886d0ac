"""What was probably meant by a name that is not known."""

import difflib
from collections.abc import Iterable


def close_names(given: str, known: Iterable[str]) -> str:
    """A phrase with the nearest known names, or all where none is near, to end an error message with."""
    names = sorted(known)
    close = difflib.get_close_matches(given, names, n=3, cutoff=0.5)
    if close:
        return f"; did you mean {' or '.join(map(repr, close))}?"
    return f" (known: {', '.join(names)})"
