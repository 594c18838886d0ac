"""``assay bank check``: whether a bank's files are as written; nothing is changed."""

from typing import Annotated

import typer

from assay.cli.options import JsonOption


def check(
    path: Annotated[
        str, typer.Argument(help="Folder of the bank, or postgresql://...", show_default=False)
    ],
    *,
    as_json: JsonOption = False,
) -> None:
    """Look at every page and every row of a bank without changing it.

    Exit code 0: all is as written. 1: something is damaged; see `assay bank salvage`.
    """
    from assay.cli.bank.check_stage import run_check  # noqa: PLC0415  # --help stays fast

    run_check(path, as_json=as_json)
