"""Which commands there are; each lives in a module of its own."""

import typer


def build_app() -> typer.Typer:
    """The whole command tree."""
    app = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        help="Agents whose memories have to earn their place in the prompt.",
    )
    replay = typer.Typer(help="Replay benchmark scenarios.", invoke_without_command=True)
    app.add_typer(replay, name="replay")
    return app
