"""The block of a run's page that shows how clearing came to its decisions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import get_args

from assay.guards.protocols import Decision
from assay.guards.trace import PairMeaning, Tested
from assay.scenarios import charts
from assay.scenarios.report import Cell, Column, Figure, Section, Table, number
from assay.scenarios.results import MethodResult
from assay.stores.records import RecordId

MEANINGS: tuple[PairMeaning, ...] = get_args(PairMeaning)
_CERTIFICATES = (
    ("clean", "The answer with every candidate was right already, by the value function"),
    ("recovered", "A withholding was verified by independent draws"),
    ("none", "Nothing was verified, so nothing was withheld but what could not be measured"),
)


def clearing_section(results: Mapping[str, MethodResult]) -> Section | None:
    """Certificates, tested withholdings and interactions by method; ``None`` if none clears."""
    decisions = {
        name: [row.decision for row in result.rows if row.decision.trace is not None]
        for name, result in results.items()
    }
    decisions = {name: traced for name, traced in decisions.items() if traced}
    if not decisions:
        return None
    columns = [
        Column("method"),
        *(Column(name, meaning) for name, meaning in _CERTIFICATES),
        Column("stopped", "The budget ended the search"),
        Column("withholdings tested", "Per example"),
        *(Column(meaning, "Pairs of records measured to interact so") for meaning in MEANINGS),
    ]
    rows = [[Cell(name), *_counts(traced)] for name, traced in decisions.items()]
    text = (
        "Nothing is withheld but what independent draws confirmed. The bar is a convention of the "
        "value function: agreement with the archive is not the truth."
    )
    return Section("Clearing", text, tables=[Table(columns, rows)], figures=_figures(decisions))


def clearing_lines(name: str, decision: Decision) -> list[tuple[str, str]]:
    """The tested filtration and the interactions of one decision, for its card."""
    trace = decision.trace
    if trace is None:
        return []
    places = {j.record_id: place for place, j in enumerate(decision.judgements, start=1)}
    before = "unmeasured" if trace.before is None else f"{trace.before:.2f}"
    steps = [f"nothing {before}", *(_step(tested, places) for tested in trace.tested)]
    pairs = [
        f"{places.get(p.first, 0)} and {places.get(p.second, 0)}: {p.meaning} ({p.strength:+.2f})"
        for p in trace.interactions
    ]
    lines = [(f"{name} tested, bar {trace.bar:.2f}", " \N{RIGHTWARDS ARROW} ".join(steps))]
    return [*lines, (f"{name} interactions", "; ".join(pairs))] if pairs else lines


def _step(tested: Tested, places: Mapping[RecordId, int]) -> str:
    listed = ", ".join(str(places.get(record, 0)) for record in tested.withheld)
    utility = "unmeasured" if tested.utility is None else f"{tested.utility:.2f}"
    return f"without {listed} {utility}{' (verified)' if tested.verified else ''}"


def _counts(decisions: Sequence[Decision]) -> list[Cell]:
    certificates = Counter(decision.certificate.partition(",")[0] for decision in decisions)
    pairs = Counter(
        pair.meaning for d in decisions if d.trace is not None for pair in d.trace.interactions
    )
    tested = sum(len(d.trace.tested) for d in decisions if d.trace is not None) / len(decisions)
    stopped = sum("stopped" in decision.certificate for decision in decisions)
    return [
        *(number(certificates[name], digits=0) for name, _ in _CERTIFICATES),
        number(stopped, digits=0),
        number(tested, digits=2),
        *(number(pairs[meaning], digits=0) for meaning in MEANINGS),
    ]


def _figures(decisions: Mapping[str, Sequence[Decision]]) -> list[Figure]:
    figures: list[Figure] = []
    for name, traced in decisions.items():
        groups: dict[str, list[float]] = {meaning: [] for meaning in MEANINGS}
        for decision in traced:
            for pair in decision.trace.interactions if decision.trace is not None else ():
                groups[pair.meaning].append(pair.strength)
        values = [value for group in groups.values() for value in group]
        if values:
            axis = charts.axis_for("interaction, in units of utility", values)
            figures.append(Figure(charts.strips(groups, axis), f"{name}: interactions of pairs."))
    return figures
