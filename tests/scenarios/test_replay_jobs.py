"""A replay in parts, by workers, prints what one machine prints."""

import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

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

from .support_faults import FACTS, bench_of, config_of, misled, write_benchmark

ASSAY = Path(sys.executable).with_name("assay")


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
    command = [str(ASSAY), "replay", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 - our own


@contextmanager
def worker(bank: str, bus: str, model: str = "scripted") -> Generator[list[dict[str, Any]]]:
    """A worker process for the block; gives what it has said, once the block has ended."""
    said: list[dict[str, Any]] = []
    places = ("--bank", bank, "--bus", bus, "--embedder", "hashing")
    command = [str(ASSAY), "worker", *places, "--model", model, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own
        try:
            yield said
        finally:
            process.terminate()
            lines, _ = process.communicate()
    said += map(json.loads, lines.splitlines())


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_worker_over_nats_prints_the_same_tables_to_the_byte(
    nats_url: str, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    here, elsewhere = tmp_path / "here.md", tmp_path / "elsewhere.md"
    command = ("jointcorebench", "--family", "redundant_or", "--n", "8", "--markdown")

    with worker(fresh_database(), nats_url) as said:
        by_workers = printed(*command, str(elsewhere), "--bus", nats_url)

    assert by_workers == printed(*command, str(here), "--processes", "1")
    assert elsewhere.read_bytes() == here.read_bytes()
    assert "replay" in {event.get("kind") for event in said}


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_fault_cases_over_nats_have_the_figures_of_one_machine_and_a_shared_cache(
    nats_url: str, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    script = tmp_path / "script.jsonl"
    rules = (
        {"question": name, "prompt": f"a {thing}", "reply": f"a {thing}"}
        for name, right, wrong in FACTS
        for thing in (wrong, right)
    )
    script.write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    model, data = f"scripted:{script}", str(write_benchmark(tmp_path / "data"))
    command = ("locomo-faults", "--data", data, "--model", model, "--utility", "answer", "--json")

    with worker(bank := fresh_database(), nats_url, model):
        first = json.loads(printed(*command, "--bus", nats_url))
    with worker(bank, nats_url, model):
        second = json.loads(printed(*command, "--bus", nats_url))

    here = json.loads(printed(*command))
    assert first["methods"] == second["methods"] == here["methods"]
    assert first["by_structure"] == here["by_structure"]
    assert first["spent"]["live"] == here["spent"]["live"] > 0
    assert [share["live"] for share in second["workers"].values()] == [0]
