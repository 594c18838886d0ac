"""Processes that are killed, traced, or many at once on one bank."""

import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import anyio
import pytest
from tests.stores.support import ANN, NOON

from assay.stores.inspection import inspect_bank
from assay.stores.records import RecordId, SessionId

from .bank_content import opened
from .conftest import Promise

CHILD = Path(__file__).with_name("store_child.py")


def start(
    work: str, path: Path, name: str, count: int, *, under: Sequence[str] = ()
) -> "subprocess.Popen[str]":
    return subprocess.Popen(  # noqa: S603 - our own script
        [*under, sys.executable, str(CHILD), work, str(path), name, str(count)],
        stdout=subprocess.PIPE,
        text=True,
    )


def output(process: "subprocess.Popen[str]") -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def killed(path: Path, name: str, after: int) -> list[tuple[str, str]]:
    """What a child said was acknowledged until it was killed, some time after its ``after``-th."""
    with start("kinds", path, name, 100_000) as process:
        lines = [output(process).readline() for _ in range(after)]
        process.send_signal(signal.SIGKILL)
        lines += output(process).readlines()
    # The last line may have been cut by the kill.
    whole = [line.split() for line in lines if line.endswith("\n")]
    return [(kind, key) for kind, key in whole]


async def found(path: Path, sessions: Sequence[str]) -> set[tuple[str, str]]:
    """Every row that is there, by kind."""
    async with opened(path) as bank:
        rows = {("record", str(r.id)) for r in (await bank.store.changes(ANN, after=0)).records}
        rows |= {("turn", str(t.id)) for t in await bank.archive.all(ANN)}
        rows |= {("cache", row.key) async for row in bank.cache.rows(ANN)}
        for session in sessions:
            entries = await bank.journal.read(SessionId(session))
            rows |= {("journal", entry.payload.decode()) for entry in entries}
        return rows


async def indexed(path: Path, limit: int) -> set[RecordId]:
    """What a search of the vectors gives, all of it."""
    async with opened(path) as bank:
        hits = await bank.retriever.retrieve(ANN, "Rex likes carrots", limit=limit, at=NOON)
        return {hit.record.id for hit in hits}


@pytest.mark.timeout(120)
@pytest.mark.promise("P1", "a process killed at any moment loses no acknowledged write")
def test_a_kill_loses_no_acknowledged_write(promise: Promise, tmp_path: Path) -> None:
    rng = random.Random(7)  # noqa: S311 - when to kill, not a secret
    points = [rng.randrange(1, 120) for _ in range(promise.times(3, 60))]

    told = [killed(tmp_path, f"run{run}", after) for run, after in enumerate(points)]

    acknowledged = {one for lines in told for one in lines}
    there = anyio.run(found, tmp_path, [f"run{run}" for run in range(len(points))])
    records = {key for kind, key in there if kind == "record"}
    assert len(acknowledged) >= sum(points)
    assert acknowledged - there == set()
    assert anyio.run(indexed, tmp_path, len(records) + 10) == records
    assert inspect_bank(tmp_path).damage == ()
    promise.kept(
        f"{len(points)} kills survived, {len(acknowledged):,} rows acknowledged and "
        f"{len(acknowledged & there):,} found, index equal to {len(records):,} records"
    )


def synced(trace: str) -> int:
    return len(re.findall(r"\bf(?:data)?sync\(", trace))


@pytest.mark.skipif(shutil.which("strace") is None, reason="counting syncs needs strace")
@pytest.mark.promise("P1b", "acknowledged means synced to the disk")
def test_every_acknowledgement_follows_a_sync(promise: Promise, tmp_path: Path) -> None:
    count = promise.times(20, 200)
    log = tmp_path / "trace"
    events = "trace=fsync,fdatasync,write"
    under = ["strace", "-f", "-o", str(log), "-e", events]
    with start("journal", tmp_path / "bank", "one", count, under=under) as process:
        said = output(process).readlines()

    # Between two acknowledgements there is a sync: nothing is said before its rows are on disk.
    between = re.split(r'write\(1, "journal one-\d+', log.read_text())[:-1]
    syncs = [synced(part) for part in between]

    assert len(said) == count == len(syncs)
    assert min(syncs) >= 1
    promise.kept(
        f"{count} acknowledgements, each after a sync; {sum(syncs[1:]) / (count - 1):.2f} each"
    )


def at_once(path: Path, processes: int, turns: int) -> tuple[set[str], list[int]]:
    """What processes that all start on a bank that is not there yet said, and how they ended."""
    running = [start("turns", path, f"p{n}", turns) for n in range(processes)]
    said = {line.split()[1] for process in running for line in output(process).readlines()}
    codes = [process.wait() for process in running]
    for process in running:
        output(process).close()
    return said, codes


@pytest.mark.timeout(120)
@pytest.mark.promise("P5", "eight processes use one bank at once, from its first opening on")
def test_eight_processes_take_turns_on_one_bank(promise: Promise, tmp_path: Path) -> None:
    turns = promise.times(5, 200)

    said, codes = at_once(tmp_path / "bank", 8, turns)

    no_sessions: list[str] = []
    rows = anyio.run(found, tmp_path / "bank", no_sessions)
    there = {key for kind, key in rows if kind == "record"}
    assert codes == [0] * 8
    assert said == there == {f"p{n}-{turn}" for n in range(8) for turn in range(turns)}
    assert inspect_bank(tmp_path / "bank").damage == ()
    promise.kept(f"8 processes, {len(said):,} read-then-write turns, 0 failed calls")
