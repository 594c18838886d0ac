"""Runs a simulation for the command line: progress, figures, and what is kept after Ctrl-C."""

import hashlib
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from assay.cli.tables import FigureTable
from assay.errors import AssayError
from assay.runtime.clock import SystemClock
from assay.runtime.models.opening import open_model
from assay.runtime.settings import Settings
from assay.scenarios.folder import REPORT_FILE, write_whole
from assay.scenarios.report import write
from assay.scenarios.report_runs import unfinished_simulation
from assay.scenarios.simulation.figures import GOALS, MEASURES, AgentFigures, figures, summary
from assay.scenarios.simulation.living import SCRIPT
from assay.scenarios.simulation.loading import read_simulation
from assay.scenarios.simulation.page import simulation_report
from assay.scenarios.simulation.records import FORMAT, Lived, SimulationConfig, SimulationRecord
from assay.scenarios.simulation.running import (
    LIVED_FILE,
    RESULTS_FILE,
    SimulationFolder,
    simulate,
)
from assay.scenarios.simulation.running import Progress as Moved
from assay.stores.embeddings import open_embedder

_INTERRUPTED = 130
_GUARD_SECONDS = 300.0
_TURN_SECONDS = 600.0
_MEGABYTE = 1_000_000


class Choice(NamedTuple):
    """What the user chose on the command line."""

    file: str
    out: Path | None
    seed: int
    sessions: int | None
    workers: int | None
    model: str | None
    user_model: str | None
    base_url: str | None
    embedder: str | None
    as_json: bool


def run(choice: Choice) -> None:
    """Simulate, write results and report, print the figures.

    Raises:
        ScenarioError: If the file is malformed, the folder holds something else, or a turn fails.
        typer.Exit: With exit code 130 after an interrupt, having said what is kept.
    """
    config = _config(choice)
    record = anyio.run(_record, config, _command(choice, config))
    keeping = nullcontext(str(choice.out)) if choice.out else tempfile.TemporaryDirectory()
    with keeping as path:
        folder = SimulationFolder(Path(path))
        folder.begin(record)
        try:
            _live(choice, folder, record)
        except KeyboardInterrupt:
            typer.echo(f"assay: interrupted; {_kept(choice, folder, config)}", err=True)
            raise typer.Exit(_INTERRUPTED) from None


def _live(choice: Choice, folder: SimulationFolder, record: SimulationRecord) -> None:
    clock = SystemClock()
    started = clock.monotonic()
    workers = choice.workers or _workers(record.config)
    with _progress() as bar:
        task = bar.add_task("sessions", total=None)

        def watch(moved: Moved) -> None:
            bar.update(task, description=moved.what, completed=moved.done, total=moved.total)

        try:
            lived, peak = simulate(folder, record, workers=workers, watch=watch)
        except AssayError:
            _show_what_is_there(choice, folder, record)
            raise
    seconds = clock.monotonic() - started
    result = summary(record, lived)
    write_whole(folder.path / RESULTS_FILE, json.dumps(result, indent=1).encode() + b"\n")
    if choice.out is not None:
        write(simulation_report(record, lived), folder.path / REPORT_FILE)
    if choice.as_json:
        print(json.dumps(result))
    else:
        _show(record, lived, choice.out)
    noun = "process" if workers == 1 else "processes"
    typer.echo(
        f"{seconds:.1f} s with {workers} {noun}, at most {peak / _MEGABYTE:,.0f} MB together",
        err=True,
    )


def _show_what_is_there(choice: Choice, folder: SimulationFolder, record: SimulationRecord) -> None:
    """Leave a page of what a failed simulation has come to, where anything is kept."""
    lived = folder.lived()
    if choice.out is not None and lived:
        warning = unfinished_simulation(record, lived)
        write(simulation_report(record, lived, warning=warning), folder.path / REPORT_FILE)


