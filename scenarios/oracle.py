"""CMI with the answer key in hand: the published protocol's oracle scorer, live on any model.

This file is the only place where a guard meets a key, and it refuses every other protocol than the
published one. Guards live in a layer that cannot import it, and ``guard_named`` does not know it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio.to_thread
import msgspec

from assay.errors import ScenarioError
from assay.guards.intervention import CMI
from assay.guards.methods import ORACLE
from assay.guards.protocols import Case, Experimenter, Guard
from assay.guards.values import AgainstReference, OutcomeValue
from assay.scenarios import runner
from assay.scenarios.folder import RunFolder
from assay.scenarios.loader import read_jsonl
from assay.scenarios.runs import Row, RunConfig
from assay.scenarios.schema import Example
from assay.scenarios.scorers import Criteria, published


class _Keyed(msgspec.Struct, frozen=True):
    example_id: str
    scoring_criteria: Criteria


class OracleCMI(CMI):
    """CMI that scores answers as the study did, against the expected answer of one example.

    Args:
        criteria: The key of that example.
        config: Of the run.

    Raises:
        ScenarioError: If the run is not of the published protocol.
    """

    def __init__(self, criteria: Criteria, config: RunConfig) -> None:
        if config.protocol != "published":
            raise ScenarioError(
                f"{ORACLE} scores with the answer key and runs only under the published protocol, "
                f"not under {config.protocol!r}"
            )

        def value(case: Case, laboratory: Experimenter) -> OutcomeValue:
            return AgainstReference(laboratory, lambda answer: published(answer, criteria))

        super().__init__(
            on_undecided=config.on_undecided,
            seed=config.seed,
            perturbations=config.perturbations,
            tolerance=config.tolerance,
            value=value,
        )

    @property
    def name(self) -> str:
        """``cmi_oracle``."""
        return ORACLE


def read_criteria(path: Path) -> dict[str, Criteria]:
    """The scoring criteria of a Causal-LoCoMo file, by example.

    Raises:
        ScenarioError: If the file is missing or malformed.
    """
    return {row.example_id: row.scoring_criteria for _, row in read_jsonl(path, _Keyed)}


async def run_published(
    folder: RunFolder,
    examples: Sequence[Example],
    config: RunConfig,
    equipment: runner.Equipment,
    *,
    watch: runner.Watcher = lambda _: None,
) -> list[Row]:
    """As ``runner.run``, with ``cmi_oracle`` among the methods.

    Raises:
        ScenarioError: If the run is not of the published protocol, or an example has no key.
    """
    criteria = await _criteria_of(examples, config)
    rows: list[Row] = []
    total = len(examples) * len(config.methods)

    def moved(progress: runner.Progress) -> None:
        watch(progress._replace(total=total))

    for example in examples:
        kit = equipment._replace(guard=_guards(equipment, criteria[example.id], config))
        rows += await runner.run(folder, [example], config, kit, watch=moved)
    return rows


async def _criteria_of(examples: Sequence[Example], config: RunConfig) -> Mapping[str, Criteria]:
    criteria = await anyio.to_thread.run_sync(read_criteria, Path(config.data))
    for example in examples:
        if example.id not in criteria:
            raise ScenarioError(f"{config.data}: expected scoring_criteria of {example.id!r}")
    return criteria


def _guards(equipment: runner.Equipment, criteria: Criteria, config: RunConfig) -> runner.Guards:
    def guard(name: str) -> Guard:
        return OracleCMI(criteria, config) if name == ORACLE else equipment.guard(name)

    return guard
