"""What the model stage measures about one task in one cell. Plain data."""

import msgspec

from assay.scenarios.jointcorebench.deciding import Scoring, Trajectory
from assay.scenarios.jointcorebench.prompting import Cell, Interface, Representation
from assay.scenarios.jointcorebench.rules import Family

FORMAT = 1


class MethodRow(msgspec.Struct, frozen=True, kw_only=True):
    """One method on one task in one cell.

    Attributes:
        kept: Records kept, ascending.
        certificate: What the search knows about them.
        queries: Questions, repeats counted; the reference with all records is not one.
        behaviour: With them the model does, asked directly, what it does with all records.
        sufficient: They satisfy the rule (the oracle of retention).
        literal: The printed condition is true of what the prompt shows when they are kept.
        min_cost: They are sufficient and no sufficient set costs less.
        savings: One minus the kept share of the full cost, in [0, 1].
    """

    kept: tuple[int, ...]
    certificate: str
    queries: int
    behaviour: bool
    sufficient: bool
    literal: bool
    min_cost: bool
    savings: float


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """All methods on one task in one cell.

    Attributes:
        task: Id of the condition.
        family: Kind of rule.
        cell: How it was asked.
        reference: What the model does with all records.
        reference_right: Whether that is what the rule says.
        asked: Different subsets asked, the reference among them.
        as_retained: Of these, where the model does what the oracle of retention says.
        as_printed: Where it does what the printed text says, read literally.
        oracles_differ: Where the two oracles contradict each other.
        methods: By name.
        live: Calls that reached the model.
        seconds: Wall time.
    """

    task: str
    family: Family
    cell: Cell
    reference: Trajectory
    reference_right: bool
    asked: int
    as_retained: int
    as_printed: int
    oracles_differ: int
    methods: dict[str, MethodRow]
    live: int
    seconds: float


class StageConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides what a run of the model stage does.

    Attributes:
        identity: Of the model that answers: name and file hash, or endpoint.
        scoring: How labels are scored.
        seed: Seed base of the tasks.
        tasks: How many evenly spaced ones.
        representations: How omitted records are shown.
        interfaces: What is asked.
        methods: In the order of the report.
    """

    identity: str
    scoring: Scoring
    seed: int
    tasks: int
    representations: tuple[Representation, ...]
    interfaces: tuple[Interface, ...]
    methods: tuple[str, ...]

    @property
    def cells(self) -> list[Cell]:
        """Representations by interfaces."""
        return [Cell(r, i) for r in self.representations for i in self.interfaces]


class StageRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What ``model_stage.json`` holds: the version of the layout, the run, and its command."""

    format: int
    config: StageConfig
    command: str
