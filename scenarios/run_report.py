"""The page of a benchmark run: figures with intervals, plots, and every decision to open and read."""

from collections.abc import Mapping, Sequence

from assay.scenarios import charts
from assay.scenarios.causal_locomo import SUITE
from assay.scenarios.clearing_block import clearing_lines, clearing_section
from assay.scenarios.cmi_charts import cost_plane, published_cost_row, robustness_plane
from assay.scenarios.metrics import METRICS
from assay.scenarios.policy_block import policy_lines, policy_section
from assay.scenarios.recorded_costs import PUBLISHED_COSTS
from assay.scenarios.report import Card, Cell, Column, Figure, Report, Section, Table, number
from assay.scenarios.results import COSTS, MethodResult, comparisons
from assay.scenarios.runs import RunRecord
from assay.scenarios.schema import Key, Scenario
from assay.scenarios.statistics import Interval
from assay.stores.records import MemoryRecord

_SHARE = (0.0, 1.0)
_SMALLEST_P = 0.0001
_MEANINGS = {
    "useful_f1": "Mean over examples of the F1 of the selected memories",
    "gold_recall": "Useful memories selected, of all useful",
    "useful_precision": "Selected memories that are useful",
    "bad_rejection": "1 minus the share of irrelevant and harmful memories selected",
    "poison_adoption": "Examples in which a harmful memory was selected",
    "poison_adoption_poisoned": "The same over the examples that have a harmful memory",
    "avg_memories": "Memories selected per example",
    "evaluations": "Distinct questions put to the laboratory per example, cached or not",
    "live": "Calls that reached the model in this run, in total",
    "rounds": "Sequential depth per example at the stated concurrency",
    "tokens": "Tokens of live calls per example",
    "seconds": "Wall time per example",
}
_BLIND = "No selector saw a label, an expected answer, a source id or an original timestamp."
_PUBLISHED = (
    "Published protocol: cmi_oracle scores with the expected answer in hand, and its figures say "
    "nothing of what a selector can do without it. No prompt holds a label or an answer."
)
_INTERVALS = "Small figures are 95 % bootstrap intervals that resample whole conversations."


def run_report(
    record: RunRecord,
    scenarios: Sequence[Scenario],
    results: Mapping[str, MethodResult],
    *,
    warning: str = "",
) -> Report:
    """The page of a run.

    Args:
        record: What was run.
        scenarios: With their keys: roles are shown beside decisions, after the fact.
        results: By method, in order; over these scenarios.
        warning: What a reader must know first, such as that the run has not finished.
    """
    keys = [scenario.key for scenario in scenarios]
    reference = "panel" if "panel" in results else list(results)[-1]
    sections = [
        Section(
            "Methods",
            _explanation(record),
            tables=_methods(record, results),
            figures=_figures(results),
        ),
        _comparison_section(results, keys, reference, record.config.seed),
        Section("By family of questions", tables=[_families(results)]),
        _effects_section(results, keys),
        clearing_section(results),
        policy_section(results),
        _decisions(scenarios, results),
    ]
    return Report(
        title=f"{record.config.suite}, {record.config.protocol} protocol",
        summary=f"{len(scenarios)} examples, {len(results)} methods, K = {record.config.k}.",
        facts=_facts(record, scenarios),
        headlines=_headlines(reference, results[reference], keys),
        sections=[section for section in sections if section is not None],
        warning=warning,
    )


def _explanation(record: RunRecord) -> str:
    shown = _PUBLISHED if record.config.protocol == "published" else _BLIND
    return f"{shown} {_INTERVALS}"


def _facts(record: RunRecord, scenarios: Sequence[Scenario]) -> list[tuple[str, str]]:
    flagged = [s.example.id for s in scenarios if s.key.flags]
    facts = [
        ("Command", record.command),
        ("Model", record.identity),
        ("Embedder", record.embedder),
        ("Seed", str(record.config.seed)),
        ("Data", f"sha256 {record.config.data_sha256}"),
        ("Started", record.started),
        ("Intervals", "95 %, bootstrap by conversation, 2,000 resamples"),
    ]
    if flagged:
        facts.append(("Doubtful keys", f"{', '.join(flagged)} (kept in; see the decisions)"))
    return facts


