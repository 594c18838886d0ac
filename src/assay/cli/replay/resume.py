"""``assay replay --resume DIR``."""

from pathlib import Path
from typing import Annotated

import typer

from assay.errors import ConfigError

_USAGE = 2
"""As for the other groups: help instead of a command is not success."""


def replay(
    context: typer.Context,
    resume: Annotated[
        Path | None,
        typer.Option(help="Go on with the run that --out kept in this folder, where it was."),
    ] = None,
) -> None:
    """Replay benchmark scenarios."""
    if context.invoked_subcommand is not None:
        if resume is not None:
            raise ConfigError("--resume stands alone: the folder knows which benchmark it runs")
        return
    if resume is None:
        typer.echo(context.get_help())
        raise typer.Exit(_USAGE)
    from assay.cli.replay.begin import resume as go_on  # noqa: PLC0415  # heavy: only when it runs

    go_on(resume)
