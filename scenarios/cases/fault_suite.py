"""LoCoMo questions with wrong records among the right ones, as scenarios."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from assay.runtime.settings import GuardSettings, Settings
from assay.scenarios.cases.schema import Case, Expected, Memory, Past, Turn
from assay.scenarios.faults_cohort import archive_of, chosen, read_cohort
from assay.scenarios.locomo_data import Turn as Said
from assay.scenarios.locomo_faults import STRUCTURES, FaultCase
from assay.stores.records import Namespace

_IMPORTED = "import:locomo"


def fault_cases(folder: Path, size: int, *, seed: int) -> Iterator[tuple[str, Case]]:
    """Cases of the benchmark with a name each, every structure in its share.

    Args:
        folder: What ``assay faults build`` wrote.
        size: How many.
        seed: Of the choice.

    Raises:
        ScenarioError: If a file is missing or is not what the build writes.
    """
    cohort = read_cohort(folder)
    for case in chosen(cohort.cases, limit=size, structures=STRUCTURES, seed=seed)[:size]:
        yield f"{case.structure}-{case.id}", _case(case, cohort.turns[case.conversation])


def _case(case: FaultCase, turns: Mapping[str, Said]) -> Case:
    evidence = [name for name in case.evidence if name in case.retrieved]
    # Each of these misleads alone; a joint fault only with its other half, so its answer tells.
    alone = [fault.id for fault in case.faults if fault.role == "contradiction"]
    wrong = {fault.id: fault for fault in case.faults}
    now = max(*(turn.at for turn in turns.values()), *(fault.at for fault in case.faults))
    return Case(
        scenario=f"{case.structure} fault: {case.question}"[:200],
        now=now,
        settings=Settings(guard=GuardSettings(k=max(1, len(case.retrieved)))),
        memory=tuple(
            Memory(
                id=name,
                text=wrong[name].text if name in wrong else turns[name].shown,
                writer="external",
                channel=_IMPORTED,
                at=wrong[name].at if name in wrong else turns[name].at,
            )
            for name in case.retrieved
        ),
        archive=tuple(
            Past(id=turn.id, text=turn.text, speaker=turn.speaker, session=turn.session, at=turn.at)
            for turn in archive_of(turns, Namespace("user"))
        ),
        turn=(
            Turn(
                say=case.question,
                expect=Expected(
                    admitted_any=tuple(evidence),
                    kept_out=tuple(alone),
                    answer_excludes=(case.foil,),
                ),
            ),
        ),
    )
