"""``assay inspect export``: the inspector's pages as files, for whoever has no service at hand."""

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import BankEmbedderOption, JsonOption
from assay.cli.places import BankPlace, existing_bank

if TYPE_CHECKING:
    from assay.runtime.http.inspector.export import Exported


def inspect_commands() -> typer.Typer:
    """The group."""
    app = typer.Typer(no_args_is_help=True, help="Look at conversations, decisions and memories.")
    app.callback()(_inspect)
    app.command("export")(export)
    return app


def _inspect() -> None:
    """Look at conversations, decisions and memories; `assay serve` shows them live at /inspect."""


def export(  # noqa: PLR0913  # a command's options
    *,
    out: Annotated[Path, typer.Option(help="Folder to write the pages to; a new or empty one.")],
    bank: BankPlace = None,
    user: Annotated[str | None, typer.Option(help="Of one user only; by default of all.")] = None,
    tenant: Annotated[str, typer.Option(help="Of a service with tenants: whose users.")] = "",
    embedder: BankEmbedderOption = None,
    json: JsonOption = False,
) -> None:
    """Write every conversation, decision and memory as pages that open in any browser.

    The pages hold what the users said: give them to nobody who may not read that.
    """
    import anyio  # noqa: PLC0415  # `assay --help` does without

    from assay.cli.consent import say_forbidden  # noqa: PLC0415
    from assay.cli.embedders import embedder_for, mismatch_names_the_option  # noqa: PLC0415

    path = existing_bank(bank)
    with mismatch_names_the_option():
        chosen = embedder_for(path, embedder)
        written = anyio.run(_export, out, path, user, tenant, chosen)
    say_forbidden(written.forbidden)
    facts = {"first": str(written.first), "pages": written.pages, "users": list(written.users)}
    if json:
        print(json_module.dumps(facts))
    else:
        users = "1 user" if len(written.users) == 1 else f"{len(written.users)} users"
        print(f"{written.pages} pages of {users}; open {written.first}")


async def _export(
    out: Path, path: Path | str, user: str | None, tenant: str, embedder: str
) -> "Exported":
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    from assay.runtime.http.inspector.export import export as write  # noqa: PLC0415
    from assay.runtime.wiring import open_runtime  # noqa: PLC0415

    console = Console(stderr=True)
    async with open_runtime(
        model="scripted", guard="no_memory", bank=path, embedder=embedder
    ) as runtime:
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            bar = progress.add_task("users", total=None)
            return await write(
                runtime,
                out,
                tenant=tenant,
                user=user,
                told=lambda done, total: progress.update(bar, completed=done, total=total),
            )
