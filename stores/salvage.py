"""What is provably intact in a damaged bank, written into a new one; the source is only read.

A row counts as intact if its seal holds. Rows behind a damaged page are looked for on the pages
after it. Records and turns keep their order, a journal keeps its entries up to the first gap, and
what was erased stays erased.
"""

import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias, TypeVar

import msgspec

from assay.errors import ConfigError, StoreCorrupt
from assay.stores.checks import superseded_from
from assay.stores.inspection import FILE_NAME, VECTORS_NAME, bank_file
from assay.stores.records import ArchiveTurn, MemoryRecord, Namespace
from assay.stores.rows import indexed_words, microseconds, one_int, opened, owner_token, seal
from assay.stores.schema import check_header, migrate, prepare
from assay.stores.watermark import acknowledged

_Row: TypeAlias = tuple[Any, ...]

S = TypeVar("S", bound=msgspec.Struct)

_MOST_ROWS = 1 << 40
"""No number of a row is above it; where the search behind a damaged page ends."""


class Salvaged(msgspec.Struct, frozen=True, kw_only=True):
    """What came through, and what did not.

    Attributes:
        source: Folder of the damaged bank.
        out: Folder of the new one.
        records: Records kept.
        turns: Archived turns kept.
        journal: Journal entries kept.
        cache: Cached answers kept.
        erased: Tombstones kept.
        lost_commits: Acknowledged commits that the source no longer holds at all.
        lost: Each row or stretch of rows that could not be kept, and why.
    """

    source: str
    out: str
    records: int
    turns: int
    journal: int
    cache: int
    erased: int
    lost_commits: int
    lost: tuple[str, ...]


def salvage_bank(folder: Path, out: Path) -> Salvaged:
    """Write what is intact in the bank in ``folder`` into a new bank in ``out``; blocks.

    Raises:
        ConfigError: If ``out`` is there already.
        NewerFormat: If a newer Assay wrote the source.
        StoreCorrupt: If nothing of the source can be read.
        StoreError: If ``folder`` holds no bank.
    """
    path = bank_file(folder)
    if out.exists():
        raise ConfigError(f"--out must be a new folder, but {str(out)!r} is there already")
    with TemporaryDirectory(prefix="assay-salvage-") as temporary:
        copy = _copied(path, Path(temporary))
        out.mkdir(mode=0o700, parents=True)
        try:
            return _salvaged(copy, folder, out)
        except BaseException:
            shutil.rmtree(out)
            raise


def _copied(path: Path, folder: Path) -> Path:
    """The bank file and its log, apart: SQLite would remove a log when it closes the file."""
    if not path.exists():
        raise StoreCorrupt(f"{path} is missing; only a backup can bring it back")
    for name in (FILE_NAME, f"{FILE_NAME}-wal"):
        if path.with_name(name).exists():
            shutil.copyfile(path.with_name(name), folder / name)
    copy = folder / FILE_NAME
    check_header(copy)
    return copy


def _salvaged(copy: Path, folder: Path, out: Path) -> Salvaged:
    target = out / FILE_NAME
    prepare(target)
    (out / VECTORS_NAME).mkdir(mode=0o700)
    with (
        closing(sqlite3.connect(copy, isolation_level=None)) as source,
        closing(sqlite3.connect(target, isolation_level=None)) as new,
    ):
        source.execute("PRAGMA query_only = ON")
        new.execute("PRAGMA synchronous = FULL")
        migrate(new, target)
        salvage = _Salvage(source, new)
        new.execute("BEGIN IMMEDIATE")
        salvage.run()
        new.execute("COMMIT")
        lost_commits = max(0, _noted(folder / FILE_NAME) - salvage.commits())
    return Salvaged(
        source=str(folder),
        out=str(out),
        lost_commits=lost_commits,
        lost=tuple(salvage.lost),
        **salvage.kept,
    )


def _noted(path: Path) -> int:
    try:
        return acknowledged(path)
    except StoreCorrupt:
        return 0


_KEPT_WHOLE = (
    "subject_keys",
    "erased_turns",
    "erased_entries",
    "erased_subjects",
    "unfinished_erasures",
)
"""Tables whose rows carry no seal: what was erased must stay erased, and keys open the journal."""

_TABLES: dict[type[msgspec.Struct], str] = {MemoryRecord: "records", ArchiveTurn: "turns"}


