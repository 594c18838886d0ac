"""The bank's SQLite format: numbered migrations, and what is refused before anything is touched.

A released migration is never edited; a change is a new one at the end.
"""

import os
import secrets
import sqlite3
import tempfile
from pathlib import Path

from assay.errors import NewerFormat, StoreCorrupt
from assay.stores.durable import sync

APPLICATION_ID = 0x41535341
"""``ASSA``: tells a bank from any other SQLite file."""

REMEDY = "see `assay bank check`, then run `assay bank salvage` or restore it from a backup"
"""What to do about a damaged bank."""

BUSY_SECONDS = 30.0
"""How long a connection waits for another process's transaction."""

_FIRST = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- version: one counter over records and tombstones, so that an index can follow both
CREATE TABLE records (
  version INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  id TEXT NOT NULL,
  valid_from INTEGER,
  valid_to INTEGER,
  body BLOB NOT NULL,
  seal BLOB NOT NULL
);
CREATE UNIQUE INDEX records_by_id ON records (namespace, id);
CREATE INDEX records_by_version ON records (namespace, version);

-- apart from the records: a successor may come before, and stays in force when erased
CREATE TABLE superseded (
  namespace TEXT NOT NULL,
  id TEXT NOT NULL,
  since INTEGER NOT NULL,
  PRIMARY KEY (namespace, id)
) WITHOUT ROWID;

CREATE TABLE tombstones (
  version INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  id TEXT NOT NULL
);
CREATE UNIQUE INDEX tombstones_by_id ON tombstones (namespace, id);
CREATE INDEX tombstones_by_version ON tombstones (namespace, version);

-- owner: one token made of the namespace, so that a search never walks another's postings
CREATE VIRTUAL TABLE records_words USING fts5 (
  owner, words, content = '', tokenize = 'unicode61 remove_diacritics 0'
);

CREATE TABLE turns (
  number INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  id TEXT NOT NULL,
  session TEXT NOT NULL,
  position INTEGER NOT NULL,
  at INTEGER NOT NULL,
  body BLOB NOT NULL,
  seal BLOB NOT NULL
);
CREATE UNIQUE INDEX turns_by_id ON turns (namespace, id);
CREATE INDEX turns_by_position ON turns (namespace, session, position);
CREATE INDEX turns_by_time ON turns (namespace, at, position);
CREATE VIRTUAL TABLE turns_words USING fts5 (
  owner, words, content = '', tokenize = 'unicode61 remove_diacritics 0'
);

CREATE TABLE sessions (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE journal (
  session INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  payload BLOB NOT NULL,
  seal BLOB NOT NULL,
  PRIMARY KEY (session, sequence)
);

CREATE TABLE cache (
  number INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  key TEXT NOT NULL,
  value BLOB NOT NULL,
  request BLOB NOT NULL,
  record_ids TEXT NOT NULL,
  seal BLOB NOT NULL
);
CREATE UNIQUE INDEX cache_by_key ON cache (namespace, key);
CREATE TABLE cache_records (
  namespace TEXT NOT NULL,
  record_id TEXT NOT NULL,
  cache_number INTEGER NOT NULL,
  PRIMARY KEY (namespace, record_id, cache_number)
) WITHOUT ROWID;
CREATE INDEX cache_records_by_row ON cache_records (cache_number);
"""

_SECOND = """
-- key_id: of the key the payload is encrypted with; NULL: written by an earlier release as it
-- is; empty: erased with its subject
ALTER TABLE journal ADD COLUMN key_id BLOB;
CREATE TABLE subject_keys (
  owner TEXT PRIMARY KEY,
  id BLOB NOT NULL,
  key BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE erased_turns (
  namespace TEXT NOT NULL,
  id TEXT NOT NULL,
  PRIMARY KEY (namespace, id)
) WITHOUT ROWID;

-- what stands in the place of an erased entry, so that a restored backup is mended too
CREATE TABLE erased_entries (
  session TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  payload BLOB NOT NULL,
  PRIMARY KEY (session, sequence)
) WITHOUT ROWID;

CREATE TABLE erased_subjects (id BLOB PRIMARY KEY, namespace TEXT NOT NULL) WITHOUT ROWID;

-- rows are erased in one transaction; what is left to do after it is in here until it is done
CREATE TABLE unfinished_erasures (number INTEGER PRIMARY KEY, namespace TEXT NOT NULL);
"""

MIGRATIONS = (_FIRST, _SECOND)

FORMAT = len(MIGRATIONS)
"""The format this release writes; kept in SQLite's ``user_version``."""


def prepare(path: Path) -> None:
    """Make sure that a current bank file is at ``path``; blocks.

    A new file is built under another name and linked into place, so that no process ever sees
    one without tables, and an empty file can only be a damaged one.

    Raises:
        NewerFormat: Before anything is touched.
        StoreCorrupt: If what is there is no bank, or its log is there without it.
        OSError: If the folder cannot be written.
    """
    if not path.exists():
        if path.with_name(f"{path.name}-wal").exists():
            raise StoreCorrupt(f"{path} is missing but its log is there; restore it from a backup")
        _create(path)
    check_header(path)


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring an opened bank to ``FORMAT``, all steps or none.

    Raises:
        NewerFormat: If the file became newer since ``prepare``; nothing was written.
    """
    if _version_of(connection, path) == FORMAT:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        _apply_from(connection, _version_of(connection, path))
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def check_pages(connection: sqlite3.Connection, path: Path) -> None:
    """Look at every page and index entry once; about 10 us a record.

    A damaged page header can hide rows without any error when they are read; only this notices.

    Raises:
        StoreCorrupt: If a page is not well formed.
    """
    finding: str = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if finding != "ok":
        raise StoreCorrupt(f"the bank {path} is damaged: {finding}; {REMEDY}")


def _create(path: Path) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        connection = sqlite3.connect(temporary, isolation_level=None)
        try:
            connection.execute("PRAGMA auto_vacuum = NONE")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            _apply_from(connection, 0)
            connection.execute("INSERT INTO meta VALUES ('bank', ?)", (secrets.token_hex(16),))
            connection.execute("COMMIT")
            # Closing does so as well, but keeps silent if the disk is full: half a bank would
            # be put in place.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.close()
        sync(temporary)
        _link(temporary, path)
        sync(path.parent)
    finally:
        for left in ("", "-wal", "-shm", "-journal"):
            Path(f"{name}{left}").unlink(missing_ok=True)


def _link(temporary: Path, path: Path) -> None:
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        return  # another process was first; its file is as good


def check_header(path: Path) -> None:
    """Read format and application from the file's header, without opening a database."""
    with path.open("rb") as file:
        header = file.read(100)
    if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):  # noqa: PLR2004 - the size of SQLite's header
        raise StoreCorrupt(f"{path} is not an Assay bank, or its header is damaged")
    application = int.from_bytes(header[68:72], "big")
    if application != APPLICATION_ID:
        raise StoreCorrupt(f"{path} is not an Assay bank (application id {application:#x})")
    _refuse_newer(int.from_bytes(header[60:64], "big"), path)


def _version_of(connection: sqlite3.Connection, path: Path) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    _refuse_newer(version, path)
    return version


def _refuse_newer(version: int, path: Path) -> None:
    if version > FORMAT:
        raise NewerFormat(
            f"{path} has format {version}, this Assay reads up to {FORMAT}; upgrade Assay"
        )


def _apply_from(connection: sqlite3.Connection, version: int) -> None:
    for migration in MIGRATIONS[version:]:
        for statement in migration.split(";\n"):
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
