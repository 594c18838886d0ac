"""``assay replay jointcorebench``: how few questions find what a decision needs."""

import os
import shlex
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.interrupts import interruptible
from assay.cli.naming import nearest
from assay.cli.options import JsonOption
from assay.errors import ConfigError

if TYPE_CHECKING:
    from assay.cli.replay.jointcorebench_model import Wanted
    from assay.scenarios.jointcorebench.conditions import Coordinates
    from assay.scenarios.jointcorebench.exact import ExactReport
    from assay.scenarios.jointcorebench.hard import Row

STAGES = ("exact", "model")
_ALL_TASKS = 432
_EXACT_SEED = 26082701


def jointcorebench(  # noqa: PLR0913, PLR0917  # one parameter per option
    stage: Annotated[
        str,
        typer.Option(help="exact: the rule itself answers. model: a model does, on 432 tasks."),
    ] = "exact",
    family: Annotated[
        list[str] | None,
        typer.Option(help="Only this family; repeat for several. Without it all nine."),
    ] = None,
    n: Annotated[
        list[int] | None,
        typer.Option("--n", help="Only conditions with so many records: 8, 16, 32 or 64."),
    ] = None,
    track: Annotated[
        list[str] | None,
        typer.Option(
            help="A harder track instead: scores, costs, rules, size, fresh, persistent, or all."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Model stage: local, local:PATH.gguf, openai:NAME, scripted:FILE, ..."),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(help="Model stage: an OpenAI-compatible endpoint.")
    ] = None,
    subset: Annotated[
        int,
        typer.Option(min=1, max=_ALL_TASKS, help="Model stage: so many evenly spaced tasks."),
    ] = _ALL_TASKS,
    representation: Annotated[
        list[str] | None,
        typer.Option(
            help="Model stage: how omitted records are shown: unknown (default), deletion, "
            "pending, counterfactual, or all; repeat for several."
        ),
    ] = None,
    interface: Annotated[
        list[str] | None,
        typer.Option(
            help="Model stage: labels to choose from: boolean (default), direct, ab, or all; "
            "repeat for several."
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help="Model stage: a method of the exact stage; repeat for several, or all."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Model stage: keep every task here; the same command goes on with it."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="Seed base; by default the published one, 26082701 or 26082901 (model)."
        ),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Processes to share the work; default: every core.")
    ] = None,
    bus: Annotated[
        str | None,
        typer.Option(help="nats://...: every `assay worker` of this bus shares the work instead."),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write the tables to this file.")
    ] = None,
    as_json: JsonOption = False,  # noqa: FBT002  # typer wants it
) -> None:
    """Replay JointCoreBench: find the records a decision needs with few questions.

    The exact stage runs all published methods and ours on its 6,912 conditions. The harder tracks
    degrade the scores, change costs and rules, add records or let the evaluator err. The model
    stage asks a model to judge printed conditions and scores its labels by their likelihood.
    """
    if stage not in STAGES:
        raise nearest("stage", stage, STAGES)
    exact_only = {
        "--family": family,
        "--n": n,
        "--track": track,
        "--processes": processes,
        "--bus": bus,
    }
    model_only = {
        "--model": model,
        "--base-url": base_url,
        "--representation": representation,
        "--interface": interface,
        "--method": method,
        "--out": out,
    }
    _refuse(model_only if stage == "exact" else exact_only, stage)
    if stage == "model":
        from assay.cli.replay.jointcorebench_model import Wanted, require_model  # noqa: PLC0415

        wanted = Wanted(
            require_model(model),
            base_url,
            subset,
            representation or (),
            interface or (),
            method or (),
            seed,
            out,
        )
        _model(wanted, markdown, as_json=as_json)
        return
    if bus is not None and (processes or track):
        raise ConfigError("--bus shares the whole exact stage: leave --processes and --track out")
    workers = processes or os.cpu_count() or 1
    base = _EXACT_SEED if seed is None else seed
    if track:
        _run_tracks(track, base, workers, markdown, as_json=as_json)
        return
    command = _command(family, n, track, base)
    if bus is None:
        report, text = _exact(_points(family, n), base, workers, command)
    else:
        report, text = _exact_over(bus, _points(family, n), base, command)
    _write(markdown, text)
    _show_exact(report, as_json=as_json)


def _refuse(options: Mapping[str, object], stage: str) -> None:
    for option, value in options.items():
        if value:
            raise ConfigError(f"{option} does not go with --stage {stage}")


def _model(wanted: "Wanted", markdown: Path | None, *, as_json: bool) -> None:
    from assay.cli.replay.jointcorebench_model import model_stage, show_stage  # noqa: PLC0415
    from assay.scenarios.jointcorebench.model_tables import stage_markdown  # noqa: PLC0415

    with _progress_bar("tasks") as (watch, total):
        report, command = model_stage(wanted, watch=watch, total=total, as_json=as_json)
    _write(markdown, stage_markdown(report, command))
    show_stage(report, command, as_json=as_json)


def _run_tracks(
    track: Sequence[str], seed: int, workers: int, markdown: Path | None, *, as_json: bool
) -> None:
    names = _track_names(track)
    rows, text = _tracks(names, seed, workers, _command(None, None, track, seed))
    _write(markdown, text)
    _show_tracks(rows, seed, as_json=as_json)


def _points(families: Sequence[str] | None, sizes: Sequence[int] | None) -> list["Coordinates"]:
    from assay.scenarios.jointcorebench.conditions import SIZES, coordinates  # noqa: PLC0415
    from assay.scenarios.jointcorebench.rules import FAMILIES  # noqa: PLC0415  # only when it runs

    for name in families or ():
        if name not in FAMILIES:
            raise nearest("family", name, FAMILIES)
    for size in sizes or ():
        if size not in SIZES:
            raise nearest("number of records", str(size), map(str, SIZES))
    return [
        point
        for point in coordinates()
        if point.family in (families or FAMILIES) and point.n in (sizes or SIZES)
    ]


def _track_names(names: Sequence[str]) -> list[str]:
    from assay.scenarios.jointcorebench.tracks import tracks  # noqa: PLC0415  # only when it runs

    known = [*tracks(), "all"]
    for name in names:
        if name not in known:
            raise nearest("track", name, known)
    return [name for name in tracks() if name in names or "all" in names]


def _exact(
    points: Sequence["Coordinates"], seed: int, workers: int, command: str
) -> tuple["ExactReport", str]:
    from assay.scenarios.jointcorebench.exact import run_exact  # noqa: PLC0415
    from assay.scenarios.jointcorebench.tables import exact_markdown  # noqa: PLC0415

    with interruptible(), _progress("conditions", len(points)) as advance:
        report = run_exact(points, base=seed, processes=workers, advance=advance)
    return report, exact_markdown(report, command)


def _exact_over(
    bus: str, points: Sequence["Coordinates"], seed: int, command: str
) -> tuple["ExactReport", str]:
    import anyio  # noqa: PLC0415  # only when it runs

    from assay.runtime.distributed.hub import open_hub  # noqa: PLC0415
    from assay.runtime.equipment import new_name  # noqa: PLC0415
    from assay.scenarios.jointcorebench.elsewhere import exact_over  # noqa: PLC0415
    from assay.scenarios.jointcorebench.tables import exact_markdown  # noqa: PLC0415

    async def run() -> "ExactReport":
        async with open_hub(bus) as hub:
            return await exact_over(hub.jobs, points, base=seed, new_id=new_name, advance=advance)

    with interruptible(), _progress("conditions", len(points)) as advance:
        report = anyio.run(run)
    return report, exact_markdown(report, command)


def _tracks(names: Sequence[str], seed: int, workers: int, command: str) -> tuple[list["Row"], str]:
    from assay.scenarios.jointcorebench.hard import points_of, run_tracks  # noqa: PLC0415
    from assay.scenarios.jointcorebench.peer import require_picire  # noqa: PLC0415
    from assay.scenarios.jointcorebench.tables import tracks_markdown  # noqa: PLC0415

    require_picire()
    with interruptible(), _progress("conditions", points_of(names)) as advance:
        rows = run_tracks(names, base=seed, processes=workers, advance=advance)
    return rows, tracks_markdown(rows, command, seed=seed)


def _show_exact(report: "ExactReport", *, as_json: bool) -> None:
    import msgspec  # noqa: PLC0415

    from assay.scenarios.jointcorebench import tables  # noqa: PLC0415

    if as_json:
        print(msgspec.json.encode(report).decode())
        return
    _print(
        f"JointCoreBench, exact stage: {report.conditions:,} conditions, seed {report.seed}",
        tables.exact_head(report),
        tables.exact_cells(report),
    )
    _print("Rounds by questions in flight (spent)", tables.ROUNDS_HEAD, tables.round_cells(report))


def _show_tracks(rows: Sequence["Row"], seed: int, *, as_json: bool) -> None:
    import msgspec  # noqa: PLC0415

    from assay.scenarios.jointcorebench import tables  # noqa: PLC0415

    if as_json:
        body = {"suite": "jointcorebench", "stage": "exact", "seed": seed, "tracks": rows}
        print(msgspec.json.encode(body).decode())
        return
    title = f"JointCoreBench, harder tracks, seed {seed}"
    _print(title, tables.TRACK_HEAD, tables.track_cells(rows), names=2)


def _print(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, names: int = 1
) -> None:
    from rich.console import Console  # noqa: PLC0415

    from assay.cli.tables import FigureTable  # noqa: PLC0415

    Console().print(FigureTable(title=title, head=head, rows=rows, names=names))


@contextmanager
def _progress(unit: str, total: int) -> Generator[Callable[[int], None]]:
    with _progress_bar(unit) as (advance, expect):
        expect(total)
        yield advance


@contextmanager
def _progress_bar(
    unit: str,
) -> Generator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """A bar on stderr, as what advances it and what tells it the total."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn  # noqa: PLC0415

    columns = (BarColumn(), MofNCompleteColumn(), unit, TimeRemainingColumn())
    console = Console(stderr=True)
    # Written into a file, the bar would leave an empty line before a message.
    shown = sys.stderr.isatty()
    with Progress(*columns, console=console, transient=True, disable=not shown) as progress:
        task = progress.add_task(unit, total=None)
        yield (
            lambda count: progress.update(task, advance=count),
            lambda total: progress.update(task, total=total),
        )


def _command(
    family: Sequence[str] | None, n: Sequence[int] | None, track: Sequence[str] | None, seed: int
) -> str:
    parts = ["assay", "replay", "jointcorebench", "--seed", str(seed)]
    parts += [part for name in family or () for part in ("--family", name)]
    parts += [part for size in n or () for part in ("--n", str(size))]
    parts += [part for name in track or () for part in ("--track", name)]
    return shlex.join(parts)


def _write(path: Path | None, text: str) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
