"""``assay scenario``: conversations with known answers, as files and as tests."""

import typer

from assay.cli.scenario.from_journal import from_journal
from assay.cli.scenario.new import new
from assay.cli.scenario.run import run
from assay.cli.scenario.schema import schema


def scenario_commands() -> typer.Typer:
    """The group."""
    app = typer.Typer(no_args_is_help=True, help="Scenarios: files that are tests.")
    app.command("new")(new)
    app.command("run")(run)
    app.command("from-journal")(from_journal)
    app.command("schema")(schema)
    return app
