"""``assay bank``: look after a bank's files."""

import typer

from assay.cli.bank.check import check
from assay.cli.bank.copying import backup, restore
from assay.cli.bank.exchange import export_memories, import_memories
from assay.cli.bank.salvage import salvage


def bank_commands() -> typer.Typer:
    """The group."""
    app = typer.Typer(no_args_is_help=True, help="Look after a bank's files.")
    app.command("check")(check)
    app.command("salvage")(salvage)
    app.command("import")(import_memories)
    app.command("export")(export_memories)
    app.command("backup")(backup)
    app.command("restore")(restore)
    return app
