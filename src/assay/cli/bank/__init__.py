"""``assay bank``: look after a bank's files."""

import typer

from assay.cli.bank.check import check


def bank_commands() -> typer.Typer:
    """The group."""
    app = typer.Typer(no_args_is_help=True, help="Look after a bank's files.")
    app.command("check")(check)
    return app
