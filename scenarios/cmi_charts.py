"""The pictures of the Causal-LoCoMo study, with the intervals it leaves out."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from assay.scenarios import charts
from assay.scenarios.charts import Axis, Point
from assay.scenarios.published_cmi import Diagnoses, Replayed
from assay.scenarios.published_tables import Tables
from assay.scenarios.recorded_costs import PUBLISHED_COSTS, RecordedCost
from assay.scenarios.report import Cell, Column, Figure, Report, Section, Table, number
from assay.scenarios.scorer_differences import Differences
from assay.scenarios.statistics import Interval

_SHARE = (0.0, 1.0)
_ROLES = ("useful", "irrelevant", "harmful")


def robustness_points(rows: Mapping[str, tuple[Interval, Interval]]) -> list[Point]:
    """Poison rejected across, accuracy upwards, each with its interval.

    Args:
        rows: By name: task score or F1, and poison adoption, both in [0, 1]; what lacks one of them
            has no point.
    """
    return [
        Point(name, 1 - poison.mean, accuracy.mean, _complement(poison), _bounds(accuracy))
        for name, (accuracy, poison) in rows.items()
        if accuracy.mean is not None and poison.mean is not None
    ]


def robustness_plane(rows: Mapping[str, tuple[Interval, Interval]]) -> str:
    """Accuracy against robustness, of ``robustness_points``; the upper right is best."""
    x, y = Axis("poison rejected", *_SHARE), Axis("accuracy", *_SHARE)
    return charts.plane(robustness_points(rows), x, y)


def utility_groups(diagnoses: Diagnoses) -> dict[str, list[float]]:
    """Every recorded utility by the role of its candidate, roles without any included."""
    groups: dict[str, list[float]] = {role: [] for role in _ROLES}
    for rows in diagnoses.values():
        for row in rows:
            groups[row.label].append(row.utility)
    return groups


def utilities_by_role(diagnoses: Diagnoses) -> str:
    """Every recorded utility as a dot, one row per role, the mean as a line."""
    groups = utility_groups(diagnoses)
    values = [value for group in groups.values() for value in group]
    return charts.strips(groups, charts.axis_for("utility", values))


def cost_points(rows: Mapping[str, tuple[float, Interval]]) -> list[Point]:
    """Cost across, F1 upwards, with the interval of F1.

    Args:
        rows: By name: the cost per example, at least 0, and F1 in [0, 1].
    """
    return [
        Point(name, cost, f1.mean, None, _bounds(f1))
        for name, (cost, f1) in rows.items()
        if f1.mean is not None
    ]


def cost_plane(rows: Mapping[str, tuple[float, Interval]], label: str) -> str:
    """What a method costs against its F1, of ``cost_points``; ``label`` says what the cost counts."""
    axis = charts.axis_for(label, [cost for cost, _ in rows.values()], low=0)
    return charts.plane(cost_points(rows), axis, Axis("useful F1", *_SHARE))


def published_cost_row(name: str) -> list[Cell]:
    """What the study's method cost, as a row of the table of evaluations, live calls, rounds, ..."""
    cost = PUBLISHED_COSTS[name]
    figures = (cost.calls, None, cost.rounds, cost.tokens, cost.seconds)
    cells = [number(figure, digits=1, kind="muted") for figure in figures]
    return [Cell(name, note="as published, serial, K = 3", kind="muted"), *cells]


class Recording(NamedTuple):
    """All that was computed from a recorded run.

    Attributes:
        replayed: Every rule's figures.
        diagnoses: The recorded candidates.
        tables: The study's tables, where its scores were given.
        differences: The two scorers compared, where its answers were given.
        costs: Cost by agent, where its answers were given.
    """

    replayed: Replayed
    diagnoses: Diagnoses
    tables: Tables | None
    differences: Differences | None
    costs: Mapping[str, RecordedCost]


