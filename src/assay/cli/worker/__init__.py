"""``assay worker``: takes turns and answers questions of services that share a bank and a bus."""

import typer

from assay.cli.worker.dead_letters import dead_letter_commands
from assay.cli.worker.run import run


def worker_commands() -> typer.Typer:
    """The group; without a command it works."""
    app = typer.Typer(invoke_without_command=True)
    app.callback(invoke_without_command=True)(run)
    app.add_typer(dead_letter_commands(), name="dead-letters")
    return app
