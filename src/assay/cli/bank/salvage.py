"""``assay bank salvage``: what is intact in a damaged bank, as a new one."""

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.options import JsonOption
from assay.errors import ConfigError


def salvage(
    path: Annotated[str, typer.Argument(help="Folder of the damaged bank.", show_default=False)],
    *,
    out: Annotated[
        str, typer.Option(help="Folder of the new bank; must not be there.", show_default=False)
    ],
    as_json: JsonOption = False,
) -> None:
    """Write what is provably intact in a bank into a new one, and say what is lost.

    The damaged bank is only read.
    """
    from assay.cli.bank.salvage_stage import run_salvage  # noqa: PLC0415  # --help stays fast

    if "://" in path or "://" in out:
        raise ConfigError(
            "salvage is for a bank in a folder; a bank in PostgreSQL is brought back with "
            "`assay bank restore FILE postgresql://...`"
        )
    run_salvage(Path(path), out=Path(out), as_json=as_json)
