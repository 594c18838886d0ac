"""A whole bank in one file, and back; what was erased since stays erased."""

import shutil
import sqlite3
import zipfile
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import msgspec

from assay.errors import StoreError
from assay.stores.bank import FILE_NAME, VECTORS_NAME
from assay.stores.durable import sync
from assay.stores.protocols import ReplacedEntry, turn_source
from assay.stores.records import Namespace, RecordId, SessionId, TurnId
from assay.stores.schema import check_header, check_pages, migrate
from assay.stores.sqlite import connect_read_only
from assay.stores.sqlite_archive import erase_turns
from assay.stores.sqlite_cache import forget_records
from assay.stores.sqlite_eraser import erase_subject, put_replacement
from assay.stores.sqlite_records import erase_records
from assay.stores.watermark import mark_path

_WAIT_SECONDS = 1.0
_DATABASE_LIST = "bank.json"


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup or a restore moved.

    Attributes:
        bytes: Size of the file.
        records: Records in it.
        erased: Records of the backup that had been erased since, and were erased again.
    """

    bytes: int
    records: int
    erased: int = 0


def back_up(bank: Path, file: Path) -> Copied:
    """Write a bank, as it is at one moment, into one new file; others may go on using it; blocks.

    Raises:
        StoreError: If there is no bank, the file is there already, or it cannot be written.
        StoreCorrupt: If the bank is damaged.
    """
    source = bank / FILE_NAME
    if not source.exists():
        raise StoreError(f"{bank} holds no bank ({FILE_NAME} is missing); give the bank's folder")
    if file.exists():
        raise StoreError(f"{file} is there already; choose another name or remove it")
    check_header(source)
    temporary = file.with_name(f".{file.name}.new")
    try:
        _copy(source, temporary)
        temporary.replace(file)
        sync(file.parent)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{file} cannot be written: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)
    return _told(file)


def restore(file: Path, bank: Path) -> Copied:
    """Make the bank in a folder what a backup holds, less what was erased in that folder's bank; blocks.

    Its vectors are made anew from the records.

    Raises:
        StoreError: If the backup is missing or of a bank in PostgreSQL, somebody has the bank open, or the folder cannot be
            written.
        StoreCorrupt: If the backup is damaged or is no bank; nothing was changed then.
        NewerFormat: If a newer Assay wrote it; nothing was changed then.
    """
    if not file.is_file():
        raise StoreError(f"there is no backup {file}; give a file that `assay bank backup` wrote")
    _refuse_of_database(file)
    check_header(file)
    bank.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = bank / FILE_NAME
    temporary = bank / f".{FILE_NAME}.restored"
    try:
        with closing(connect_read_only(file)) as connection:
            check_pages(connection, file)
        with _alone(target) as old:
            _copy(file, temporary)
            erased = _without_erased(temporary, old, target)
            _put_in_place(temporary, target)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{bank} cannot be restored from {file}: {error}") from error
    finally:
        for left in bank.glob(f"{temporary.name}*"):
            left.unlink()
    told = _told(target)
    return msgspec.structs.replace(told, erased=erased)


def _refuse_of_database(file: Path) -> None:
    """A backup that ``postgres/backup_file.py`` wrote is whole, but of no bank in a folder."""
    if not zipfile.is_zipfile(file):
        return
    with zipfile.ZipFile(file) as archive:
        if _DATABASE_LIST in archive.namelist():
            raise StoreError(
                f"{file} is a backup of a bank in PostgreSQL, not of one in a folder; restore it "
                f"there: `assay bank restore {file} postgresql://...`"
            )


def _copy(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    with closing(connect_read_only(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
    target.chmod(0o600)
    sync(target)


@contextmanager
def _alone(path: Path) -> Generator[sqlite3.Connection | None]:
    """The bank file that is to be replaced, shut to everybody else; ``None`` if there is none.

    Raises:
        StoreError: If somebody has it open.
    """
    if not path.exists():
        yield None
        return
    with closing(sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)) as connection:
        try:
            # In this mode the lock stays after the transaction, until the connection is closed.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                raise
            raise StoreError(
                f"the bank {path.parent} is open in another program; nothing was restored: end that "
                "program (a service, a chat) and try again"
            ) from error
        yield connection


def _without_erased(restored: Path, old: sqlite3.Connection | None, target: Path) -> int:
    """Erase in a restored file what the bank it will replace has erased; gives how many records."""
    with closing(sqlite3.connect(restored, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        migrate(connection, restored)
        before = _records(connection)
        if old is not None:
            migrate(old, target)
            connection.execute("BEGIN IMMEDIATE")
            _erase_again(connection, old)
            connection.execute("COMMIT")
            old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        erased = before - _records(connection)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    sync(restored)
    return erased


def _erase_again(connection: sqlite3.Connection, old: sqlite3.Connection) -> None:
    known = {row[0] for row in connection.execute("SELECT id FROM erased_subjects")}
    for number, namespace in old.execute("SELECT id, namespace FROM erased_subjects"):
        if number not in known:
            erase_subject(connection, Namespace(namespace))
    for namespace, record in old.execute("SELECT namespace, id FROM tombstones"):
        # One that is not in the backup leaves its tombstone too: it may not come back either.
        _bury(connection, Namespace(namespace), RecordId(record))
    for namespace, turn in old.execute("SELECT namespace, id FROM erased_turns"):
        erase_turns(connection, Namespace(namespace), [TurnId(turn)])
        forget_records(connection, Namespace(namespace), [turn_source(TurnId(turn))])
    for session, sequence, payload in old.execute("SELECT * FROM erased_entries"):
        connection.execute(
            "INSERT OR REPLACE INTO erased_entries VALUES (?, ?, ?)", (session, sequence, payload)
        )
        if _is_there(connection, session, sequence):
            put_replacement(connection, ReplacedEntry(SessionId(session), sequence, payload))


def _bury(connection: sqlite3.Connection, namespace: Namespace, record: RecordId) -> None:
    forget_records(connection, namespace, [record])
    if erase_records(connection, namespace, [record]):
        return
    connection.execute(
        "INSERT OR IGNORE INTO tombstones (version, namespace, id) VALUES ("
        "(SELECT 1 + max((SELECT coalesce(max(version), 0) FROM records), "
        "(SELECT coalesce(max(version), 0) FROM tombstones))), ?, ?)",
        (namespace, record),
    )


def _is_there(connection: sqlite3.Connection, session: str, sequence: int) -> bool:
    return bool(
        connection.execute(
            "SELECT 1 FROM journal WHERE sequence = ? AND key_id IS NOT x'' "
            "AND session = (SELECT number FROM sessions WHERE id = ?)",
            (sequence, session),
        ).fetchone()
    )


def _put_in_place(restored: Path, target: Path) -> None:
    # Before the file: a mark and vectors that are missing are made anew, those of another are refused.
    mark_path(target).unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        shutil.rmtree(target.parent / VECTORS_NAME)
    for suffix in ("-wal", "-shm"):
        target.with_name(target.name + suffix).unlink(missing_ok=True)
    restored.replace(target)
    sync(target.parent)


def _told(path: Path) -> Copied:
    with closing(connect_read_only(path)) as connection:
        return Copied(bytes=path.stat().st_size, records=_records(connection))


def _records(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM records").fetchone()[0])