def _validity(record: MemoryRecord) -> tuple[datetime | None, datetime | None]:
    return record.valid_from, record.valid_to


class _Salvage:
    """From one connection to another, table by table."""

    def __init__(self, source: sqlite3.Connection, new: sqlite3.Connection) -> None:
        self._source = source
        self._new = new
        self.lost: list[str] = []
        self.kept: dict[str, int] = {}

    def run(self) -> None:
        """Copy everything; what cannot be kept is noted in ``lost``."""
        # First: an erased record must not come back.
        self.kept["erased"] = self._tombstones()
        for table in _KEPT_WHOLE:
            self._insert(table, self._whole(table))
        self.kept["records"] = self._records()
        self.kept["turns"] = self._turns()
        self.kept["journal"] = self._journal()
        self.kept["cache"] = self._cache()
        self._embedder()

    def commits(self) -> int:
        """How many commits the source holds; 0 if that cannot be read."""
        try:
            return one_int(self._source, "SELECT value FROM meta WHERE key = 'commits'")
        except sqlite3.DatabaseError:
            return 0

    def _tombstones(self) -> int:
        rows = list(self._rows("tombstones", "version", "version, namespace, id"))
        return self._insert("tombstones", rows)

    def _records(self) -> int:
        kept = 0
        for row in self._rows("records", "version", "version, seal, namespace, body"):
            version, sealed, namespace, body = row
            record = self._opened(MemoryRecord, row)
            if record is None or self._holds("tombstones", namespace, record.id):
                continue
            times = [None if t is None else microseconds(t) for t in _validity(record)]
            values = (version, namespace, record.id, *times, body, sealed)
            kept += self._keep("records", values, record.namespace, indexed_words(record.text))
            if record.supersedes is not None:
                since = microseconds(superseded_from(record))
                self._supersede((namespace, record.supersedes, since))
        # Also those whose successor was erased or is lost: an old statement must not come back.
        for row in self._whole("superseded"):
            self._supersede(row)
        return kept

    def _supersede(self, row: _Row) -> None:
        self._new.execute(
            "INSERT INTO superseded VALUES (?, ?, ?) "
            "ON CONFLICT DO UPDATE SET since = min(since, excluded.since)",
            row,
        )

    def _turns(self) -> int:
        kept = 0
        for row in self._rows("turns", "number", "number, seal, namespace, body"):
            number, sealed, namespace, body = row
            turn = self._opened(ArchiveTurn, row)
            if turn is not None and not self._holds("erased_turns", namespace, turn.id):
                place = (turn.id, turn.session, turn.position, microseconds(turn.at))
                values = (number, namespace, *place, body, sealed)
                words = indexed_words(f"{turn.speaker} {turn.text}")
                kept += self._keep("turns", values, turn.namespace, words)
        return kept

    def _journal(self) -> int:
        sessions: dict[int, str] = dict(self._rows("sessions", "number", "number, id"))
        length: dict[int, int] = dict.fromkeys(sessions, 0)
        kept: list[_Row] = []
        # A bank of the first format has no keys.
        key_id = "key_id" if self._has("subject_keys") else "NULL"
        columns = f"rowid, session, sequence, payload, seal, {key_id}"
        rows = sorted(self._rows("journal", "rowid", columns), key=lambda row: row[1:3])
        keys = self._readable_keys()
        for _, number, sequence, payload, sealed, key in rows:
            name = sessions.get(number)
            is_next = length.get(number) == sequence and key in keys
            if is_next and _is_sealed(sealed, name, str(sequence), payload):
                kept.append((number, sequence, payload, sealed, key))
                length[number] += 1
            else:
                self.lost.append(f"journal entry {sequence} of session {name!r}")
        self._insert("sessions", [(n, name) for n, name in sessions.items() if length[n]])
        return self._insert("journal", kept)

    def _cache(self) -> int:
        kept: list[_Row] = []
        shown: list[_Row] = []
        columns = "number, namespace, key, value, request, record_ids, seal"
        for row in self._rows("cache", "number", columns):
            if not _is_sealed(row[6], *row[1:6]):
                self.lost.append(f"row {row[0]} of cache: not what was written")
                continue
            kept.append(row)
            ids = msgspec.json.decode(str(row[5]), type=tuple[str, ...])
            shown += [(row[1], record_id, row[0]) for record_id in dict.fromkeys(ids)]
        self._insert("cache_records", shown)
        return self._insert("cache", kept)

    def _embedder(self) -> None:
        try:
            rows = self._source.execute("SELECT key, value FROM meta WHERE key = 'embedder'")
            self._insert("meta", rows.fetchall())
        except sqlite3.DatabaseError as error:
            self.lost.append(f"the embedder's name, the next one to open it is bound: {error}")

    def _readable_keys(self) -> set[bytes | None]:
        """Ids of the keys that came through, and those that stand for none."""
        rows = self._new.execute("SELECT id FROM subject_keys").fetchall()
        return {None, b"", *(row[0] for row in rows)}

    def _has(self, table: str) -> bool:
        try:
            sql = "SELECT count(*) FROM sqlite_master WHERE name = ?"
            return one_int(self._source, sql, (table,)) > 0
        except sqlite3.DatabaseError as error:
            raise StoreCorrupt(f"nothing of the bank can be read: {error}") from error

    # ---- rows

    def _whole(self, table: str) -> list[_Row]:
        """Every row of a table that has no numbers."""
        if not self._has(table):
            return []
        rows: list[_Row] = []
        try:
            rows.extend(self._source.execute(f"SELECT * FROM {table}"))  # noqa: S608 - ours
        except sqlite3.DatabaseError as error:
            self.lost.append(f"rows of {table} after the first {len(rows)}: {error}")
        return rows

    def _rows(self, table: str, number: str, columns: str) -> Iterator[_Row]:
        """Every row that can be reached, in order of its number, the first column."""
        last = -1
        while True:
            try:
                for row in self._source.execute(
                    f"SELECT {columns} FROM {table} NOT INDEXED WHERE {number} > ? "  # noqa: S608 - names are ours
                    f"ORDER BY {number}",
                    (last,),
                ):
                    last = row[0]
                    yield row
            except sqlite3.DatabaseError as error:
                behind = self._behind(table, number, last)
                self.lost.append(f"rows {last + 1} to {behind or 'the end'} of {table}: {error}")
                if behind is None:
                    return
                last = behind
            else:
                return

    def _behind(self, table: str, number: str, last: int) -> int | None:
        """The least number after which reading, or the end, works again; ``None`` if there is none."""
        step = 1
        while not self._is_readable(table, number, last + step):
            step *= 2
            if last + step > _MOST_ROWS:
                return None
        low, high = last + step // 2, last + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (low, middle) if self._is_readable(table, number, middle) else (middle, high)
            )
        return high

    def _is_readable(self, table: str, number: str, after: int) -> bool:
        sql = f"SELECT * FROM {table} NOT INDEXED WHERE {number} > ? ORDER BY {number} LIMIT 1"  # noqa: S608 - names are ours
        try:
            self._source.execute(sql, (after,)).fetchone()
        except sqlite3.DatabaseError:
            return False
        return True

    def _opened(self, kind: type[S], row: _Row) -> S | None:
        """The value of a row (number, seal, namespace, ..., body)."""
        number, sealed, namespace, *_, body = row
        if _is_sealed(sealed, namespace, body):
            return opened(kind, Namespace(namespace), body, sealed)
        self.lost.append(f"row {number} of {_TABLES[kind]}: not what was written")
        return None

    def _holds(self, table: str, namespace: object, row_id: object) -> bool:
        sql = f"SELECT count(*) FROM {table} WHERE namespace = ? AND id = ?"  # noqa: S608 - ours
        return one_int(self._new, sql, (namespace, row_id)) > 0

    def _keep(self, table: str, values: _Row, namespace: Namespace, words: str) -> int:
        if not self._insert(table, [values]):
            return 0
        self._insert(f"{table}_words", [(owner_token(namespace), words)], number=values[0])
        return 1

    def _insert(self, table: str, rows: Sequence[_Row], *, number: object = None) -> int:
        before = self._new.total_changes
        for row in rows:
            marks = ", ".join("?" * len(row))
            if number is None:
                self._new.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", row)  # noqa: S608 - ours
            else:
                sql = f"INSERT INTO {table} (rowid, owner, words) VALUES (?, {marks})"  # noqa: S608 - ours
                self._new.execute(sql, (number, *row))
        return self._new.total_changes - before


def _is_sealed(sealed: object, *parts: object) -> bool:
    values = [part for part in parts if isinstance(part, bytes | str)]
    return len(values) == len(parts) and sealed == seal(*values)
