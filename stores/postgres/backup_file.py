"""One file that holds a bank's tables as PostgreSQL copies them; everything here blocks.

A zip archive with one member per table (binary ``COPY``) and, written last, a list of them. A file
that was cut off has no list, and each member has its checksum.
"""

import os
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from assay.errors import NewerFormat, StoreCorrupt, StoreError
from assay.stores.durable import sync
from assay.stores.postgres.schema import FORMAT
from assay.stores.schema import APPLICATION_ID

_LIST = "bank.json"
_KIND = "assay bank on postgresql"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_SQLITE = b"SQLite format 3\0"
_LEVEL = 1
"""Of compression: the disk is slower than that, and faster than the next level."""


class Table(msgspec.Struct, frozen=True):
    """A table in a backup: its columns in the order of the copy."""

    name: str
    columns: list[str]


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """What is in a backup; ``format`` is that of the bank it was taken of."""

    format: int
    tables: list[Table]
    kind: str = _KIND


class BackupWriter:
    """A new backup, put under its name by ``finish`` and removed by ``close`` without it.

    Args:
        file: Where; only its owner may read it.

    Raises:
        StoreError: If it is there already or cannot be written, from every method.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._temporary = file.with_name(f".{file.name}.new")
        if file.exists():
            raise StoreError(f"{file} is there already; choose another name or remove it")
        with _writing(file):
            self._temporary.unlink(missing_ok=True)
            self._raw = os.fdopen(os.open(self._temporary, _NEW, 0o600), "wb")
        self._archive = zipfile.ZipFile(self._raw, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL)
        self._member: IO[bytes] | None = None

    def begin(self, table: str) -> None:
        """Go on to the next table."""
        with _writing(self._file):
            self._end()
            self._member = self._archive.open(table, "w", force_zip64=True)

    def write(self, content: bytes) -> None:
        """Write more of the table."""
        assert self._member is not None  # noqa: S101  # begin() comes first
        with _writing(self._file):
            self._member.write(content)

    def finish(self, contents: Contents) -> int:
        """Write what is in it and put it in place, durably; gives its size in bytes."""
        with _writing(self._file):
            self._end()
            self._archive.writestr(_LIST, msgspec.json.encode(contents))
            self._archive.close()
            self._raw.flush()
            os.fsync(self._raw.fileno())
            self._temporary.replace(self._file)
            sync(self._file.parent)
            return self._file.stat().st_size

    def close(self) -> None:
        """Let go of the file; what was not finished is removed."""
        self._end()
        self._archive.close()
        self._raw.close()
        self._temporary.unlink(missing_ok=True)

    def _end(self) -> None:
        if self._member is not None:
            self._member.close()
        self._member = None


def contents(file: Path) -> Contents:
    """What is in a backup, after a look at every byte of it.

    Raises:
        StoreError: If there is no such file, or it is a backup of a bank in a folder.
        StoreCorrupt: If it is damaged or no backup.
        NewerFormat: If a newer Assay wrote it.
    """
    if not file.is_file():
        raise StoreError(f"there is no backup {file}; give a file that `assay bank backup` wrote")
    _refuse_of_folder(file)
    with opened_archive(file) as archive:
        damaged = archive.testzip()
        if damaged is not None:
            raise StoreCorrupt(f"the backup {file} is damaged in {damaged!r}; use another one")
        found = _listed(archive, file)
    if found.format > FORMAT:
        raise NewerFormat(
            f"{file} has format {found.format}, this Assay reads up to {FORMAT}; upgrade Assay"
        )
    return found


def _refuse_of_folder(file: Path) -> None:
    """A backup that ``stores/backup.py`` wrote is whole, but of no bank in PostgreSQL."""
    with file.open("rb") as opened:
        header = opened.read(72)
    if header.startswith(_SQLITE) and int.from_bytes(header[68:], "big") == APPLICATION_ID:
        raise StoreError(
            f"{file} is a backup of a bank in a folder, not of one in PostgreSQL; restore it there: "
            f"`assay bank restore {file} FOLDER`"
        )


@contextmanager
def opened_archive(file: Path) -> Generator[zipfile.ZipFile]:
    """A backup, to read its tables from.

    Raises:
        StoreCorrupt: If it is damaged or no backup.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except (zipfile.BadZipFile, EOFError) as error:
        raise StoreCorrupt(
            f"{file} is no backup of a bank in PostgreSQL, or it was cut off: {error}"
        ) from error


def _listed(archive: zipfile.ZipFile, file: Path) -> Contents:
    try:
        found = msgspec.json.decode(archive.read(_LIST), type=Contents)
    except (KeyError, msgspec.DecodeError) as error:
        raise StoreCorrupt(f"{file} is no backup of a bank in PostgreSQL") from error
    if found.kind != _KIND:
        raise StoreCorrupt(f"{file} is no backup of a bank in PostgreSQL, but of {found.kind!r}")
    return found


@contextmanager
def _writing(file: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error}") from error
