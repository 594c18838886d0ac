"""A run on disk: its configuration, one line per decision, one line per answer paid for.

``run.json`` is written once, before anything is asked. ``decisions.jsonl`` and ``journal.jsonl``
only grow, one whole line at a time; a line that a crash cut short is dropped when the run goes on.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import anyio.to_thread
import msgspec

from assay.errors import ScenarioError
from assay.scenarios.runs import FORMAT, Paid, Row, RunRecord

RUN_FILE = "run.json"
DECISIONS_FILE = "decisions.jsonl"
JOURNAL_FILE = "journal.jsonl"
REPORT_FILE = "report.html"
_ASIDE = "previous"

T = TypeVar("T")


class RunFolder:
    """The files of one run in ``path``; nothing is written before it is asked to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def begin(self, record: RunRecord) -> None:
        """Take a folder for a new run, keeping a finished one of the same configuration aside.

        Raises:
            ScenarioError: If the folder holds a run of another configuration, or is not writable.
        """
        await anyio.to_thread.run_sync(self._begin, record)

    async def record(self) -> RunRecord:
        """The configuration of the run in this folder.

        Raises:
            ScenarioError: If there is none, or not one of this version.
        """
        return await anyio.to_thread.run_sync(self._read_record)

    async def rows(self) -> list[Row]:
        """Decisions taken so far; the first one of a unit stands."""
        read = await anyio.to_thread.run_sync(read_lines, self.path / DECISIONS_FILE, Row)
        return list({row.unit: row for row in reversed(read)}.values())[::-1]

    async def paid(self) -> list[Paid]:
        """Answers paid for so far."""
        return await anyio.to_thread.run_sync(read_lines, self.path / JOURNAL_FILE, Paid)

    async def append(self, row: Row) -> None:
        """Keep one decision; it survives the end of the process."""
        await anyio.to_thread.run_sync(append_lines, self.path / DECISIONS_FILE, [row])

    async def append_paid(self, paid: Sequence[Paid]) -> None:
        """Keep answers paid for."""
        await anyio.to_thread.run_sync(append_lines, self.path / JOURNAL_FILE, paid)

    def _begin(self, record: RunRecord) -> None:
        if (self.path / RUN_FILE).exists():
            earlier = self._read_record()
            if earlier.config != record.config or earlier.identity != record.identity:
                raise ScenarioError(
                    f"{str(self.path)!r} holds a run of another configuration; go on with it by "
                    "'assay replay --resume DIR', or choose another folder with --out"
                )
            _set_aside(self.path)
        write_whole(self.path / RUN_FILE, msgspec.json.format(msgspec.json.encode(record)))

    def _read_record(self) -> RunRecord:
        path = self.path / RUN_FILE
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ScenarioError(
                f"no run in {str(self.path)!r}: expected the file {RUN_FILE}, which --out DIR makes"
            ) from error
        try:
            found = msgspec.json.decode(data, type=_Version).format
            if found != FORMAT:
                raise ScenarioError(f"{path}: expected a run of format {FORMAT}, got {found}")
            return msgspec.json.decode(data, type=RunRecord)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ScenarioError(f"{path}: expected the configuration of a run ({error})") from error


def digest(path: Path) -> str:
    """SHA-256 of a file, in hex.

    Raises:
        ScenarioError: If it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise ScenarioError(f"no data file {str(path)!r}; pass its path with --data") from error
    except OSError as error:
        raise ScenarioError(f"cannot read {str(path)!r}: {error.strerror}") from error


class _Version(msgspec.Struct):
    format: int


def _set_aside(folder: Path) -> None:
    """Move the files of a finished or unfinished run into a folder below; the last one is kept."""
    aside = folder / _ASIDE
    aside.mkdir(exist_ok=True)
    for name in (RUN_FILE, DECISIONS_FILE, JOURNAL_FILE, REPORT_FILE):
        if (folder / name).exists():
            (folder / name).replace(aside / name)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is either whole or not there; blocking.

    Raises:
        ScenarioError: If it cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        raise ScenarioError(f"cannot write {str(path)!r}: {error.strerror}") from error


def append_lines(path: Path, values: Sequence[msgspec.Struct]) -> None:
    """Add JSON lines, safe from the end of the process; a crash cuts at most the last one. Blocking.

    Raises:
        ScenarioError: If the file cannot be written.
    """
    lines = b"".join(msgspec.json.encode(value) + b"\n" for value in values)
    try:
        with path.open("ab", buffering=0) as file:
            file.write(lines)
            os.fsync(file.fileno())
    except OSError as error:
        raise ScenarioError(f"cannot write {str(path)!r}: {error.strerror}") from error


def read_lines(path: Path, kind: type[T]) -> list[T]:
    """Every whole line; a last line without its end is cut off the file first. Blocking.

    Raises:
        ScenarioError: If the file cannot be read, or a line is none that a run writes.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ScenarioError(f"cannot read {str(path)!r}: {error.strerror}") from error
    whole, end, _cut = data.rpartition(b"\n")
    if _cut:
        os.truncate(path, len(whole) + len(end))
    decoder = msgspec.json.Decoder(kind)
    rows: list[T] = []
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            rows.append(decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ScenarioError(
                f"{path}, line {number}: expected what a run writes ({error})"
            ) from error
    return rows
