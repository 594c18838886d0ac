"""The tables of the published protocol, for a terminal and for a page. Ids and figures only."""

from collections.abc import Sequence
from typing import TypeAlias

from assay.cli.tables import FigureTable
from assay.scenarios.cmi_charts import Recording
from assay.scenarios.published_cmi import Replayed
from assay.scenarios.published_tables import Tables
from assay.scenarios.scorer_differences import Differences
from assay.scenarios.statistics import Interval

Rows: TypeAlias = list[list[str]]
"""Cells as text; the first row is the heading."""


def rule_rows(replayed: Replayed) -> Rows:
    """Every rule over the same recorded utilities."""
    metrics = ("useful_f1", "gold_recall", "useful_precision", "bad_rejection")
    head = ["rule", "F1", "recall", "precision", "bad rejected", "poisoned"]
    return [
        head,
        *(
            [
                name,
                *(_cell(result.metrics[metric], digits=4) for metric in metrics),
                f"{result.poisoned} of {result.poisonable}",
            ]
            for name, result in replayed.methods.items()
        ),
    ]


def agent_rows(tables: Tables) -> Rows:
    """Table 1, with the task score over judged answers beside the published one."""
    head = ["agent", "task", "judged only", "cut", "success", "F1", "bad rejected", "poison"]
    return [
        [*head, "memories"],
        *(
            [
                name,
                _cell(row.task),
                _cell(row.task_judged),
                str(row.judge_missing),
                *map(_cell, (row.success, row.useful_f1, row.bad_rejection, row.poison)),
                _cell(row.memories),
            ]
            for name, row in tables.agents.items()
        ),
    ]


def family_rows(tables: Tables) -> Rows:
    """Table 2: task score by agent and family."""
    families = sorted({family for row in tables.families.values() for family in row})
    return [
        ["agent", *(family.removesuffix("_memory_qa") for family in families)],
        *(
            [agent, *(_cell(row[family]) for family in families)]
            for agent, row in tables.families.items()
        ),
    ]


def diagnosis_rows(tables: Tables) -> Rows:
    """Table 3: mean utility and stability by label."""
    return [
        ["label", "candidates", "utility", "stability"],
        *(
            [label, str(row.candidates), _cell(row.utility), _cell(row.stability)]
            for label, row in tables.diagnostics.items()
        ),
    ]


def difference_rows(differences: Differences) -> Rows:
    """Where the two scorers differ, and why."""
    return [
        ["cause", "answers", "published", "ours", "for example"],
        *(
            [
                cause,
                str(found.answers),
                _number(found.published),
                _number(found.ours),
                ", ".join(found.examples) or "-",
            ]
            for cause, found in differences.causes.items()
        ),
    ]


def printed(title: str, rows: Sequence[Sequence[str]]) -> FigureTable:
    """Rows as a terminal table."""
    return FigureTable(title=title, head=rows[0], rows=rows[1:])


def markdown(recording: Recording, command: str, *, seed: int) -> str:
    """All tables as a page, with the command that makes it."""
    replayed, tables = recording.replayed, recording.tables
    parts = [
        "# Causal-LoCoMo, published protocol",
        f"Made by `{command}`; seed {seed}. Brackets are 95 % intervals, bootstrap by conversation.",
        f"{replayed.reproduced} of {replayed.decisions} recorded decisions reproduced over "
        f"{replayed.examples} examples. Labels and expected answers are in hand here: nothing on "
        "this page says what a selector can do without them.",
        "## Rules over the same recorded utilities",
        _table(rule_rows(replayed)),
    ]
    if tables:
        parts += [
            "## Agents as recorded (table 1)",
            f"{tables.judge_missing} judge answers were cut and scored 0 (`cut`). `task` counts them as "
            "0, as published; `judged only` leaves them out as missing.",
            _table(agent_rows(tables)),
            "## Task score by family (table 2)",
            _table(family_rows(tables)),
            "## Utility and stability by label (table 3)",
            _table(diagnosis_rows(tables)),
        ]
    if recording.differences:
        parts += [
            "## The published scorer and ours",
            f"The published scorer gives {recording.differences.reproduced} of "
            f"{recording.differences.answers} recorded scores to the last bit. Ours wants whole words, takes "
            "aliases, dates and numbers in any notation, and gives nothing for abstaining. The first "
            "cause that holds counts; `published` and `ours` are means over the answers of a row.",
            _table(difference_rows(recording.differences)),
        ]
    return "\n\n".join(parts) + "\n"


def _table(rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *("---:" for _ in rows[0][1:])]
    return "\n".join(
        f"| {' | '.join(cell.replace(chr(10), ' ') for cell in row)} |"
        for row in (rows[0], rule, *rows[1:])
    )


def _cell(interval: Interval, digits: int = 3) -> str:
    mean, low, high = interval
    if mean is None:
        return "-"
    bounds = "" if low is None or high is None else f"\n[{low:.3f}, {high:.3f}]"
    return f"{mean:.{digits}f}{bounds}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
