"""A replay in parts, by workers, prints what one machine prints."""

import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import msgspec
import pytest
from tests.servers import FreshDatabase

from assay.errors import JobFailed
from assay.runtime.distributed.local_queue import LocalQueue
from assay.runtime.jobs import Job
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.wiring import open_runtime
from assay.scenarios.faults_cohort import read_cohort
from assay.scenarios.faults_elsewhere import replay_over
from assay.scenarios.faults_folder import FaultsFolder
from assay.scenarios.faults_replay import FaultRow, FaultsConfig, replay
from assay.scenarios.jointcorebench.conditions import Coordinates, coordinates
from assay.scenarios.jointcorebench.elsewhere import exact_over
from assay.scenarios.jointcorebench.exact import run_exact
from assay.scenarios.replay_jobs import replay_handler

from .support_faults import bench_of, config_of, misled, write_benchmark

ASSAY = Path(sys.executable).with_name("assay")
SLICE = ("--family", "redundant_or", "--n", "8")


def small_slice() -> list[Coordinates]:
    return [point for point in coordinates() if point.n == 8][:40]  # three jobs


def names() -> Callable[[], str]:
    numbers = iter(range(1_000))
    return lambda: f"part {next(numbers)}"


@asynccontextmanager
async def at_work(model: ScriptedModel | None = None) -> AsyncGenerator[LocalQueue]:
    """A queue, and a worker with a bank of its own."""
    queue = LocalQueue()
    async with (
        open_runtime(model=model or ScriptedModel(), embedder="hashing") as runtime,
        anyio.create_task_group() as group,
    ):
        group.start_soon(partial(queue.work, ["replay"], replay_handler(runtime), concurrency=2))
        yield queue
        group.cancel_scope.cancel()


async def test_the_result_of_parts_is_that_of_the_whole() -> None:
    points, done = small_slice(), list[int]()

    async with at_work() as queue:
        report = await exact_over(queue, points, base=7, new_id=names(), advance=done.append)
        assert report == run_exact(points, base=7, processes=1)

    assert sum(done) == len(points)


async def test_a_part_that_always_fails_fails_the_replay() -> None:
    queue = LocalQueue()

    async def broken(job: Job, _: Callable[[bytes], None]) -> bytes:
        raise ZeroDivisionError(job.id)

    async with anyio.create_task_group() as workers:
        workers.start_soon(partial(queue.work, ["replay"], broken))
        with pytest.raises(JobFailed, match="ZeroDivisionError"):
            await exact_over(queue, small_slice(), base=7, new_id=names())
        workers.cancel_scope.cancel()


def timeless(rows: list[FaultRow]) -> list[FaultRow]:
    return [msgspec.structs.replace(row, seconds=0.0) for row in rows]


@pytest.mark.parametrize(
    "config", [config_of(), config_of(protocol="blind")], ids=lambda config: config.protocol
)
async def test_fault_cases_by_workers_are_those_of_one_machine_and_are_paid_once(
    tmp_path: Path, config: FaultsConfig
) -> None:
    cohort = read_cohort(write_benchmark(tmp_path))
    here = await replay(FaultsFolder(None, FaultRow), cohort, cohort.cases, config, bench_of())

    async with at_work(ScriptedModel(misled, identity="misled")) as queue:
        run = partial(
            replay_over,
            queue,
            FaultsFolder(None, FaultRow),
            cohort,
            cohort.cases,
            config,
            identity="misled",
            new_id=names(),
        )
        rows, shares = await run()
        again, later = await run()

    assert timeless(rows) == timeless(here)
    assert [share.cases for share in shares.values()] == [len(here)]
    assert sum(share.live for share in later.values()) == 0
    assert [row.scores for row in again] == [row.scores for row in here]


async def test_a_worker_with_another_model_refuses_the_case(tmp_path: Path) -> None:
    cohort = read_cohort(write_benchmark(tmp_path))

    async with at_work(ScriptedModel(identity="another")) as queue:
        with pytest.raises(JobFailed, match=r"of model 'misled', this worker has 'another'"):
            await replay_over(
                queue,
                FaultsFolder(None, FaultRow),
                cohort,
                cohort.cases[:1],
                config_of(),
                identity="misled",
                new_id=names(),
            )


def printed(*arguments: str) -> str:
    command = [str(ASSAY), "replay", "jointcorebench", *SLICE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 - our own


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_worker_over_nats_prints_the_same_tables_to_the_byte(
    nats_url: str, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    here, elsewhere = tmp_path / "here.md", tmp_path / "elsewhere.md"
    places = ("--bank", fresh_database(), "--bus", nats_url, "--embedder", "hashing")
    command = [str(ASSAY), "worker", *places, "--model", "scripted", "--json"]

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:  # noqa: S603 - our own
        by_workers = printed("--bus", nats_url, "--markdown", str(elsewhere))
        worker.terminate()
        said, _ = worker.communicate()

    assert by_workers == printed("--processes", "1", "--markdown", str(here))
    assert elsewhere.read_bytes() == here.read_bytes()
    assert "replay" in {json.loads(line).get("kind") for line in said.splitlines()}