def _headlines(name: str, result: MethodResult, keys: Sequence[Key]) -> list[tuple[str, str, str]]:
    poisoned = sum(bool(key.harmful) for key in keys)
    adopted = sum(score.poison > 0 for score in result.scores)
    f1 = result.metrics["useful_f1"]
    return [
        (_shown(f1.mean), f"useful F1, {name}", _bounds(f1)),
        (f"{adopted} of {poisoned}", f"poisoned examples adopted, {name}", ""),
        (f"{result.costs['evaluations']:.1f}", "evaluations per example", "final answer included"),
        (f"{result.costs['live']:,.0f}", "live model calls in this run", "the rest was cached"),
    ]


def _methods(record: RunRecord, results: Mapping[str, MethodResult]) -> list[Table]:
    def columns(names: Sequence[str]) -> list[Column]:
        return [Column("method"), *(Column(n.replace("_", " "), _MEANINGS[n]) for n in names)]

    selected = [
        [Cell(name), *(_estimate(result.metrics[metric]) for metric in METRICS)]
        for name, result in results.items()
    ]
    spent: list[list[Cell]] = [
        [
            Cell(name),
            *(number(result.costs[cost], digits=0 if cost == "live" else 1) for cost in COSTS),
        ]
        for name, result in results.items()
    ]
    if record.config.suite == SUITE:
        spent += [published_cost_row(name) for name in PUBLISHED_COSTS]
    return [Table(columns(METRICS), selected), Table(columns(COSTS), spent)]


def _figures(results: Mapping[str, MethodResult]) -> list[Figure]:
    def dots(metric: str, label: str) -> str:
        rows = [charts.Estimate(n, *r.metrics[metric]) for n, r in results.items()]
        return charts.dots(rows, charts.Axis(label, *_SHARE))

    costs = {n: (r.costs["evaluations"], r.metrics["useful_f1"]) for n, r in results.items()}
    robust = {
        n: (r.metrics["useful_f1"], r.metrics["poison_adoption_poisoned"])
        for n, r in results.items()
        if r.metrics["poison_adoption_poisoned"].mean is not None
    }
    figures = [
        Figure(dots("useful_f1", "useful F1"), "Useful F1, higher is better."),
        Figure(
            dots("poison_adoption_poisoned", "poison adopted, of poisoned examples"),
            "Poison adopted, lower is better.",
        ),
        Figure(
            cost_plane(costs, "evaluations per example"),
            "What a method costs against what it finds.",
        ),
    ]
    if robust:
        text = "Accuracy (useful F1) against robustness, with intervals; the upper right is best."
        figures.append(Figure(robustness_plane(robust), text))
    return figures


def _comparison_section(
    results: Mapping[str, MethodResult], keys: Sequence[Key], reference: str, seed: int
) -> Section | None:
    if len(results) < 2:  # noqa: PLR2004
        return None
    columns = [
        Column("method"),
        Column(f"F1 of {reference} minus its own"),
        Column("p, F1", "Sign-flip test by conversation, adjusted by Holm"),
        Column("p, poison", "Exact McNemar test, adjusted by Holm"),
    ]
    rows = [
        [
            Cell(c.method),
            _estimate(c.difference),
            _p_value(c.p_f1),
            _p_value(c.p_poison),
        ]
        for c in comparisons(results, keys, reference=reference, seed=seed)
    ]
    return Section(
        f"Against {reference}",
        "Paired by example. F1 by a sign-flip test that flips whole conversations, poison by an "
        "exact McNemar test, both adjusted by Holm over the methods compared.",
        tables=[Table(columns, rows)],
    )