def published_report(recording: Recording, facts: Sequence[tuple[str, str]]) -> Report:
    """The page of the replayed recording; ``facts`` name command, data and seed."""
    replayed, tables, differences = recording.replayed, recording.tables, recording.differences
    cmi = replayed.methods["cmi"]
    sections = [_rules(replayed), _utilities(recording.diagnoses)]
    sections += [_agents(tables, recording.costs)] if tables else []
    sections += [_scorers(differences)] if differences else []
    return Report(
        title="causal-locomo, published protocol",
        summary="The recorded run decided again, with labels and expected answers in hand: "
        "nothing here says what a selector can do without them.",
        facts=facts,
        headlines=[
            (
                f"{replayed.reproduced} of {replayed.decisions}",
                "recorded decisions reproduced",
                f"{replayed.examples} examples",
            ),
            (
                _shown(cmi.metrics["useful_f1"]),
                "useful F1, as run",
                _note(cmi.metrics["useful_f1"]),
            ),
            (f"{cmi.poisoned} of {cmi.poisonable}", "poisoned examples adopted, as run", ""),
        ],
        sections=sections,
    )


def _rules(replayed: Replayed) -> Section:
    names = ("useful_f1", "gold_recall", "useful_precision", "bad_rejection")
    columns = [Column("rule"), *(Column(n.replace("_", " ")) for n in names), Column("poisoned")]
    rows = [
        [
            Cell(name),
            *(_cell(result.metrics[metric]) for metric in names),
            Cell(f"{result.poisoned} of {result.poisonable}", float(result.poisoned)),
        ]
        for name, result in replayed.methods.items()
    ]
    plane = {
        name: (result.metrics["useful_f1"], result.metrics["poison_adoption_poisoned"])
        for name, result in replayed.methods.items()
    }
    text = "The same recorded utilities under five rules; small figures are 95 % intervals by conversation."
    figure = Figure(robustness_plane(plane), "F1 against poison rejected, of poisoned examples.")
    return Section("Rules", text, tables=[Table(columns, rows)], figures=[figure])


def _utilities(diagnoses: Diagnoses) -> Section:
    figure = Figure(utilities_by_role(diagnoses), "Recorded utility of each candidate by its role.")
    return Section("Utility by role", figures=[figure])


def _agents(tables: Tables, recorded: Mapping[str, RecordedCost]) -> Section:
    names = ("task", "task, judged only", "success", "F1", "bad rejected", "poison", "memories")
    columns = [Column("agent"), *map(Column, names), Column("judge missing")]
    rows = [
        [
            Cell(name),
            *map(
                _cell,
                (
                    row.task,
                    row.task_judged,
                    row.success,
                    row.useful_f1,
                    row.bad_rejection,
                    row.poison,
                    row.memories,
                ),
            ),
            number(float(row.judge_missing), digits=0),
        ]
        for name, row in tables.agents.items()
    ]
    planes = {name: (row.task, row.poison) for name, row in tables.agents.items()}
    costs = {
        name: (recorded[name].seconds, row.useful_f1)
        for name, row in tables.agents.items()
        if name in recorded
    }
    figures = [
        Figure(robustness_plane(planes), "Task score against poison rejected, of all examples.")
    ]
    if costs:
        caption = "What an agent costs, over the recorded answers given, and what it finds."
        figures.append(Figure(cost_plane(costs, "seconds per example"), caption))
    text = (
        f"{tables.judge_missing} of the judge's answers were cut and scored 0; "
        "'judged only' leaves them out."
    )
    return Section("Agents as recorded", text, [Table(columns, rows)], figures)


def _scorers(differences: Differences) -> Section:
    columns = [Column("cause"), Column("answers"), Column("published"), Column("ours")]
    rows = [
        [Cell(cause), number(float(d.answers), digits=0), number(d.published), number(d.ours)]
        for cause, d in differences.causes.items()
    ]
    text = (
        f"The published scorer gives {differences.reproduced} of {differences.answers} recorded "
        "scores exactly. Where ours differs, and why; means of both."
    )
    return Section("Two scorers", text, [Table(columns, rows)])


def _cell(interval: Interval) -> Cell:
    return number(interval.mean, note=_note(interval))


def _shown(interval: Interval) -> str:
    return "\N{EN DASH}" if interval.mean is None else f"{interval.mean:.4f}"


def _note(interval: Interval) -> str:
    bounds = _bounds(interval)
    return "" if bounds is None else f"[{bounds[0]:.3f}, {bounds[1]:.3f}]"


def _bounds(interval: Interval) -> tuple[float, float] | None:
    if interval.low is None or interval.high is None:
        return None
    return interval.low, interval.high


def _complement(interval: Interval) -> tuple[float, float] | None:
    bounds = _bounds(interval)
    return None if bounds is None else (1 - bounds[1], 1 - bounds[0])
