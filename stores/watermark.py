"""How many commits of a bank were acknowledged, kept beside it: what SQLite itself cannot tell.

SQLite ends the recovery of its log at the first frame that does not check, as after a power cut; a
bit that flipped in the log therefore drops acknowledged commits without an error. So every
transaction counts itself in the bank, and the count is noted here after the transaction is on disk
and before anyone is told. A bank that counts less than its mark has lost something.

The mark is written but not synced on its own (a second sync would double the cost of a commit):
after a power cut it may be behind, never ahead. It then proves less; it never accuses falsely.
"""

import fcntl
import os
import sqlite3
from pathlib import Path

from assay.errors import StoreCorrupt
from assay.stores.rows import one_int, seal

_COUNT_BYTES = 8
_SEAL_BYTES = 8

_COUNT = """
INSERT INTO meta VALUES ('commits', '1')
ON CONFLICT DO UPDATE SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT)
"""


def count_commit(connection: sqlite3.Connection) -> int:
    """Count the transaction under way, as part of it; gives the count it brings the bank to."""
    connection.execute(_COUNT)
    return commits(connection)


def commits(connection: sqlite3.Connection) -> int:
    """How many counted transactions the bank holds."""
    return one_int(connection, "SELECT value FROM meta WHERE key = 'commits'")


def mark_path(path: Path) -> Path:
    """Where the mark of a bank file lies."""
    return path.with_name(f"{path.name}-mark")


def acknowledged(path: Path) -> int:
    """The highest count noted for the bank file ``path``; 0 if there is no mark; blocks.

    Raises:
        StoreCorrupt: If the mark is not what was written.
    """
    try:
        content = mark_path(path).read_bytes()
    except FileNotFoundError:
        return 0
    return _opened(content, path)


def check_acknowledged(connection: sqlite3.Connection, path: Path, noted: int) -> None:
    """Compare a bank with its mark, read before the connection's snapshot was taken.

    Raises:
        StoreCorrupt: If acknowledged commits are missing.
    """
    held = commits(connection)
    if held < noted:
        raise StoreCorrupt(
            f"the bank {path} has lost {noted - held} of {noted} acknowledged commits (its log is "
            "damaged or an older file was put in its place); run `assay bank salvage` or restore it "
            f"from a backup, and remove {mark_path(path).name} if the older file is meant"
        )


class Watermark:
    """The open mark of one bank file; its methods block, several processes may have it open."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(mark_path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._path = path

    def note(self, count: int) -> None:
        """Note that ``count`` commits are on disk, unless more are noted already.

        Raises:
            OSError: If it cannot be written.
        """
        # Two processes may come in another order than they committed.
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        try:
            if self._noted() < count:
                number = count.to_bytes(_COUNT_BYTES, "little")
                os.pwrite(self._handle, number + seal(number), 0)
        finally:
            fcntl.flock(self._handle, fcntl.LOCK_UN)

    def close(self) -> None:
        """Sync and close; nothing can be noted afterwards."""
        try:
            os.fdatasync(self._handle)
        finally:
            os.close(self._handle)

    def _noted(self) -> int:
        content = os.pread(self._handle, _COUNT_BYTES + _SEAL_BYTES, 0)
        try:
            return _opened(content, self._path)
        except StoreCorrupt:
            return 0  # replaced by a sound one


def _opened(content: bytes, path: Path) -> int:
    number, sealed = content[:_COUNT_BYTES], content[_COUNT_BYTES:]
    if not content:
        return 0  # made, and nothing acknowledged yet
    if sealed != seal(number):
        raise StoreCorrupt(f"{mark_path(path).name} is not what was written")
    return int.from_bytes(number, "little")
