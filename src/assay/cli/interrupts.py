"""Ctrl-C is one line and exit code 130; the command-line library would end without a word."""

from collections.abc import Generator
from contextlib import contextmanager

import typer

_INTERRUPTED = 130


@contextmanager
def interruptible() -> Generator[None]:
    """End the command when it is interrupted inside.

    Raises:
        typer.Exit: With exit code 130, after saying so on stderr.
    """
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("assay: interrupted", err=True)
        raise typer.Exit(_INTERRUPTED) from None
