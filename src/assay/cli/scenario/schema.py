"""``assay scenario schema``: what a scenario file may hold, for editors and other tools."""

from pathlib import Path
from typing import Annotated

import typer


def schema(
    out: Annotated[
        Path | None, typer.Option(help="Write it to this file instead of printing it.")
    ] = None,
) -> None:
    """Print the JSON schema of scenario files."""
    from assay.scenarios.cases.schema import json_schema  # noqa: PLC0415  # --help stays fast
    from assay.scenarios.folder import write_whole  # noqa: PLC0415

    text = json_schema()
    if out is None:
        typer.echo(text.decode(), nl=False)
        return
    write_whole(out, text)
    typer.echo(f"wrote {out}", err=True)
