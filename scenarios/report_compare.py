"""Two runs side by side: the same examples or questions, paired, with differences and their tests."""

from collections.abc import Sequence
from typing import NamedTuple

from assay.errors import ScenarioError
from assay.scenarios import charts
from assay.scenarios.report import Cell, Column, Figure, Report, Section, Table, number
from assay.scenarios.report_runs import Comparable, Measured
from assay.scenarios.statistics import Interval, bootstrap_interval, holm, mcnemar, sign_flip

_SMALLEST_P = 0.0001


class Difference(NamedTuple):
    """One measure of one method in two runs, over the units that both have.

    Attributes:
        first: Name of the method in the first run.
        second: Its name in the second run; another one where each run has only one.
        measure: Name of the measure.
        label: In tables.
        meaning: What it is.
        n: Units that both runs have.
        means: Of the first run and of the second.
        difference: First minus second, with an interval that resamples clusters.
        p: Sign-flip test by cluster, adjusted by Holm over the methods.
        only_first: For 0-or-1 measures: units with 1 in the first run only; else ``None``.
        only_second: Likewise in the second run only.
        p_mcnemar: Exact McNemar test, adjusted likewise; ``None`` where it does not apply.
    """

    first: str
    second: str
    measure: str
    label: str
    meaning: str
    n: int
    means: tuple[float, float]
    difference: Interval
    p: float
    only_first: int | None
    only_second: int | None
    p_mcnemar: float | None

    @property
    def name(self) -> str:
        """The method, or both where they differ."""
        return self.first if self.first == self.second else f"{self.first} | {self.second}"


def compare(a: Comparable, b: Comparable) -> list[Difference]:
    """Every measure of every method that both runs have, paired by unit.

    Methods are paired by name; where no name is in both and each run has one method, these two.

    Raises:
        ScenarioError: If the runs are of different suites or data, have no results, or share no
            method or no unit; it says what was expected and what came.
    """
    for run in (a, b):
        if not run.methods:
            raise ScenarioError(
                f"no results in {str(run.path)!r}: expected at least one decision; "
                "go on with the run first"
            )
    _check_suites(a, b)
    rows = [
        row
        for first, second in _pairs(a, b)
        for name, measured in a.methods[first].items()
        if (row := _difference(a, (first, second), name, measured, b.methods[second][name]))
    ]
    if not rows:
        raise ScenarioError(
            f"expected two runs over the same {a.cluster}s, but {str(a.path)!r} and "
            f"{str(b.path)!r} have none in common"
        )
    return _adjusted(rows)


def comparison_summary(
    a: Comparable, b: Comparable, rows: Sequence[Difference]
) -> dict[str, object]:
    """The comparison as one JSON object."""
    return {
        "suite": dict(a.suite),
        "a": {"folder": str(a.path), "unfinished": a.unfinished} | _named(a.facts),
        "b": {"folder": str(b.path), "unfinished": b.unfinished} | _named(b.facts),
        "resampled": a.cluster,
        "differences": [_described(row) for row in rows],
    }


def comparison_report(
    a: Comparable, b: Comparable, rows: Sequence[Difference], *, command: str
) -> Report:
    """The page of a comparison.

    Args:
        a: The first run.
        b: The second run.
        rows: From ``compare``.
        command: Does it again.
    """
    warnings = [f"{n}: {run.unfinished}" for n, run in (("A", a), ("B", b)) if run.unfinished]
    return Report(
        title=f"{a.suite['suite']}: two runs compared",
        summary=(
            f"A is {a.path}, B is {b.path}. Only what both runs have is compared, unit by unit; "
            "differences are A minus B."
        ),
        facts=[
            ("Command", command),
            *((f"A: {name}", fact) for name, fact in a.facts),
            *((f"B: {name}", fact) for name, fact in b.facts),
            ("Intervals", f"95 %, bootstrap by {a.cluster}, 2,000 resamples"),
        ],
        headlines=[],
        sections=[
            Section(
                "Differences",
                f"Sign-flip tests flip whole {a.cluster}s; McNemar's exact test takes units as "
                "independent. Each is adjusted by Holm over the methods.",
                tables=[_table(rows)],
                figures=_figures(rows),
            )
        ],
        warning=" ".join(warnings),
    )


def _check_suites(a: Comparable, b: Comparable) -> None:
    for what in dict.fromkeys((*a.suite, *b.suite)):
        expected, came = a.suite.get(what, "none"), b.suite.get(what, "none")
        if expected != came:
            raise ScenarioError(
                f"cannot compare different runs: expected {what} {expected!r} as in "
                f"{str(a.path)!r}, got {came!r} in {str(b.path)!r}; compare two runs of the same "
                "suite over the same data"
            )


