"""Reads the folders of runs for ``assay report`` and writes or prints what they say."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import anyio
from rich.console import Console

from assay.cli.replay.running import load
from assay.cli.tables import FigureTable
from assay.errors import ScenarioError
from assay.scenarios.folder import REPORT_FILE, RUN_FILE, RunFolder
from assay.scenarios.report import Report, write
from assay.scenarios.report_compare import (
    Difference,
    compare,
    comparison_report,
    comparison_summary,
)
from assay.scenarios.report_runs import (
    Comparable,
    comparable_run,
    comparable_simulation,
    decided_by_all,
    unfinished_run,
    unfinished_simulation,
)
from assay.scenarios.results import method_results
from assay.scenarios.run_report import run_report
from assay.scenarios.runs import Row, RunRecord
from assay.scenarios.schema import Scenario
from assay.scenarios.simulation.page import simulation_report
from assay.scenarios.simulation.running import RECORD_FILE, SimulationFolder

_OTHERS = {
    "faults.json": "locomo-faults",
    "games.json": "games",
    "model_stage.json": "jointcorebench --stage model",
}
"""Runs that are not compared by this command, by a file that tells them."""


class _Run(NamedTuple):
    """A benchmark run as it lies in its folder."""

    record: RunRecord
    scenarios: Sequence[Scenario]
    rows: Sequence[Row]


def run_compare(a: Path, b: Path, *, out: Path | None, as_json: bool) -> None:
    """Compare and print; write the page where it is asked for.

    Raises:
        ScenarioError: If a folder holds no run, or the two cannot be compared.
    """
    first, second = _comparable(a), _comparable(b)
    rows = compare(first, second)
    command = shlex.join(["assay", "report", "compare", str(a), str(b)])
    if out is not None:
        write(comparison_report(first, second, rows, command=command), out)
    if as_json:
        print(json.dumps(comparison_summary(first, second, rows)))
        return
    console = Console(highlight=False)
    for name, run in (("A", first), ("B", second)):
        console.print(f"{name}: {dict(run.facts)['Command']}", soft_wrap=True)
        if run.unfinished:
            console.print(f"   {run.unfinished}", style="yellow", soft_wrap=True)
    console.print(_table(rows))
    console.print(
        f"paired; intervals are 95 % and resample {first.cluster}s; p by sign-flip and, for "
        "yes-or-no measures, McNemar's test, adjusted by Holm",
        style="dim",
    )
    if out is not None:
        console.print(f"report: {out}", soft_wrap=True)


def run_show(folder: Path, *, out: Path | None) -> None:
    """Write the page of a run, finished or not, and say where it is.

    Raises:
        ScenarioError: If the folder holds no run, or nothing to show yet.
    """
    page, warning = _page(folder)
    path = out or folder / REPORT_FILE
    write(page, path)
    console = Console(highlight=False)
    if warning:
        console.print(warning, style="yellow")
    console.print(f"report: {path}", soft_wrap=True)


def _page(folder: Path) -> tuple[Report, str]:
    if _is_simulation(folder):
        simulation = SimulationFolder(folder)
        record, lived = simulation.record(), simulation.lived()
        warning = unfinished_simulation(record, lived)
        if not lived:
            raise _nothing(folder, f"'{record.command} --out {folder}'")
        return simulation_report(record, lived, warning=warning), warning
    run = _run(folder)
    shown = decided_by_all(run.record, run.scenarios, run.rows)
    if not shown:
        raise _nothing(folder, f"'assay replay --resume {folder}'")
    warning = unfinished_run(run.record, run.scenarios, run.rows)
    results = method_results(shown, run.rows, run.record.config)
    return run_report(run.record, shown, results, warning=warning), warning


def _comparable(folder: Path) -> Comparable:
    if _is_simulation(folder):
        simulation = SimulationFolder(folder)
        return comparable_simulation(folder, simulation.record(), simulation.lived())
    run = _run(folder)
    return comparable_run(folder, run.record, run.scenarios, run.rows)


def _is_simulation(folder: Path) -> bool:
    """Whether the folder holds a simulation, not a benchmark run.

    Raises:
        ScenarioError: If it holds neither.
    """
    if (folder / RECORD_FILE).is_file():
        return True
    if (folder / RUN_FILE).is_file():
        return False
    for name, suite in _OTHERS.items():
        if (folder / name).is_file():
            raise ScenarioError(
                f"{str(folder)!r} holds a run of {suite}, which has a report of its own; expected "
                "a run of causal-locomo or families, or a simulation"
            )
    raise ScenarioError(
        f"no run in {str(folder)!r}: expected {RUN_FILE} or {RECORD_FILE}, which "
        "'assay replay ... --out DIR' and 'assay simulate ... --out DIR' make"
    )


def _run(folder: Path) -> _Run:
    files = RunFolder(folder)

    async def read() -> tuple[RunRecord, list[Row]]:
        return await files.record(), await files.rows()

    record, rows = anyio.run(read)
    return _Run(record, load(record.config), rows)


def _nothing(folder: Path, command: str) -> ScenarioError:
    return ScenarioError(
        f"nothing to show in {str(folder)!r} yet: expected results that every method has; go on "
        f"with {command}"
    )


def _table(rows: Sequence[Difference]) -> FigureTable:
    head = ["method", "measure", "pairs", "A", "B", "A minus B", "p", "only A/B", "p, McNemar"]
    return FigureTable(title="Differences", head=head, rows=[_cells(row) for row in rows], names=2)


def _cells(row: Difference) -> list[str]:
    digits = 3 if row.only_first is not None or row.measure == "useful_f1" else 1
    mean, low, high = row.difference
    bounds = "" if low is None or high is None else f"\n{low:.{digits}f}..{high:.{digits}f}"
    return [
        row.name,
        row.label,
        f"{row.n:,}",
        *(f"{mean:,.{digits}f}" for mean in row.means),
        f"{mean:+.{digits}f}{bounds}",
        f"{row.p:.4f}",
        "-" if row.only_first is None else f"{row.only_first} / {row.only_second}",
        "-" if row.p_mcnemar is None else f"{row.p_mcnemar:.4f}",
    ]
