"""The model stage as tables, for a terminal and as Markdown with the command that makes them."""

from assay.scenarios.jointcorebench.model_report import (
    FLIPS,
    RESAMPLES,
    CellFigures,
    StageReport,
)
from assay.scenarios.jointcorebench.tables import markdown_table
from assay.scenarios.statistics import Interval

METHOD_HEAD = ("method", "queries", "behaviour", "sufficient", "literal", "min-cost", "savings")
CELL_HEAD = ("asked as", "tasks", "invalid", "right", "as kept", "as text", "differ")
TEST_HEAD = ("asked as", "method", "measure", "difference", "p", "Holm")
FALLBACK_HEAD = ("omitted", "method", "direct", "A/B", "fallback", "savings")

EXPLAINED = (
    "Queries: subsets asked, repeats counted, the reference with all records not. Behaviour: asked "
    "directly, the model does with the kept records what it does with all; INVALID equals nothing. "
    "Sufficient: they satisfy the rule (oracle of retention). Literal: the printed condition is "
    "true of what the prompt shows. Min-cost: no sufficient set costs less."
)
ORACLES_EXPLAINED = (
    "Right: the decision with all records is the rule's. As kept: share of all subsets asked that "
    "are decided as the oracle of retention says; as text: as the printed condition says of the "
    "printed values, read literally; differ: where these two contradict each other."
)
TESTS_EXPLAINED = (
    f"Behaviour by exact McNemar, the others by sign-flip, exact or {FLIPS:,} random flips. Holm "
    "over all of these tests."
)
FALLBACK_EXPLAINED = (
    "Mean savings minus the singleton's. Where direct and A/B labels disagree whether a method is "
    "at least as good as the singleton, the full memory is returned: savings 0."
)


def cell_title(cell: CellFigures) -> str:
    """How a cell was asked, in words."""
    labels = "A/B" if cell.interface == "ab" else cell.interface.capitalize()
    return f"{labels} labels, omitted records by {cell.representation}"


def method_cells(cell: CellFigures, *, intervals: bool = False) -> list[list[str]]:
    """One row per method: means, with their intervals where asked for."""
    return [
        [
            name,
            _figure(m.queries, 2, intervals=intervals),
            *(
                _figure(value, 3, intervals=intervals)
                for value in (m.behaviour, m.sufficient, m.literal, m.min_cost, m.savings)
            ),
        ]
        for name, m in cell.methods.items()
    ]


def oracle_cells(report: StageReport) -> list[list[str]]:
    """One row per cell: how the model decides, beside the two oracles."""
    return [
        [
            f"{cell.representation}, {cell.interface}",
            str(cell.tasks),
            str(cell.invalid),
            f"{cell.reference_right:.3f}",
            f"{cell.as_retained:.3f}",
            f"{cell.as_printed:.3f}",
            f"{cell.oracles_differ:.3f}",
        ]
        for cell in report.cells
    ]


def comparison_cells(report: StageReport) -> list[list[str]]:
    """One row per test."""
    return [
        [
            f"{test.representation}, {test.interface}",
            test.method,
            test.measure,
            f"{test.difference:+.3f}",
            f"{test.p:.4g}",
            f"{test.holm:.4g}",
        ]
        for test in report.tests
    ]


def fallback_cells(report: StageReport) -> list[list[str]]:
    """One row per representation and method: what direct and A/B say, and what is returned."""
    return [
        [
            one.representation,
            one.method,
            f"{one.direct:+.3f}",
            f"{one.ab:+.3f}",
            "full memory" if one.acted else "no",
            f"{one.savings:.3f}",
        ]
        for one in report.fallback
    ]


def summary_line(report: StageReport) -> str:
    """Who answered, how it was scored, on what."""
    return (
        f"{report.tasks} tasks, seed base {report.seed}, model {report.model}, labels scored by "
        f"{report.scoring}, {report.live:,} live calls, {report.seconds:,.0f} s"
    )


def stage_markdown(report: StageReport, command: str) -> str:
    """The model stage as a page."""
    parts = [
        "# JointCoreBench, model stage",
        f"{summary_line(report)}. Made by `{command}`.",
        f"{EXPLAINED} In brackets: 95 % intervals of {RESAMPLES:,} bootstrap replicates over tasks.",
    ]
    for cell in report.cells:
        rows = method_cells(cell, intervals=True)
        parts += [f"## {cell_title(cell)}", markdown_table(METHOD_HEAD, rows)]
    parts += ["## How the model decides, by subset", ORACLES_EXPLAINED]
    parts += [markdown_table(CELL_HEAD, oracle_cells(report))]
    if report.tests:
        rows = comparison_cells(report)
        parts += ["## Against the singleton", TESTS_EXPLAINED, markdown_table(TEST_HEAD, rows)]
    if report.fallback:
        rows = fallback_cells(report)
        parts += ["## Archive fallback", FALLBACK_EXPLAINED, markdown_table(FALLBACK_HEAD, rows)]
    return "\n\n".join(parts)


def _figure(value: Interval, digits: int, *, intervals: bool) -> str:
    mean, low, high = value
    if mean is None:
        return "-"
    bounds = intervals and low is not None and high is not None
    return f"{mean:.{digits}f}" + (f" ({low:.{digits}f}..{high:.{digits}f})" if bounds else "")
