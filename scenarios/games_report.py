"""Figures of played games as JSON, as Markdown tables and as a page with the risk frontier."""

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from assay.scenarios.charts import Axis, Point, axis_for, plane
from assay.scenarios.games_runner import Played
from assay.scenarios.games_scoring import (
    CONCURRENCIES,
    MEASURES,
    GameScore,
    Summary,
    paired_recovery,
    summarise,
)
from assay.scenarios.report import Cell, Column, Figure, Report, Section, Table, number

BASELINE = "meclear"

Row: TypeAlias = dict[str, object]

SHOWN = (
    ("evaluations", "Evaluations", "distinct questions a game, verification included"),
    ("rounds", "Rounds", "sequential depth at the stated concurrency"),
    ("recall", "Recall@|M|", "harmful records among the first |M| of the method's order"),
    ("complete", "Complete", "every harmful record flagged"),
    ("exact", "Exact", "exactly the harmful records flagged"),
    ("recovery", "Recovery", "the cleared context is right: its true value is at least one half"),
    ("extra", "Extra", "background records flagged a game"),
    ("extra_cleared", "Cleared", "background records withheld a game"),
    ("silent", "Silent", "recovery claimed and not there"),
)


def figures(played: Played, *, concurrency: int) -> Row:
    """One cohort's figures, ready for JSON: per method means, intervals and the test on recovery.

    Raises:
        ValueError: If ``concurrency`` is not one of ``CONCURRENCIES``.
    """
    rows = {name: _row(name, played, concurrency) for name in played.scores}
    return {"methods": rows, "not_run": dict(played.not_run)}


def markdown(played: Played, *, concurrency: int) -> str:
    """One cohort's table in Markdown, means with 95 % intervals below."""
    head = ["method", *(column.replace("|", "\\|") for _, column, _ in SHOWN), "p recovery"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, scores in played.scores.items():
        summary = summarise(scores, seed=played.plan.seed, concurrency=concurrency)
        cells = [
            f"{summary[key].mean:{_style(key)}}{_range(key, summary[key])}" for key, _, _ in SHOWN
        ]
        p = _p_value(name, played)
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {'' if p is None else f'{p:.2g}'} |")
    lines += [f"| {name} | not run: {why} |" for name, why in played.not_run.items()]
    return "\n".join(lines)


def page(cohorts: Sequence[Played], *, command: str, concurrency: int) -> Report:
    """A self-contained page: a table and a risk frontier for each cohort."""
    plan = cohorts[0].plan
    return Report(
        title="Clearing games",
        summary=(
            "Synthetic contexts with known faults: how many questions each method asks, and what "
            "it leaves behind."
        ),
        facts=[
            ("Command", command),
            ("Seed", str(plan.seed)),
            ("Games a cohort", str(plan.size)),
            ("Mix", plan.mix),
            ("Answers", plan.answers),
            ("Intervals", "95 %, 2,000 two-level bootstrap replicates: conversations, then games"),
        ],
        headlines=[],
        sections=[_section(played, concurrency) for played in cohorts],
    )


def frontier(played: Played) -> list[tuple[str, float, float, float]]:
    """Per method: extra background records a game, residual-error risk, recovery.

    The residual-error risk is the share of games that are still wrong on the final context.
    """
    points: list[tuple[str, float, float, float]] = []
    for name, scores in played.scores.items():
        recovery = sum(s.recovery for s in scores) / len(scores)
        extra = sum(s.extra for s in scores) / len(scores)
        points.append((name, extra, 1.0 - recovery, recovery))
    return points


def _row(name: str, played: Played, concurrency: int) -> Row:
    scores = played.scores[name]
    summary = summarise(scores, seed=played.plan.seed, concurrency=concurrency)
    row: Row = {key: summary[key].mean for key in MEASURES}
    row["rounds_at"] = {
        str(c): sum(s.rounds[place] for s in scores) / len(scores)
        for place, c in enumerate(CONCURRENCIES)
    }
    row["intervals"] = {key: [summary[key].low, summary[key].high] for key in MEASURES}
    row["stopped"] = sum(s.stopped for s in scores) / len(scores)
    row["mcnemar_recovery"] = _p_value(name, played)
    row["structures"] = _by_structure(scores, played.plan.seed, concurrency)
    return row


def _by_structure(
    scores: Sequence[GameScore], seed: int, concurrency: int
) -> Mapping[str, Mapping[str, float]]:
    kinds = sorted({s.structure for s in scores})
    parts = {kind: [s for s in scores if s.structure == kind] for kind in kinds}
    return {
        kind: {
            "games": float(len(part)),
            **{
                key: one.mean
                for key, one in summarise(part, seed=seed, concurrency=concurrency).items()
            },
        }
        for kind, part in parts.items()
    }


def _p_value(name: str, played: Played) -> float | None:
    if name == BASELINE or BASELINE not in played.scores:
        return None
    return paired_recovery(played.scores[name], played.scores[BASELINE])


def _section(played: Played, concurrency: int) -> Section:
    columns = [Column("Method"), *(Column(title, meaning) for _, title, meaning in SHOWN)]
    rows = [
        [Cell(name), *(_cell(key, summary[key]) for key, _, _ in SHOWN)]
        for name, scores in played.scores.items()
        for summary in [summarise(scores, seed=played.plan.seed, concurrency=concurrency)]
    ]
    return Section(
        title=f"{played.plan.k} candidates",
        text=f"Rounds at concurrency {concurrency}. " + _left_out(played),
        tables=[Table(columns, rows)],
        figures=[_frontier_figure(played)],
    )


def _left_out(played: Played) -> str:
    return " ".join(f"{name} was not run: {why}." for name, why in played.not_run.items())


def _frontier_figure(played: Played) -> Figure:
    points = frontier(played)
    extra = axis_for("extra background records a game", [e for _, e, _, _ in points], low=0.0)
    risk = Axis(
        "residual error", 0.0, max(0.05, math.ceil(20 * max(r for *_, r, _ in points)) / 20)
    )
    dots = [Point(f"{name} ({recovery:.0%})", e, r) for name, e, r, recovery in points]
    return Figure(
        plane(dots, extra, risk),
        "Risk frontier: residual error against extra background flagged; recovery in brackets. "
        "Down and left is better.",
    )


def _cell(key: str, summary: Summary) -> Cell:
    return number(
        summary.mean,
        digits=1 if key in {"evaluations", "rounds"} else 3,
        note=f"{summary.low:{_style(key)}} to {summary.high:{_style(key)}}",
    )


def _style(key: str) -> str:
    return ".1f" if key in {"evaluations", "rounds"} else ".3f"


def _range(key: str, summary: Summary) -> str:
    return f" ({summary.low:{_style(key)}}, {summary.high:{_style(key)}})"
