"""What ``assay bank check`` prints."""

import sys
from pathlib import Path

import anyio
import msgspec
import typer
from rich.console import Console

from assay.cli.tables import FigureTable
from assay.stores.banks import is_in_database, require_driver
from assay.stores.inspection import Inspection, inspect_bank


def run_check(path: str, *, as_json: bool) -> None:
    """Inspect, print, and exit with 1 if something is damaged."""
    found = _inspected(path)
    if as_json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    else:
        _print(found)
    if not found.ok:
        raise typer.Exit(1)


def _inspected(path: str) -> Inspection:
    if not is_in_database(path):
        return inspect_bank(Path(path))
    require_driver()
    from assay.stores.postgres.inspection import inspect_database  # noqa: PLC0415  # heavy

    return anyio.run(inspect_database, path)


def _print(found: Inspection) -> None:
    console = Console()
    console.print(_files(found))
    if found.namespaces:
        console.print(_namespaces(found))
    verdict = "as written" if found.ok else f"damaged; {_remedy(found)}"
    console.print(f"format {found.format}, integrity {found.integrity}: {verdict}", markup=False)
    for damage in found.damage:
        console.print(f"- {damage}", markup=False, soft_wrap=True)


def _remedy(found: Inspection) -> str:
    in_folder = found.commits is not None
    return "see assay bank salvage" if in_folder else "restore it from a backup"


def _files(found: Inspection) -> FigureTable:
    return FigureTable(
        title=f"{'Tables' if found.commits is None else 'Files'} of {found.path}",
        head=("name", "bytes"),
        rows=[(file.name, f"{file.bytes:,}") for file in found.files],
    )


def _namespaces(found: Inspection) -> FigureTable:
    return FigureTable(
        title="Rows",
        head=("namespace", "records", "erased", "archived turns", "cached answers", "index"),
        rows=[
            (name, f"{n.records:,}", f"{n.erased:,}", f"{n.turns:,}", f"{n.cache:,}", n.index)
            for name, n in found.namespaces.items()
        ],
    )
