"""``assay replay jointcorebench``: how few questions find what a decision needs."""

import os
import shlex
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.naming import nearest

if TYPE_CHECKING:
    from assay.scenarios.jointcorebench.conditions import Coordinates
    from assay.scenarios.jointcorebench.exact import ExactReport
    from assay.scenarios.jointcorebench.hard import Row

STAGES = ("exact",)


def jointcorebench(  # noqa: PLR0913, PLR0917  # one parameter per option
    stage: Annotated[
        str, typer.Option(help="exact: the rule itself answers, no model is asked.")
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
    seed: Annotated[int, typer.Option(min=0, help="Seed base of the conditions.")] = 26082701,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Processes to share the work; default: every core.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write the tables to this file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,  # noqa: FBT002  # typer wants it
) -> None:
    """Replay JointCoreBench: find the records a decision needs with few questions.

    The exact stage runs all published methods and ours on its 6,912 conditions. The harder tracks
    degrade the scores, change costs and rules, add records or let the evaluator err.
    """
    if stage not in STAGES:
        raise nearest("stage", stage, STAGES)
    workers = processes or os.cpu_count() or 1
    command = _command(family, n, track, seed)
    if track:
        rows, text = _tracks(_track_names(track), seed, workers, command)
        _write(markdown, text)
        _show_tracks(rows, seed, as_json=as_json)
        return
    report, text = _exact(_points(family, n), seed, workers, command)
    _write(markdown, text)
    _show_exact(report, as_json=as_json)


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

    with _progress("conditions", len(points)) as advance:
        report = run_exact(points, base=seed, processes=workers, advance=advance)
    return report, exact_markdown(report, command)


def _tracks(names: Sequence[str], seed: int, workers: int, command: str) -> tuple[list["Row"], str]:
    from assay.scenarios.jointcorebench.hard import points_of, run_tracks  # noqa: PLC0415
    from assay.scenarios.jointcorebench.peer import require_picire  # noqa: PLC0415
    from assay.scenarios.jointcorebench.tables import tracks_markdown  # noqa: PLC0415

    require_picire()
    with _progress("conditions", points_of(names)) as advance:
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
    _print(
        f"JointCoreBench, harder tracks, seed {seed}", tables.TRACK_HEAD, tables.track_cells(rows)
    )


def _print(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(title=title)
    for at, name in enumerate(head):
        table.add_column(name, justify="left" if at == 0 else "right")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


@contextmanager
def _progress(unit: str, total: int) -> Generator[Callable[[int], None]]:
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn  # noqa: PLC0415

    columns = (BarColumn(), MofNCompleteColumn(), unit, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(unit, total=total)
        yield lambda count: progress.update(task, advance=count)


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
