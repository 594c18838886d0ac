"""What ``assay bank salvage`` prints."""

import sys
from pathlib import Path

import msgspec
from rich.console import Console

from assay.cli.tables import FigureTable
from assay.stores.salvage import salvage_bank

_KINDS = {
    "records": "records",
    "erased": "erased ids",
    "turns": "archived turns",
    "journal": "journal entries",
    "cache": "cached answers",
}


def run_salvage(path: Path, *, out: Path, as_json: bool) -> None:
    """Salvage and print."""
    kept = salvage_bank(path, out)
    if as_json:
        sys.stdout.write(msgspec.json.encode(kept).decode() + "\n")
        return
    console = Console()
    rows = [(name, f"{getattr(kept, kind):,}") for kind, name in _KINDS.items()]
    console.print(FigureTable(title=f"Kept in {out}", head=("rows", "number"), rows=rows))
    if kept.lost_commits:
        console.print(f"{kept.lost_commits:,} acknowledged commits are no longer in {path}")
    for line in kept.lost:
        console.print(f"- lost: {line}", markup=False, soft_wrap=True)
    if not (kept.lost or kept.lost_commits):
        console.print("nothing was lost")
