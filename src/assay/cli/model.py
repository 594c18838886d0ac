"""``assay model``: model files on this machine."""

from typing import Annotated

import typer


def model_commands() -> typer.Typer:
    """The group."""
    app = typer.Typer(no_args_is_help=True, help="Model files on this machine.")
    app.command("list")(list_models)
    app.command("pull")(pull_model)
    return app


def pull_model(
    name: Annotated[
        str,
        typer.Argument(help="A known name (see `assay model list`) or OWNER/REPOSITORY/FILE.gguf."),
    ],
    sha256: Annotated[
        str | None,
        typer.Option(help="Expected SHA-256 in hex; needed for files known to the hub only."),
    ] = None,
) -> None:
    """Get a model file, checked by its hash; `--model local:NAME` finds it afterwards."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    from assay.runtime.models.pulling import pull, sources_of, wanted  # noqa: PLC0415

    known = wanted(name, sha256=sha256)
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(known.name, total=known.size or None)
        path = pull(known, sources=sources_of(known), progress=lambda size: bar.advance(task, size))
    print(f"{known.name} is at {path}; use it as --model local:{known.name}")


def list_models(
    *, json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False
) -> None:
    """Model files that are here, and those that can be pulled by name."""
    import msgspec  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from assay.runtime.models.model_files import listing  # noqa: PLC0415

    rows = listing()
    if json:
        print(msgspec.json.encode({"models": rows}).decode())
        return
    table = Table("name", "size", "where", title="local models")
    for row in rows:
        table.add_row(row.name, f"{row.size / 1e6:.0f} MB", row.path or "can be pulled")
    Console().print(table)
