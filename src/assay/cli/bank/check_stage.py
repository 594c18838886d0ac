"""What ``assay bank check`` prints."""

import sys
from pathlib import Path

import msgspec
import typer
from rich.console import Console

from assay.cli.tables import FigureTable
from assay.stores.inspection import Inspection, inspect_bank


def run_check(path: Path, *, as_json: bool) -> None:
    """Inspect, print, and exit with 1 if something is damaged."""
    found = inspect_bank(path)
    if as_json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    else:
        _print(found)
    if not found.ok:
        raise typer.Exit(1)


def _print(found: Inspection) -> None:
    console = Console()
    console.print(_files(found))
    if found.namespaces:
        console.print(_namespaces(found))
    verdict = "as written" if found.ok else "damaged; see assay bank salvage"
    console.print(f"format {found.format}, integrity {found.integrity}: {verdict}", markup=False)
    for damage in found.damage:
        console.print(f"- {damage}", markup=False, soft_wrap=True)


def _files(found: Inspection) -> FigureTable:
    return FigureTable(
        title=f"Files of {found.path}",
        head=("file", "bytes"),
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
