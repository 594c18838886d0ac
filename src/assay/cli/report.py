"""``assay report ...``: pages of runs that are there already, and of two of them compared."""

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.options import JsonOption


def report_commands() -> typer.Typer:
    """The group."""
    app = typer.Typer(no_args_is_help=True, help="Show a run again, or compare two.")
    app.command("compare")(compare)
    app.command("show")(show)
    return app


def compare(
    a: Annotated[Path, typer.Argument(help="Folder of a run (its --out).", show_default=False)],
    b: Annotated[Path, typer.Argument(help="Folder of another run.", show_default=False)],
    *,
    out: Annotated[Path | None, typer.Option(help="Write the page here (HTML).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two runs of the same suite over the same data, unit by unit.

    Differences are A minus B with 95 % intervals by conversation or user, a sign-flip test and, for
    yes-or-no measures, McNemar's exact test. Methods are paired by name.
    """
    from assay.cli.report_stage import run_compare  # noqa: PLC0415  # --help stays fast

    run_compare(a, b, out=out, as_json=as_json)


def show(
    folder: Annotated[
        Path, typer.Argument(help="Folder of a run (its --out).", show_default=False)
    ],
    *,
    out: Annotated[
        Path | None, typer.Option(help="Write the page here; default: report.html in the folder.")
    ] = None,
) -> None:
    """Write the page of a run from what is in its folder, also if it has not finished."""
    from assay.cli.report_stage import run_show  # noqa: PLC0415  # --help stays fast

    run_show(folder, out=out)