def _config(choice: Choice) -> SimulationConfig:
    simulation, data = read_simulation(choice.file)
    chosen = {
        "model": choice.model,
        "user_model": choice.user_model,
        "embedder": choice.embedder,
    }
    given = {name: value for name, value in chosen.items() if value is not None}
    simulation = msgspec.structs.replace(simulation, **given)
    settings, replace = Settings.load(), msgspec.structs.replace
    # A local model on two cores needs longer than the deadlines of a live conversation.
    settings = replace(
        settings,
        guard=replace(settings.guard, seconds=max(_GUARD_SECONDS, settings.guard.seconds)),
        turn=replace(settings.turn, seconds=max(_TURN_SECONDS, settings.turn.seconds)),
    )
    return SimulationConfig(
        name=Path(choice.file).stem,
        sha256=hashlib.sha256(data).hexdigest(),
        simulation=simulation,
        seed=choice.seed,
        sessions=choice.sessions or simulation.users * simulation.sessions,
        base_url=choice.base_url,
        settings=settings,
    )


async def _record(config: SimulationConfig, command: str) -> SimulationRecord:
    """Opens what the simulation needs once, so that what is missing is said at once."""
    embedder = open_embedder(config.simulation.embedder)
    names = {config.simulation.model, config.simulation.user_model} - {SCRIPT}
    identities: dict[str, str] = {}
    for name in sorted(names):
        async with open_model(name, settings=config.settings, base_url=config.base_url) as model:
            identities[name] = model.identity
    return SimulationRecord(
        format=FORMAT,
        config=config,
        identity=identities[config.simulation.model],
        embedder=embedder.name,
        command=command,
    )


def _command(choice: Choice, config: SimulationConfig) -> str:
    """The command that gives the same figures; where they are kept and how fast is left out."""
    words = ["assay", "simulate", choice.file, "--seed", str(config.seed)]
    words += ["--sessions", str(config.sessions), "--model", config.simulation.model]
    words += ["--user-model", config.simulation.user_model]
    words += ["--base-url", config.base_url] if config.base_url else []
    return shlex.join([*words, "--embedder", config.simulation.embedder])


def _workers(config: SimulationConfig) -> int:
    """One process per core; a model of weights is held once, an endpoint is asked by one."""
    names = {config.simulation.model, config.simulation.user_model} - {SCRIPT}
    scripted = all(name.partition(":")[0] == "scripted" for name in names)
    return (os.cpu_count() or 1) if scripted else 1


def _kept(choice: Choice, folder: SimulationFolder, config: SimulationConfig) -> str:
    if choice.out is None:
        return "nothing is kept; with --out DIR the same command would go on where it stopped"
    lived = folder.lived()
    every = config.users * len(config.simulation.agent)
    return (
        f"{len(lived)} of {every} runs of a user with an agent are kept in "
        f"{str(folder.path / LIVED_FILE)!r}; the same command goes on, and "
        f"'assay report show {folder.path}' shows what is there"
    )


def _show(record: SimulationRecord, lived: Sequence[Lived], out: Path | None) -> None:
    config, console = record.config, Console(highlight=False)
    console.print(_table(figures(lived, config)))
    turns = config.sessions * config.simulation.turns
    console.print(
        f"{config.users} users, {config.sessions:,} sessions, {turns:,} turns per agent; intervals "
        f"are 95 % and resample users; seed {config.seed}, model {record.identity}, embedder "
        f"{record.embedder}",
        style="dim",
    )
    console.print(record.command, style="dim", soft_wrap=True)
    if out is not None:
        console.print(f"report: {out / REPORT_FILE}", soft_wrap=True)


def _table(found: Mapping[str, AgentFigures]) -> FigureTable:
    return FigureTable(
        title="The same days, by agent",
        head=["agent", *(measure.label for measure in MEASURES.values()), "goals reached"],
        rows=[
            [name, *(_figure(agent, measure) for measure in (*MEASURES, GOALS))]
            for name, agent in found.items()
        ],
    )


def _figure(agent: AgentFigures, name: str) -> str:
    mean, low, high = agent.measures[name]
    if mean is None:
        return "-"
    digits = 1 if name in MEASURES and not MEASURES[name].is_share else 3
    bounds = "" if low is None or high is None else f"\n{low:.{digits}f}..{high:.{digits}f}"
    return f"{mean:.{digits}f}{bounds}"


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
