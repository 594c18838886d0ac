"""The published protocol: the recorded run decided again, labels and answers in hand."""

import json
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from assay.cli.replay.published_tables import (
    agent_rows,
    diagnosis_rows,
    difference_rows,
    family_rows,
    markdown,
    printed,
    rule_rows,
)
from assay.errors import ScenarioError
from assay.scenarios.causal_locomo import SUITE
from assay.scenarios.cmi_charts import Recording, published_report
from assay.scenarios.folder import REPORT_FILE
from assay.scenarios.metrics import METRICS
from assay.scenarios.published_cmi import Replayed, read_diagnostics, read_keys, replay_published
from assay.scenarios.published_tables import Tables, published_tables
from assay.scenarios.recorded_costs import recorded_costs
from assay.scenarios.report import write
from assay.scenarios.scorer_differences import Differences, scorer_differences
from assay.scenarios.statistics import Interval


class PublishedFiles(NamedTuple):
    """What a published replay reads and writes.

    Attributes:
        data: A Causal-LoCoMo JSONL file, the key of everything else.
        diagnostics: Recorded candidates.
        scores: Recorded scores of all agents, for the study's tables.
        answers: Recorded answers, for the comparison of the two scorers.
        answer_keys: The keys those answers were scored with, where they are not those of ``data``.
        out: Folder of the report.
        markdown: File for the tables.
    """

    data: Path
    diagnostics: Path
    scores: Path | None = None
    answers: Path | None = None
    answer_keys: Path | None = None
    out: Path | None = None
    markdown: Path | None = None


def published(files: PublishedFiles, *, command: str, seed: int, as_json: bool) -> None:
    """Decide every recorded candidate again and print how often the recording is met."""
    recording = _read(files, seed)
    if files.out is not None:
        facts = [("Command", command), ("Seed", str(seed))]
        write(published_report(recording, facts), files.out / REPORT_FILE)
    if files.markdown is not None:
        _write(files.markdown, markdown(recording, command, seed=seed))
    if as_json:
        print(json.dumps(_summary(recording, seed)))
        return
    _show(recording, seed, files.out)


def _read(files: PublishedFiles, seed: int) -> Recording:
    keys, diagnoses = read_keys(files.data), read_diagnostics(files.diagnostics)
    replayed = replay_published(keys, diagnoses, seed=seed)
    tables = published_tables(files.scores, keys, diagnoses, seed=seed) if files.scores else None
    if files.answers is None:
        return Recording(replayed, diagnoses, tables, None, {})
    differences = scorer_differences(files.answer_keys or files.data, files.answers)
    return Recording(replayed, diagnoses, tables, differences, recorded_costs(files.answers))


def _show(recording: Recording, seed: int, out: Path | None) -> None:
    console, replayed = Console(), recording.replayed
    console.print(printed("Published protocol", rule_rows(replayed)))
    if recording.tables:
        tables = recording.tables
        console.print(printed("Agents as recorded (table 1)", agent_rows(tables)))
        console.print(printed("Task score by family (table 2)", family_rows(tables)))
        console.print(printed("Utility and stability (table 3)", diagnosis_rows(tables)))
        console.print(f"{tables.judge_missing} judge answers were cut and scored 0", style="dim")
    if recording.differences:
        console.print(printed("Published scorer and ours", difference_rows(recording.differences)))
    console.print(
        f"{replayed.reproduced} of {replayed.decisions} recorded decisions reproduced; seed {seed}",
        highlight=False,
    )
    if out is not None:
        console.print(f"report: {out / REPORT_FILE}", highlight=False, soft_wrap=True)


def _summary(recording: Recording, seed: int) -> dict[str, object]:
    replayed = recording.replayed
    found: dict[str, object] = {
        "suite": SUITE,
        "protocol": "published",
        "seed": seed,
        "examples": replayed.examples,
        "decisions": replayed.decisions,
        "reproduced": replayed.reproduced,
        "methods": _means(replayed),
        "intervals": {
            name: {m: [result.metrics[m].low, result.metrics[m].high] for m in METRICS}
            for name, result in replayed.methods.items()
        },
    }
    if recording.tables:
        found["tables"] = _tables(recording.tables)
    if recording.differences:
        found["scorers"] = _scorers(recording.differences)
    return found


def _means(replayed: Replayed) -> dict[str, object]:
    return {
        name: {metric: result.metrics[metric].mean for metric in METRICS}
        | {"poisoned": result.poisoned, "poisonable": result.poisonable}
        for name, result in replayed.methods.items()
    }


def _tables(tables: Tables) -> dict[str, object]:
    """Every figure as ``{mean, low, high}``; counts as they are."""
    return {
        "judge_missing": tables.judge_missing,
        "agents": {
            name: {field: _plain(value) for field, value in row._asdict().items()}
            for name, row in tables.agents.items()
        },
        "families": {
            agent: {family: interval._asdict() for family, interval in row.items()}
            for agent, row in tables.families.items()
        },
        "diagnostics": {
            label: {field: _plain(value) for field, value in row._asdict().items()}
            for label, row in tables.diagnostics.items()
        },
    }


def _plain(value: object) -> object:
    return value._asdict() if isinstance(value, Interval) else value


def _scorers(differences: Differences) -> dict[str, object]:
    return {
        "answers": differences.answers,
        "reproduced": differences.reproduced,
        "causes": {cause: found._asdict() for cause, found in differences.causes.items()},
    }


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"cannot write {str(path)!r}: {error.strerror}") from error