def _pairs(a: Comparable, b: Comparable) -> list[tuple[str, str]]:
    common = [name for name in a.methods if name in b.methods]
    if common:
        return [(name, name) for name in common]
    if len(a.methods) == len(b.methods) == 1:
        return [(next(iter(a.methods)), next(iter(b.methods)))]
    raise ScenarioError(
        f"expected a method that both runs have, but {str(a.path)!r} has "
        f"{', '.join(a.methods)} and {str(b.path)!r} has {', '.join(b.methods)}"
    )


def _difference(
    a: Comparable, names: tuple[str, str], name: str, first: Measured, second: Measured
) -> Difference | None:
    units = [unit for unit in first.values if unit in second.values]
    if not units:
        return None
    pairs = [(first.values[unit].value, second.values[unit].value) for unit in units]
    clusters = [first.values[unit].cluster for unit in units]
    differences = [x - y for x, y in pairs]
    only = (sum(x > y for x, y in pairs), sum(x < y for x, y in pairs))
    return Difference(
        first=names[0],
        second=names[1],
        measure=name,
        label=first.label,
        meaning=first.meaning,
        n=len(units),
        means=(sum(x for x, _ in pairs) / len(pairs), sum(y for _, y in pairs) / len(pairs)),
        difference=bootstrap_interval(differences, clusters, seed=a.seed),
        p=sign_flip(differences, clusters, seed=a.seed),
        only_first=only[0] if first.is_binary else None,
        only_second=only[1] if first.is_binary else None,
        p_mcnemar=mcnemar(*only) if first.is_binary else None,
    )


def _adjusted(rows: Sequence[Difference]) -> list[Difference]:
    """Rows with p-values adjusted over the methods compared on each measure."""
    adjusted: dict[tuple[str, str], Difference] = {}
    for measure in {row.measure for row in rows}:
        own = [row for row in rows if row.measure == measure]
        flips = holm([row.p for row in own])
        exact = holm([row.p_mcnemar or 0.0 for row in own])
        for row, p, q in zip(own, flips, exact, strict=True):
            known = None if row.p_mcnemar is None else q
            adjusted[row.first, measure] = row._replace(p=p, p_mcnemar=known)
    return [adjusted[row.first, row.measure] for row in rows]


def _named(facts: Sequence[tuple[str, str]]) -> dict[str, object]:
    return {name.lower().replace(" ", "_"): fact for name, fact in facts}


def _described(row: Difference) -> dict[str, object]:
    return {
        "method": row.name,
        "measure": row.measure,
        "n": row.n,
        "a": row.means[0],
        "b": row.means[1],
        "difference": row.difference.mean,
        "interval": [row.difference.low, row.difference.high],
        "p_sign_flip": row.p,
        "only_a": row.only_first,
        "only_b": row.only_second,
        "p_mcnemar": row.p_mcnemar,
    }


def _table(rows: Sequence[Difference]) -> Table:
    columns = [
        Column("method"),
        Column("measure"),
        Column("pairs", "Examples or questions that both runs have"),
        Column("A"),
        Column("B"),
        Column("A minus B", "With its 95 % interval"),
        Column("p, sign-flip"),
        Column("only A", "Pairs with 1 in A and 0 in B"),
        Column("only B", "Pairs with 0 in A and 1 in B"),
        Column("p, McNemar"),
    ]
    return Table(columns, [_cells(row) for row in rows])


def _cells(row: Difference) -> list[Cell]:
    digits = 3 if row.only_first is not None or row.measure == "useful_f1" else 1
    mean, low, high = row.difference
    known = low is not None and high is not None
    bounds = f"[{low:.{digits}f}, {high:.{digits}f}]" if known else ""
    return [
        Cell(row.name),
        Cell(row.label),
        number(row.n, digits=0),
        number(row.means[0], digits=digits),
        number(row.means[1], digits=digits),
        Cell(f"{mean:+.{digits}f}", mean, bounds, "number"),
        _p_value(row.p),
        number(row.only_first, digits=0),
        number(row.only_second, digits=0),
        _p_value(row.p_mcnemar),
    ]


def _figures(rows: Sequence[Difference]) -> list[Figure]:
    by_measure: dict[str, list[Difference]] = {}
    for row in rows:
        by_measure.setdefault(row.measure, []).append(row)
    return [
        Figure(charts.dots(_estimates(own), _axis(own)), f"{own[0].meaning}: A minus B.")
        for own in by_measure.values()
    ]


def _estimates(rows: Sequence[Difference]) -> list[charts.Estimate]:
    return [charts.Estimate(row.name, *row.difference) for row in rows]


def _axis(rows: Sequence[Difference]) -> charts.Axis:
    """An axis with zero in its middle, so that no difference is seen at a glance."""
    bounds = [bound for row in rows for bound in row.difference if bound is not None]
    most = max((abs(bound) for bound in bounds), default=0.0) or 1.0
    return charts.axis_for(f"{rows[0].label}, A minus B", [-most, most])


def _p_value(p: float | None) -> Cell:
    if p is None:
        return number(None)
    return number(p, digits=4) if p >= _SMALLEST_P else Cell("<0.0001", p, kind="number")
