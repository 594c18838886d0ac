"""Which commands there are; each lives in a module of its own."""

from typing import Annotated

import typer

from assay.cli.bank import bank_commands
from assay.cli.chat import chat
from assay.cli.demo import demo
from assay.cli.doctor import doctor
from assay.cli.explain import explain_commands
from assay.cli.faults import fault_commands
from assay.cli.inspect import inspect_commands
from assay.cli.mcp import mcp
from assay.cli.model import model_commands
from assay.cli.privacy import erase, export
from assay.cli.replay.attacks import attacks
from assay.cli.replay.causal_locomo import causal_locomo
from assay.cli.replay.families import families
from assay.cli.replay.games import games
from assay.cli.replay.jointcorebench import jointcorebench
from assay.cli.replay.journal import journal
from assay.cli.replay.locomo_faults import locomo_faults
from assay.cli.replay.resume import replay as replay_callback
from assay.cli.report import report_commands
from assay.cli.scenario import scenario_commands
from assay.cli.serve import serve
from assay.cli.simulate import simulate
from assay.cli.worker import worker_commands


def build_app() -> typer.Typer:
    """The whole command tree."""
    app = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(_assay)
    replay = typer.Typer(help="Replay benchmark scenarios.", invoke_without_command=True)
    replay.callback(invoke_without_command=True)(replay_callback)
    replay.command("attacks")(attacks)
    replay.command("causal-locomo")(causal_locomo)
    replay.command("families")(families)
    replay.command("games")(games)
    replay.command("jointcorebench")(jointcorebench)
    replay.command("journal")(journal)
    replay.command("locomo-faults")(locomo_faults)
    app.add_typer(replay, name="replay")
    app.command("chat")(chat)
    app.command("mcp")(mcp)
    app.command("demo")(demo)
    app.command("doctor")(doctor)
    app.command("erase")(erase)
    app.command("export")(export)
    app.command("serve")(serve)
    app.command("simulate")(simulate)
    app.add_typer(bank_commands(), name="bank")
    app.add_typer(fault_commands(), name="faults")
    app.add_typer(inspect_commands(), name="inspect")
    app.add_typer(model_commands(), name="model")
    app.add_typer(explain_commands(), name="explain")
    app.add_typer(scenario_commands(), name="scenario")
    app.add_typer(report_commands(), name="report")
    app.add_typer(worker_commands(), name="worker")
    return app


def _show_version(asked: bool) -> None:  # noqa: FBT001  # typer passes the option's value
    if asked:
        from importlib.metadata import version  # noqa: PLC0415  # keeps --help fast

        typer.echo(version("assay"))
        raise typer.Exit


def _assay(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version."),
    ] = False,
) -> None:
    """Agents whose memories have to earn their place in the prompt."""