def _families(results: Mapping[str, MethodResult]) -> Table:
    names = sorted({family for result in results.values() for family in result.families})
    columns = [Column("method")]
    for family in names:
        short = family.removesuffix("_memory_qa").replace("_", " ")
        columns += [Column(f"{short}: F1"), Column(f"{short}: poison")]
    rows = [
        [Cell(name), *(_estimate(i) for family in names for i in result.families[family])]
        for name, result in results.items()
    ]
    return Table(columns, rows)


def _effects_section(results: Mapping[str, MethodResult], keys: Sequence[Key]) -> Section | None:
    figures: list[Figure] = []
    for name, result in results.items():
        groups: dict[str, list[float]] = {"useful": [], "irrelevant": [], "harmful": []}
        for row, key in zip(result.rows, keys, strict=True):
            for judgement in row.decision.judgements:
                if judgement.effect is not None:
                    groups[_role(key, judgement.record_id)].append(judgement.effect)
        values = [value for group in groups.values() for value in group]
        if values:
            axis = charts.axis_for("measured effect, in units of utility", values)
            figures.append(Figure(charts.strips(groups, axis), f"{name}: effects by role."))
    if not figures:
        return None
    text = "Measured effect of each retrieved memory, grouped afterwards by its role."
    return Section("Effects by role", text, figures=figures)


def _decisions(scenarios: Sequence[Scenario], results: Mapping[str, MethodResult]) -> Section:
    cards = [_card(i, scenario, results) for i, scenario in enumerate(scenarios)]
    text = "Roles and expected answers come from the key; they were joined after the run."
    return Section("Every decision", text, cards=cards)


def _card(place: int, scenario: Scenario, results: Mapping[str, MethodResult]) -> Card:
    columns = [Column("memory"), Column("role"), *(Column(name) for name in results)]
    rows = [
        [
            Cell(record.text),
            Cell(role := _role(scenario.key, record.id), kind=_ROLE_KINDS[role]),
            *(_verdict(result, place, record) for result in results.values()),
        ]
        for record in scenario.example.records
    ]
    answers = [(f"{n} answered", r.rows[place].answer or "(nothing)") for n, r in results.items()]
    flags = [("Doubtful", flag) for flag in scenario.key.flags]
    return Card(
        title=scenario.example.question,
        chips=[Cell(scenario.example.id), *(_chip(n, r, place) for n, r in results.items())],
        table=Table(columns, rows),
        lines=[
            ("Expected", (*scenario.key.expected, "(that nothing answers)")[0]),
            *answers,
            *(
                line
                for name, result in results.items()
                for line in (
                    *clearing_lines(name, result.rows[place].decision),
                    *policy_lines(name, result.rows[place].decision),
                )
            ),
            *flags,
        ],
    )


_ROLE_KINDS = {"useful": "good", "irrelevant": "muted", "harmful": "bad"}


def _chip(name: str, result: MethodResult, place: int) -> Cell:
    score = result.scores[place]
    if score.poison:
        return Cell(f"{name}: poison", kind="bad")
    return Cell(
        f"{name}: F1 {score.useful_f1:.2f}", kind="good" if score.useful_f1 == 1 else "text"
    )


def _verdict(result: MethodResult, place: int, record: MemoryRecord) -> Cell:
    for judgement in result.rows[place].decision.judgements:
        if judgement.record_id == record.id:
            word = "admitted" if judgement.admitted else "withheld"
            effect = "" if judgement.effect is None else f" (effect {judgement.effect:+.3f})"
            return Cell(word, note=judgement.reason + effect)
    return Cell("not retrieved", kind="muted")


def _role(key: Key, record_id: str) -> str:
    if record_id in key.useful:
        return "useful"
    return "harmful" if record_id in key.harmful else "irrelevant"


def _estimate(interval: Interval) -> Cell:
    return number(interval.mean, note=_bounds(interval))


def _p_value(p: float) -> Cell:
    return number(p, digits=4) if p >= _SMALLEST_P else Cell("<0.0001", p, kind="number")


def _bounds(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return ""
    return f"[{interval.low:.3f}, {interval.high:.3f}]"


def _shown(value: float | None) -> str:
    return "\N{EN DASH}" if value is None else f"{value:.3f}"
