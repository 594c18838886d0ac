"""A process that erases again and again, and each time dies at another step.

Run: ``python -m tests.promises.privacy_child forget|subject|tenant FOLDER STEP...``: each bank is a
copy of ``FOLDER/before``, in ``FOLDER/STEP``. Steps are statements, commits, writes, syncs,
renames and removals; 0 never dies. Prints ``STEP STATUS`` a line: ``killed`` or ``done``.
"""

import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import structlog

from .canaries import opened, said

_DIED = 9
_WHAT = {_DIED: "killed", 0: "done"}


class Killer:
    """Ends the process without a word at the n-th call it sees while awake."""

    def __init__(self, n: int) -> None:
        self.awake = False
        self._left = n

    def see(self) -> None:
        if self.awake:
            self._left -= 1
            if self._left == 0:
                os._exit(_DIED)

    def seen(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*values: object, **options: object) -> object:
            self.see()
            return call(*values, **options)

        return instead


def arm(killer: Killer) -> None:
    """Let the killer see all that touches the disk; for good, as the process ends after it."""

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            killer.see()
            return super().execute(sql, *values)

        def executemany(self, sql: str, values: Any) -> sqlite3.Cursor:
            killer.see()
            return super().executemany(sql, values)

    plain = sqlite3.connect

    def connect(path: Any, **options: Any) -> sqlite3.Connection:
        return plain(path, factory=Connection, **options)

    sqlite3.connect = connect  # type: ignore[assignment]  # as it came
    for owner, name in (
        (os, "fsync"),
        (os, "fdatasync"),
        (os, "pwrite"),
        (Path, "replace"),
        (Path, "unlink"),
        (tempfile, "mkstemp"),
    ):
        setattr(owner, name, killer.seen(getattr(owner, name)))


async def erase(kind: str, path: Path, killer: Killer) -> None:
    """Erase Ann's first canary, all of Ann, or the tenant ``acme``."""
    async with opened(path) as runtime:
        [doomed] = [r.id for r in await runtime.memories("ann") if r.text == said(0)]
        killer.awake = True
        if kind == "forget":
            await runtime.forget("ann", doomed)
        elif kind == "subject":
            await runtime.erase_user("ann")
        else:
            await runtime.erase_tenant("acme")
        killer.awake = False


def one(kind: str, folder: Path, step: int) -> int:
    """Erase in a copy, in a process of its own; gives how it ended."""
    shutil.copytree(folder / "before", folder / str(step))
    child = os.fork()
    if child == 0:
        killer = Killer(step)
        arm(killer)
        anyio.run(erase, kind, folder / str(step), killer)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(kind: str, folder: str, *steps: str) -> None:
    """Go through the steps, but no further than one that came through."""
    for step in map(int, steps):
        status = one(kind, Path(folder), step)
        sys.stdout.write(f"{step} {_WHAT.get(status, f'status {status}')}\n")
        sys.stdout.flush()
        if status == 0 and step:
            break


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    main(*sys.argv[1:])
