"""``assay scenario new``: a first scenario, to be changed into one's own."""

from pathlib import Path
from typing import Annotated

import typer


def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .toml or .jsonl file to write.")],
) -> None:
    """Write a first scenario; it passes as it stands."""
    from assay.scenarios.cases.writing import write_first  # noqa: PLC0415  # --help stays fast

    write_first(file)
    typer.echo(f"wrote {file}; run it: pytest --assay {file}   (or: assay scenario run {file})")
