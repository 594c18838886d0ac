"""``assay explain ...``: why something went as it did."""

import typer

from assay.cli.explain_decision import decision
from assay.cli.explain_jointcore import jointcore
from assay.cli.explain_miss import miss


def explain_commands() -> typer.Typer:
    """The group."""
    app = typer.Typer(
        no_args_is_help=True, help="Explain a decision, group deletion, or a miss in a cassette."
    )
    app.command("decision")(decision)
    app.command("jointcore")(jointcore)
    app.command("miss")(miss)
    return app
