"""Several processes on one bank, and processes that are killed."""

import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import anyio
import anyio.to_thread
import pytest

from assay.stores.bank import FILE_NAME, open_bank
from assay.stores.embeddings import HashingEmbedder
from assay.stores.records import RecordId

from .support import ANN, NOON, NoonClock

WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.to_thread
import structlog

from assay.stores.bank import open_bank
from assay.stores.embeddings import HashingEmbedder
from assay.stores.records import MemoryRecord, Namespace, Origin, RecordId


structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))


class NoonClock:
    def now(self):
        return datetime(2026, 3, 1, 12, tzinfo=UTC)

    def monotonic(self):
        return 0.0


async def write(bank, name, count):
    for n in range(count):
        record = MemoryRecord(
            id=RecordId(f"{name}-{n}"),
            namespace=Namespace("ann"),
            text=f"number {n} of {name}",
            origin=Origin(writer="user", channel="chat"),
            ingested_at=NoonClock().now(),
        )
        await bank.store.write([record])
        if n % 7 == 0:
            await bank.retriever.retrieve(Namespace("ann"), record.text, limit=3, at=NoonClock().now())
        sys.stdout.write(record.id + "\\n")
        sys.stdout.flush()


async def main(path, name, callers, count):
    clock = NoonClock()
    async with open_bank(Path(path), embedder=HashingEmbedder(32), clock=clock) as bank:
        async with anyio.create_task_group() as group:
            for caller in range(int(callers)):
                group.start_soon(write, bank, f"{name}.{caller}", int(count))


anyio.run(main, *sys.argv[1:])
"""


def start(path: Path, name: str, *, callers: int, count: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, "-c", WRITER, str(path), name, str(callers), str(count)],
        stdout=subprocess.PIPE,
        text=True,
    )


def output(process: "subprocess.Popen[str]") -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def acknowledged_before_a_kill(path: Path, name: str, after: int) -> list[str]:
    """Ids a writer reported before it was killed, some time after its ``after``-th."""
    with start(path, name, callers=8, count=100_000) as process:
        lines = [output(process).readline() for _ in range(after)]
        process.send_signal(signal.SIGKILL)
        lines += output(process).readlines()
    # The last line may have been cut by the kill.
    return [line.strip() for line in lines if line.endswith("\n")]


async def stored(path: Path) -> set[str]:
    async with open_bank(path, embedder=HashingEmbedder(32), clock=NoonClock()) as bank:
        return {record.id for record in (await bank.store.changes(ANN, after=0)).records}


@pytest.mark.timeout(60)
def test_no_acknowledged_write_is_lost_to_a_kill(tmp_path: Path) -> None:
    points = random.Random(7).sample(range(1, 400), 5)  # noqa: S311 - where to cut, not a secret

    acknowledged = [
        acknowledged_before_a_kill(tmp_path / "bank", f"run{run}", after)
        for run, after in enumerate(points)
    ]

    everything = {record_id for ids in acknowledged for record_id in ids}
    assert len(everything) >= sum(points)
    assert everything - anyio.run(stored, tmp_path / "bank") == set()


async def first_hit(path: Path, text: str) -> str:
    async with open_bank(path, embedder=HashingEmbedder(32), clock=NoonClock()) as bank:
        return (await bank.retriever.retrieve(ANN, text, limit=1, at=NOON))[0].record.id


@pytest.mark.timeout(60)
def test_what_was_written_before_a_kill_is_found(tmp_path: Path) -> None:
    acknowledged = acknowledged_before_a_kill(tmp_path / "bank", "run", 300)
    caller, number = acknowledged[-1].split("-")

    assert (
        anyio.run(first_hit, tmp_path / "bank", f"number {number} of {caller}") == acknowledged[-1]
    )


@pytest.mark.timeout(60)
def test_processes_that_open_a_new_bank_together_all_write(tmp_path: Path) -> None:
    processes = [start(tmp_path / "bank", f"p{n}", callers=2, count=20) for n in range(4)]

    reported = [line.strip() for process in processes for line in output(process).readlines()]
    codes = [process.wait() for process in processes]
    closed = [output(process).close() for process in processes]

    assert codes == [0] * 4
    assert closed == [None] * 4
    assert len(reported) == 4 * 2 * 20
    assert set(reported) == anyio.run(stored, tmp_path / "bank")
    assert [p.name for p in (tmp_path / "bank").iterdir() if p.name.startswith(".")] == []
    assert (tmp_path / "bank" / FILE_NAME).is_file()


async def test_two_processes_write_the_same_records_once(tmp_path: Path) -> None:
    twins = [start(tmp_path / "bank", "twin", callers=2, count=20) for _ in range(2)]
    reported = [await anyio.to_thread.run_sync(p.communicate) for p in twins]

    assert [len(text.splitlines()) for text, _ in reported] == [40, 40]
    assert len(await stored(tmp_path / "bank")) == 40
    async with open_bank(
        tmp_path / "bank", embedder=HashingEmbedder(32), clock=NoonClock()
    ) as bank:
        (record,) = await bank.store.get(ANN, [RecordId("twin.1-7")])
        assert record.text == "number 7 of twin.1"
