"""What encrypting the journal costs a turn: beside the same turns with a journal in plain text.

Run: ``python benchmarks/journal_encryption.py [--rounds N]``. The turns are those of ``turn_cpu.py``, in a
bank on disk; both kinds run in turn, so that what else the machine does meets both. Prints a table:
median CPU per turn of each kind, without model and embedder, and the median ratio of the pairs.
"""

import argparse
import sqlite3
import statistics
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from rich.console import Console
from rich.table import Table
from turn_cpu import TURNS, measure

from assay.stores import sqlite_journal
from assay.stores.records import SessionId
from assay.stores.subject_keys import SubjectKey

GUARD = "vector"
"""Its turn is the shortest, so that what encryption costs is not lost in what a guard does."""


class PlainKey(SubjectKey):
    """Stands for the key of a journal in plain text."""

    def sealed(self, session: SessionId, sequence: int, payload: bytes) -> bytes:
        """The payload itself."""
        return payload

    def opened(self, session: SessionId, sequence: int, sealed: bytes) -> bytes:
        """What was stored."""
        return sealed


@contextmanager
def in_plain_text() -> Generator[None]:
    """Journals are written without encryption, and no key is looked up, for the length of a block."""
    key = PlainKey(b"plain", b"")

    def always(_connection: sqlite3.Connection, _session: SessionId) -> SubjectKey:
        return key

    names = vars(sqlite_journal)
    kept = {name: names[name] for name in ("key_for", "subject_key")}
    names.update(dict.fromkeys(kept, always))
    try:
        yield
    finally:
        names.update(kept)


def _turn_ms() -> float:
    with TemporaryDirectory() as folder:
        return anyio.run(measure, GUARD, Path(folder) / "bank")["turn_ms"]


def main() -> None:
    """Measure both kinds in turn, and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    encrypted, plain = [], []
    for _ in range(rounds):
        encrypted.append(_turn_ms())
        with in_plain_text():
            plain.append(_turn_ms())
    pairs = [one / other for one, other in zip(encrypted, plain, strict=True)]
    table = Table(title=f"Guard {GUARD}, {TURNS} turns a round, {rounds} rounds")
    for heading in ("journal", "CPU per turn, ms", "ratio", "lowest ratio", "highest ratio"):
        table.add_column(heading, justify="left" if heading == "journal" else "right")
    figures = (statistics.median(pairs), min(pairs), max(pairs))
    table.add_row("plain text", f"{statistics.median(plain):.2f}", "1.00", "", "")
    shown = [f"{figure:.2f}" for figure in figures]
    table.add_row("encrypted", f"{statistics.median(encrypted):.2f}", *shown)
    Console().print(table)


if __name__ == "__main__":
    main()
