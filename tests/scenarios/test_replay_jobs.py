"""A replay in parts, by workers, prints what one machine prints."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from tests.servers import FreshDatabase

from assay.errors import JobFailed
from assay.runtime.distributed.local_queue import LocalQueue
from assay.runtime.jobs import Job
from assay.scenarios.jointcorebench.conditions import Coordinates, coordinates
from assay.scenarios.jointcorebench.exact import run_exact
from assay.scenarios.replay_jobs import exact_over, replay_handler

ASSAY = Path(sys.executable).with_name("assay")
SLICE = ("--family", "redundant_or", "--n", "8")


def small_slice() -> list[Coordinates]:
    return [point for point in coordinates() if point.n == 8][:40]  # three jobs


def names() -> Callable[[], str]:
    numbers = iter(range(1_000))
    return lambda: f"part {next(numbers)}"


async def test_the_result_of_parts_is_that_of_the_whole() -> None:
    queue, points, done = LocalQueue(), small_slice(), list[int]()

    async with anyio.create_task_group() as workers:
        workers.start_soon(lambda: queue.work(["replay"], replay_handler(), concurrency=2))
        report = await exact_over(queue, points, base=7, new_id=names(), advance=done.append)
        assert report == run_exact(points, base=7, processes=1)
        workers.cancel_scope.cancel()

    assert sum(done) == len(points)


async def test_a_part_that_always_fails_fails_the_replay() -> None:
    queue = LocalQueue()

    async def broken(job: Job, _: Callable[[bytes], None]) -> bytes:
        raise ZeroDivisionError(job.id)

    async with anyio.create_task_group() as workers:
        workers.start_soon(lambda: queue.work(["replay"], broken))
        with pytest.raises(JobFailed, match="ZeroDivisionError"):
            await exact_over(queue, small_slice(), base=7, new_id=names())
        workers.cancel_scope.cancel()


def printed(*arguments: str) -> str:
    command = [str(ASSAY), "replay", "jointcorebench", *SLICE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 - our own


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_worker_over_nats_prints_the_same_tables_to_the_byte(
    nats_url: str, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    here, elsewhere = tmp_path / "here.md", tmp_path / "elsewhere.md"
    places = ("--bank", fresh_database(), "--bus", nats_url)
    command = [
        str(ASSAY),
        "worker",
        *places,
        "--model",
        "scripted",
        "--embedder",
        "hashing",
        "--json",
    ]

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:  # noqa: S603 - our own
        by_workers = printed("--bus", nats_url, "--markdown", str(elsewhere))
        worker.terminate()
        said, _ = worker.communicate()

    assert by_workers == printed("--processes", "1", "--markdown", str(here))
    assert elsewhere.read_bytes() == here.read_bytes()
    kinds = {json.loads(line).get("kind") for line in said.splitlines()}
    assert "replay" in kinds
