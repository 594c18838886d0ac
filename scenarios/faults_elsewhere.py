"""Fault cases by whichever workers there are; answers are in the cache of their bank, for all of them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from assay.errors import ConfigError
from assay.runtime.facade import Runtime
from assay.runtime.jobs import JobQueue
from assay.runtime.models.opening import likelihood_of
from assay.scenarios.faults_cohort import SUITE, Cohort
from assay.scenarios.faults_folder import FaultsFolder
from assay.scenarios.faults_replay import Bench, FaultRow, FaultsConfig, Watcher, replay
from assay.scenarios.handing_out import hand_out, part
from assay.scenarios.locomo_data import Turn
from assay.scenarios.locomo_faults import FaultCase
from assay.stores.embeddings import HashingEmbedder, open_embedder


class FaultsJob(msgspec.Struct, frozen=True, kw_only=True, tag="locomo-faults"):
    """One case.

    Attributes:
        config: Of the replay.
        identity: Of the model that has to answer.
        case: The case.
        turns: Of every conversation; empty where the case needs none.
    """

    config: FaultsConfig
    identity: str
    case: FaultCase
    turns: dict[str, dict[str, Turn]]


class FaultsDone(msgspec.Struct, frozen=True, kw_only=True):
    """A case's row, and which process made it."""

    row: FaultRow
    worker: str


class Share(NamedTuple):
    """What one worker did.

    Attributes:
        cases: How many.
        evaluations: Distinct questions of each case, added up.
        live: Those that reached the model; the others were answered from the shared cache.
    """

    cases: int
    evaluations: int
    live: int


_encoder = msgspec.json.Encoder()
_done = msgspec.json.Decoder(FaultsDone)


async def replay_over(  # noqa: PLR0913  # what a run is made of
    queue: JobQueue,
    folder: FaultsFolder[FaultRow],
    cohort: Cohort,
    cases: Sequence[FaultCase],
    config: FaultsConfig,
    *,
    identity: str,
    new_id: Callable[[], str],
    watch: Watcher = lambda _: None,
) -> tuple[list[FaultRow], dict[str, Share]]:
    """As ``replay``; gives the rows in the order of the cases, and who made them.

    Raises:
        JobFailed: If a case failed at every try; what was done stays in the folder.
        BusError: If the bus cannot be used.
    """
    rows = {row.case: row for row in await folder.rows()}
    shares: dict[str, Share] = {}
    open_cases = [case for case in cases if case.id not in rows]

    async def take(number: int, result: bytes) -> None:
        done = _done.decode(result)
        row = rows[open_cases[number].id] = done.row
        old = shares.get(done.worker, Share(0, 0, 0))
        shares[done.worker] = Share(
            old.cases + 1, old.evaluations + row.evaluations, old.live + row.live
        )
        await folder.append(row)
        watch(row)

    jobs = [
        part(new_id(), SUITE, _encoder.encode(_job(case, cohort, config, identity)))
        for case in open_cases
    ]
    await hand_out(queue, jobs, take)
    return [rows[case.id] for case in cases], dict(sorted(shares.items()))


async def done_here(asked: FaultsJob, runtime: Runtime) -> bytes:
    """The result of a job.

    Raises:
        ConfigError: If this process has another model.
    """
    model = runtime.model
    if asked.identity != model.identity:
        raise ConfigError(
            f"the replay is of model {asked.identity!r}, this worker has {model.identity!r}; "
            "start both with the same --model"
        )
    is_blind = asked.config.protocol == "blind"
    bench = Bench(
        model=model,
        likelihood=likelihood_of(model),
        embedder=open_embedder(asked.config.embedder) if is_blind else HashingEmbedder(),
        cache=runtime.bank.cache,
        clock=runtime.clock,
    )
    cohort = Cohort([asked.case], asked.turns, asked.config.data_sha256)
    [row] = await replay(FaultsFolder(None, FaultRow), cohort, [asked.case], asked.config, bench)
    return _encoder.encode(FaultsDone(row=row, worker=runtime.owner))


def _job(case: FaultCase, cohort: Cohort, config: FaultsConfig, identity: str) -> FaultsJob:
    needed = cohort.turns[case.conversation]
    if config.protocol != "blind":
        needed = {name: needed[name] for name in case.retrieved if name in needed}
    turns = {name: dict(needed) if name == case.conversation else {} for name in cohort.turns}
    return FaultsJob(config=config, identity=identity, case=case, turns=turns)
