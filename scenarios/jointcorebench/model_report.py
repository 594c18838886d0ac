"""Figures and tests of the model stage. Every task stays in the denominator, failed ones too."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np

from assay.scenarios.jointcorebench.model_rows import MethodRow, StageConfig, TaskRow
from assay.scenarios.jointcorebench.prompting import Cell, Interface, Representation
from assay.scenarios.statistics import Interval, bootstrap_interval, holm, mcnemar, sign_flip

RESAMPLES = 2000
"""Bootstrap replicates, whole tasks drawn."""

FLIPS = 12_000
"""Random sign flips, where not all of them are enumerated."""

BASELINE = "singleton"
"""What the others are tested against."""

Measure: TypeAlias = Literal["behaviour", "savings", "queries"]
MEASURES: tuple[Measure, ...] = ("behaviour", "savings", "queries")
"""What is tested: whether behaviour is kept, the savings, the queries."""


class MethodFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Means over the tasks of a cell with their 95 % intervals; see ``MethodRow`` for each."""

    queries: Interval
    behaviour: Interval
    sufficient: Interval
    literal: Interval
    min_cost: Interval
    savings: Interval


class CellFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One way to ask.

    Attributes:
        representation: How omitted records are shown.
        interface: What is asked.
        tasks: How many.
        invalid: Tasks whose decision with all records is INVALID.
        reference_right: Share of tasks where the decision with all records is the rule's.
        asked: Different subsets asked, over all tasks.
        as_retained: Share of these decided as the oracle of retention says.
        as_printed: Share decided as the printed text says, read literally.
        oracles_differ: Share where the two oracles contradict each other.
        methods: By name.
    """

    representation: Representation
    interface: Interface
    tasks: int
    invalid: int
    reference_right: float
    asked: int
    as_retained: float
    as_printed: float
    oracles_differ: float
    methods: dict[str, MethodFigures]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A paired comparison with the baseline over the tasks of a cell.

    Attributes:
        representation: Of the cell.
        interface: Of the cell.
        method: Compared with ``BASELINE``.
        measure: In what.
        test: Exact McNemar or sign-flip.
        difference: Mean of method minus baseline.
        p: Two-sided p-value.
        holm: Adjusted over all tests of the report.
    """

    representation: Representation
    interface: Interface
    method: str
    measure: Measure
    test: str
    difference: float
    p: float
    holm: float


class Fallback(msgspec.Struct, frozen=True, kw_only=True):
    """The published archive fallback for one method under one representation.

    Attributes:
        representation: How omitted records are shown.
        method: Compared with ``BASELINE``.
        direct: Mean savings minus the baseline's, asked directly.
        ab: The same, asked by A and B.
        acted: The sign of "at least as good" differs: the full memory is returned.
        savings: Mean savings of what is returned, over both interfaces; 0 where it acted.
    """

    representation: Representation
    method: str
    direct: float
    ab: float
    acted: bool
    savings: float


class StageReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the model stage prints as JSON."""

    suite: str
    stage: str
    seed: int
    tasks: int
    model: str
    scoring: str
    live: int
    seconds: float
    cells: list[CellFigures]
    tests: list[Comparison]
    fallback: list[Fallback]


def report_on(rows: Sequence[TaskRow], config: StageConfig) -> StageReport:
    """The figures of a run, from all of its rows."""
    by_cell = {cell: [row for row in rows if row.cell == cell] for cell in config.cells}
    return StageReport(
        suite="jointcorebench",
        stage="model",
        seed=config.seed,
        tasks=config.tasks,
        model=config.identity,
        scoring=config.scoring,
        live=sum(row.live for row in rows),
        seconds=sum(row.seconds for row in rows),
        cells=[_cell(cell, of_cell, config) for cell, of_cell in by_cell.items()],
        tests=_tests(by_cell, config),
        fallback=_fallbacks(by_cell, config),
    )


def _cell(cell: Cell, rows: Sequence[TaskRow], config: StageConfig) -> CellFigures:
    asked = sum(row.asked for row in rows)
    return CellFigures(
        representation=cell.representation,
        interface=cell.interface,
        tasks=len(rows),
        invalid=sum(row.reference == "INVALID" for row in rows),
        reference_right=_mean([row.reference_right for row in rows]),
        asked=asked,
        as_retained=sum(row.as_retained for row in rows) / asked,
        as_printed=sum(row.as_printed for row in rows) / asked,
        oracles_differ=sum(row.oracles_differ for row in rows) / asked,
        methods={name: _figures(name, rows, config.seed) for name in config.methods},
    )


def _figures(name: str, rows: Sequence[TaskRow], seed: int) -> MethodFigures:
    tasks = [row.task for row in rows]
    of_method = [row.methods[name] for row in rows]

    def interval(values: Sequence[float]) -> Interval:
        return bootstrap_interval(values, tasks, seed=seed, resamples=RESAMPLES)

    return MethodFigures(
        queries=interval([m.queries for m in of_method]),
        behaviour=interval([m.behaviour for m in of_method]),
        sufficient=interval([m.sufficient for m in of_method]),
        literal=interval([m.literal for m in of_method]),
        min_cost=interval([m.min_cost for m in of_method]),
        savings=interval([m.savings for m in of_method]),
    )


class _Compared(NamedTuple):
    cell: Cell
    method: str
    measure: Measure
    difference: float
    p: float


def _tests(by_cell: dict[Cell, list[TaskRow]], config: StageConfig) -> list[Comparison]:
    compared = [
        _compare(cell, rows, method, measure, config.seed)
        for cell, rows in by_cell.items()
        for method in searching(rows, config)
        for measure in MEASURES
    ]
    adjusted = holm([one.p for one in compared])
    return [
        Comparison(
            representation=one.cell.representation,
            interface=one.cell.interface,
            method=one.method,
            measure=one.measure,
            test="exact McNemar" if one.measure == "behaviour" else "sign-flip",
            difference=one.difference,
            p=one.p,
            holm=p,
        )
        for one, p in zip(compared, adjusted, strict=True)
    ]


def searching(rows: Sequence[TaskRow], config: StageConfig) -> list[str]:
    """Methods that ask, without the baseline; none where the baseline did not run."""
    if BASELINE not in config.methods:
        return []
    others = [name for name in config.methods if name != BASELINE]
    return [name for name in others if any(row.methods[name].queries for row in rows)]


def _compare(
    cell: Cell, rows: Sequence[TaskRow], method: str, measure: Measure, seed: int
) -> _Compared:
    ours = [_value(row.methods[method], measure) for row in rows]
    theirs = [_value(row.methods[BASELINE], measure) for row in rows]
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    if measure == "behaviour":
        p = mcnemar(sum(d > 0 for d in differences), sum(d < 0 for d in differences))
    else:
        p = sign_flip(differences, [row.task for row in rows], seed=seed, resamples=FLIPS)
    return _Compared(cell, method, measure, _mean(differences), p)


def _value(row: MethodRow, measure: Measure) -> float:
    match measure:
        case "behaviour":
            return float(row.behaviour)
        case "savings":
            return row.savings
        case "queries":
            return float(row.queries)


def _fallbacks(by_cell: dict[Cell, list[TaskRow]], config: StageConfig) -> list[Fallback]:
    found: list[Fallback] = []
    for representation in config.representations:
        direct = by_cell.get(Cell(representation, "direct"), [])
        ab = by_cell.get(Cell(representation, "ab"), [])
        if direct and ab:
            methods = searching([*direct, *ab], config)
            found += [_fallback(representation, name, direct, ab) for name in methods]
    return found


def _fallback(
    representation: Representation, name: str, direct: Sequence[TaskRow], ab: Sequence[TaskRow]
) -> Fallback:
    own = [_savings(direct, name), _savings(ab, name)]
    over = [own[0] - _savings(direct, BASELINE), own[1] - _savings(ab, BASELINE)]
    acted = (over[0] >= 0) != (over[1] >= 0)
    return Fallback(
        representation=representation,
        method=name,
        direct=over[0],
        ab=over[1],
        acted=acted,
        savings=0.0 if acted else _mean(own),
    )


def _savings(rows: Sequence[TaskRow], name: str) -> float:
    return _mean([row.methods[name].savings for row in rows])


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
