"""Does the replay jobs of a worker."""

from collections.abc import Callable
from typing import TypeAlias, assert_never

import msgspec

from assay.runtime.facade import Runtime
from assay.runtime.jobs import Job, JobHandler
from assay.scenarios import faults_elsewhere
from assay.scenarios.faults_elsewhere import FaultsJob
from assay.scenarios.jointcorebench import elsewhere
from assay.scenarios.jointcorebench.elsewhere import ConditionsJob

ReplayJob: TypeAlias = ConditionsJob | FaultsJob

_jobs: "msgspec.json.Decoder[ReplayJob]" = msgspec.json.Decoder(ReplayJob)


def replay_handler(runtime: Runtime) -> JobHandler:
    """Does parts of any suite, with the model and the cache of a runtime."""

    async def do(job: Job, _: Callable[[bytes], None]) -> bytes:
        asked = _jobs.decode(job.payload)
        match asked:
            case ConditionsJob():
                return await elsewhere.done_here(asked)
            case FaultsJob():
                return await faults_elsewhere.done_here(asked, runtime)
            case _:
                assert_never(asked)

    return do
