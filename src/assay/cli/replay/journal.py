"""``assay replay journal``: take every turn of a bank again, offline, and name what differs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import BankEmbedderOption, JsonOption
from assay.cli.places import existing_bank

if TYPE_CHECKING:
    from assay.runtime.replaying import Replayed

_DIVERGED = 1
_SHOWN = 60


def journal(  # noqa: PLR0913  # one parameter per option
    bank: Annotated[str, typer.Argument(help="Folder of the bank, or postgresql://...")],
    *,
    cassette: Annotated[
        Path | None,
        typer.Option(help="Recorded answers; by default those that the bank itself keeps."),
    ] = None,
    user: Annotated[str, typer.Option(help="Whose turns.")] = "me",
    guard: Annotated[
        str | None, typer.Option(help="The guard that decided; by default as in the settings.")
    ] = None,
    embedder: BankEmbedderOption = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed the turns were made with.")] = 7,
    as_json: JsonOption = False,
) -> None:
    """Replay the turns of a bank, and name each part of a prompt, decision or reply that differs.

    Nothing is asked of a model and nothing is written. Exit code 1: something differs.
    """
    import anyio  # noqa: PLC0415  # --help stays fast

    from assay.cli.embedders import embedder_for, mismatch_names_the_option  # noqa: PLC0415

    place = existing_bank(bank)
    with mismatch_names_the_option():
        chosen = embedder_for(place, embedder)
        found = anyio.run(_replayed, place, cassette, user, guard, chosen, seed)
    _show(found, as_json=as_json)
    if found.divergences:
        raise typer.Exit(_DIVERGED)


async def _replayed(  # noqa: PLR0913, PLR0917  # anyio.run passes positions only
    bank: Path | str,
    cassette: Path | None,
    user: str,
    guard: str | None,
    embedder: str,
    seed: int,
) -> "Replayed":
    from assay.runtime.settings import Settings  # noqa: PLC0415
    from assay.runtime.wiring import open_runtime  # noqa: PLC0415

    async with open_runtime(
        model="scripted",
        bank=bank,
        guard=guard,
        settings=Settings.load(),
        embedder=embedder,
        seed=seed,
    ) as runtime:
        return await runtime.replay(user, cassette)


def _show(found: "Replayed", *, as_json: bool) -> None:
    import msgspec  # noqa: PLC0415

    if as_json:
        typer.echo(msgspec.json.encode(found).decode())
        return
    typer.echo(
        f"{found.decisions} decisions and {found.replies} replies replayed, "
        f"{len(found.divergences)} divergences"
    )
    for one in found.divergences:
        typer.echo(f"{one.turn_id}  {one.field}")
        typer.echo(f"  recorded  {_around(one.recorded, one.asked)}")
        typer.echo(f"  asked     {_around(one.asked, one.recorded)}")


def _around(text: str, other: str) -> str:
    """The part of a text where it begins to differ from another."""
    from assay.cli.decisions import one_line  # noqa: PLC0415

    pairs = enumerate(zip(text, other, strict=False))
    start = next((i for i, (a, b) in pairs if a != b), min(len(text), len(other)))
    return one_line(text[max(0, start - _SHOWN // 3) :], limit=_SHOWN)
