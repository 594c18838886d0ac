"""Whether a bank's files are as written; reads every page and every row, changes nothing."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from assay.errors import StoreCorrupt, StoreError
from assay.stores import index_file
from assay.stores.records import Namespace
from assay.stores.rows import one_int, owner_token, seal
from assay.stores.schema import check_header
from assay.stores.sqlite import connect_read_only
from assay.stores.watermark import acknowledged, check_acknowledged

FILE_NAME = "bank.sqlite3"
VECTORS_NAME = "vectors"

_MOST_FINDINGS = 100

SEALED = {
    "records": "SELECT version, seal, namespace, body FROM records",
    "turns": "SELECT number, seal, namespace, body FROM turns",
    "journal": (
        "SELECT j.rowid, j.seal, s.id, CAST(j.sequence AS TEXT), j.payload FROM journal j "
        "JOIN sessions s ON s.number = j.session"
    ),
    "cache": "SELECT number, seal, namespace, key, value, request, record_ids FROM cache",
}
"""For each table of sealed rows: number, seal, and what the seal is over."""

_COUNTS = {
    "records": "SELECT namespace, count(*) FROM records GROUP BY namespace",
    "erased": "SELECT namespace, count(*) FROM tombstones GROUP BY namespace",
    "turns": "SELECT namespace, count(*) FROM turns GROUP BY namespace",
    "cache": "SELECT namespace, count(*) FROM cache GROUP BY namespace",
}
_UNLISTED = {
    "records without their words": (
        "SELECT count(*) FROM records WHERE version NOT IN (SELECT id FROM records_words_docsize)"
    ),
    "archived turns without their words": (
        "SELECT count(*) FROM turns WHERE number NOT IN (SELECT id FROM turns_words_docsize)"
    ),
    "journal entries after a gap": (
        "SELECT count(*) FROM (SELECT count(*) AS n, max(sequence) + 1 AS m FROM journal "
        "GROUP BY session) WHERE n <> m"
    ),
    "journal entries without a session": (
        "SELECT count(*) FROM journal WHERE session NOT IN (SELECT number FROM sessions)"
    ),
}


class BankFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a bank; ``name`` is relative to its folder."""

    name: str
    bytes: int


class NamespaceCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of one namespace.

    Attributes:
        records: Records, superseded and expired ones included.
        erased: Tombstones.
        turns: Archived turns.
        cache: Cached answers.
        index: ``current``, ``behind`` (it catches up by itself), ``absent`` (it is made when
            needed) or ``damaged``.
    """

    records: int
    erased: int
    turns: int
    cache: int
    index: str


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """What was found.

    Attributes:
        path: Folder of the bank, or its URL without the password.
        ok: Whether nothing is damaged.
        format: Version of the bank's format; ``None`` if it cannot be told.
        integrity: ``ok``, or ``damaged`` if its pages or indexes are inconsistent.
        commits: Acknowledged commits that the bank holds; ``None``: the server answers for them.
        noted_commits: Acknowledged commits by its mark; more than ``commits`` means lost ones.
        files: Every file in the folder, or every table.
        namespaces: Rows by namespace.
        journal: Entries of the journal, over all sessions.
        damage: Each thing that is not as written.
    """

    path: str
    ok: bool
    format: int | None
    integrity: str
    commits: int | None
    noted_commits: int | None
    files: tuple[BankFile, ...]
    namespaces: dict[str, NamespaceCounts]
    journal: int
    damage: tuple[str, ...]


def bank_file(folder: Path) -> Path:
    """The bank file in a folder.

    Raises:
        StoreError: If the folder holds no bank.
    """
    path = folder / FILE_NAME
    if not folder.is_dir() or not (path.exists() or (folder / VECTORS_NAME).exists()):
        raise StoreError(f"{folder} holds no bank (expected {FILE_NAME} in it)")
    return path


def inspect_bank(folder: Path) -> Inspection:
    """Look at every page and every row of the bank in ``folder``; blocks, may run while it is in use.

    Raises:
        NewerFormat: If a newer Assay wrote it.
        StoreError: If the folder holds no bank or cannot be read.
    """
    path = bank_file(folder)
    found = _Found()
    with found.noting():
        found.noted = acknowledged(path)
    with found.noting():
        _look_into(path, found)
    states = _index_states(folder / VECTORS_NAME, found)
    return Inspection(
        path=str(folder),
        ok=not found.damage,
        format=found.format,
        integrity=found.integrity,
        commits=found.commits,
        noted_commits=found.noted,
        files=tuple(_files(folder)),
        namespaces={name: found.counts(name, states) for name in sorted(found.names())},
        journal=found.journal,
        damage=tuple(found.damage[:_MOST_FINDINGS]),
    )


class _Found:
    """What an inspection has found so far."""

    def __init__(self) -> None:
        self.damage: list[str] = []
        self.format: int | None = None
        self.integrity = "damaged"
        self.noted = 0
        self.commits = 0
        self.journal = 0
        self.rows: dict[str, Counter[str]] = {kind: Counter() for kind in _COUNTS}
        self.newest: dict[str, int] = {}
        self.bank = ""

    def noting(self) -> "_Noting":
        """Damage in the block becomes a finding."""
        return _Noting(self.damage)

    def names(self) -> set[str]:
        return {name for counter in self.rows.values() for name in counter}

    def counts(self, name: str, states: dict[str, str]) -> NamespaceCounts:
        numbers = {kind: counter[name] for kind, counter in self.rows.items()}
        index = states.get(owner_token(Namespace(name)), "absent")
        return NamespaceCounts(**numbers, index=index)


class _Noting:
    def __init__(self, damage: list[str]) -> None:
        self._damage = damage

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, StoreCorrupt | sqlite3.DatabaseError | FileNotFoundError):
            self._damage.append(str(error))
            return True
        return False


def _look_into(path: Path, found: _Found) -> None:
    if not path.exists():
        raise StoreCorrupt(f"{path.name} is missing")
    check_header(path)
    with closing(connect_read_only(path, alone=_is_alone(path))) as connection:
        connection.execute("BEGIN")
        found.format = one_int(connection, "PRAGMA user_version")
        with found.noting():
            _check_pages(connection, found)
        with found.noting():
            _read_facts(connection, path, found)
        for table in SEALED:
            with found.noting():
                found.damage += _broken_seals(connection, table)
        for what, sql in _UNLISTED.items():
            with found.noting():
                if number := one_int(connection, sql):
                    found.damage.append(f"{number} {what}")


def _is_alone(path: Path) -> bool:
    """Whether no log is beside the file: nobody has it open, and it is all there is."""
    log = path.with_name(f"{path.name}-wal")
    return not log.exists() or log.stat().st_size == 0


def _check_pages(connection: sqlite3.Connection, found: _Found) -> None:
    findings = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(20)")]
    if findings == ["ok"]:
        found.integrity = "ok"
    else:
        found.damage += findings


def _read_facts(connection: sqlite3.Connection, path: Path, found: _Found) -> None:
    for kind, sql in _COUNTS.items():
        with found.noting():
            found.rows[kind].update(dict(connection.execute(sql).fetchall()))
    with found.noting():
        found.journal = one_int(connection, "SELECT count(*) FROM journal")
    for table in ("records", "tombstones"):
        with found.noting():
            sql = f"SELECT namespace, max(version) FROM {table} GROUP BY namespace"  # noqa: S608 - ours
            for name, version in connection.execute(sql):
                token = owner_token(Namespace(name))
                found.newest[token] = max(version, found.newest.get(token, 0))
    row = connection.execute("SELECT value FROM meta WHERE key = 'bank'").fetchone()
    found.bank = row[0] if row else ""
    found.commits = one_int(connection, "SELECT value FROM meta WHERE key = 'commits'")
    check_acknowledged(connection, path, found.noted)


def _broken_seals(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    for number, sealed, *parts in connection.execute(SEALED[table]):
        if sealed != seal(*parts):
            yield f"row {number} of {table} is not what was written"


def _index_states(folder: Path, found: _Found) -> dict[str, str]:
    """By the namespace's token, which names the file."""
    return {path.stem: _index_state(path, found) for path in sorted(folder.glob("*.vectors"))}


def _index_state(path: Path, found: _Found) -> str:
    try:
        header = index_file.read(path).header
    except StoreCorrupt as error:
        found.damage.append(
            f"{VECTORS_NAME}/{error} (it is rebuilt when the bank is next searched)"
        )
        return "damaged"
    newest = found.newest.get(path.stem, 0)
    if header.bank != found.bank or header.version > newest:
        return "absent"
    return "current" if header.version == newest else "behind"


def _files(folder: Path) -> Iterator[BankFile]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield BankFile(name=str(path.relative_to(folder)), bytes=path.stat().st_size)
