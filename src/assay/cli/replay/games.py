"""``assay replay games``: synthetic clearing games, ours beside the published and outside methods."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar, get_args

import typer

from assay.cli.interrupts import interruptible
from assay.cli.naming import nearest
from assay.cli.options import JsonOption, checked_folder
from assay.errors import ConfigError, ScenarioError

if TYPE_CHECKING:
    from assay.scenarios.games_runner import Plan, Played

T = TypeVar("T", bound=str)


def games(  # noqa: PLR0913, PLR0917  # one parameter per option
    size: Annotated[int, typer.Option(help="Games of a cohort; 745 is the published mix.")] = 745,
    seed: Annotated[int, typer.Option(help="Of the games and of the methods' choices.")] = 7,
    k: Annotated[
        list[int] | None, typer.Option("--k", help="Candidates a game; repeat for several sizes.")
    ] = None,
    answers: Annotated[
        str, typer.Option(help="deterministic, gaussian or bernoulli.")
    ] = "deterministic",
    sd: Annotated[float, typer.Option(help="Of gaussian answers, in units of utility.")] = 0.1,
    mix: Annotated[
        str,
        typer.Option(help="paper, r3, r4, mixed, vote, weak, ungated or clean."),
    ] = "paper",
    method: Annotated[
        list[str] | None,
        typer.Option(help="A method to run; repeat for several. Without it all of them run."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="Most evaluations a game; the best verified by then counts.")
    ] = None,
    concurrency: Annotated[
        int, typer.Option(help="Questions at once, for the column of rounds: 1, 4, 8 or 16.")
    ] = 8,
    workers: Annotated[int | None, typer.Option(help="Processes; without it one per core.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for games.json, games.md and games.html (risk frontier)."),
    ] = None,
    as_json: JsonOption = False,  # noqa: FBT002  # typer wants it
) -> None:
    """Play synthetic clearing games and print what each method asks and recovers."""
    from assay.guards.clearing.answers import AnswerKind  # noqa: PLC0415  # keeps --help fast
    from assay.scenarios.games import Mix  # noqa: PLC0415
    from assay.scenarios.games_runner import Plan  # noqa: PLC0415
    from assay.scenarios.games_scoring import CONCURRENCIES  # noqa: PLC0415

    if concurrency not in CONCURRENCIES:
        raise ConfigError(f"--concurrency must be one of {CONCURRENCIES}, got {concurrency!r}")
    _checked(size=size, k=min(k or [1]), seed=seed, sd=sd, limit=limit, workers=workers)
    checked_folder(out)
    kind = _one_of("answers", answers, get_args(AnswerKind))
    mixed = _one_of("mix", mix, get_args(Mix))
    plans = [
        Plan(size=size, k=n, seed=seed, answers=kind, sd=sd, mix=mixed, limit=limit)  # type: ignore[arg-type]  # checked above
        for n in k or [5]
    ]
    with interruptible():
        names, missing = _methods(method)
        played = _play(plans, names, workers or os.cpu_count() or 1)
    _show(played, missing, concurrency, out=out, as_json=as_json)


def _methods(asked: Sequence[str] | None) -> tuple[list[str], str]:
    """Methods to run, and why the peers are left out (empty if they are not)."""
    from assay.scenarios.games_methods import own_methods  # noqa: PLC0415
    from assay.scenarios.games_peers import ONLY_WHEN_NAMED  # noqa: PLC0415
    from assay.scenarios.games_runner import all_methods, peers_missing  # noqa: PLC0415

    known = all_methods()
    for name in asked or []:
        if name not in known:
            raise nearest("method", name, known)
    if asked:
        return list(dict.fromkeys(asked)), ""
    missing = peers_missing()
    chosen = own_methods() if missing else known
    return [name for name in chosen if name not in ONLY_WHEN_NAMED], missing


def _checked(*, sd: float, **counts: int | None) -> None:
    for name, least in (("size", 1), ("k", 1), ("seed", 0), ("limit", 0), ("workers", 1)):
        value = counts[name]
        if value is not None and value < least:
            raise ConfigError(f"--{name} must be at least {least}, got {value!r}")
    if not 0 < sd < float("inf"):
        raise ConfigError(f"--sd must be positive and finite, got {sd!r}")


def _one_of(kind: str, given: str, known: Sequence[str]) -> str:
    if given not in known:
        raise nearest(kind, given, known)
    return given


def _play(plans: "Sequence[Plan]", names: Sequence[str], workers: int) -> "list[Played]":
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    from assay.scenarios.games_runner import planned_games, play  # noqa: PLC0415

    played: list[Played] = []
    # Written into a file, the bar would leave an empty line before a message.
    shown = sys.stderr.isatty()
    with Progress(console=Console(stderr=True), transient=True, disable=not shown) as progress:
        for plan in plans:
            task = progress.add_task(f"K = {plan.k}", total=planned_games(plan, names))

            def advance(count: int, task: object = task) -> None:
                progress.advance(task, count)  # type: ignore[arg-type]  # the id add_task gave

            played.append(play(plan, names, workers=workers, on_progress=advance))
    return played


def _show(
    played: "Sequence[Played]", missing: str, concurrency: int, *, out: Path | None, as_json: bool
) -> None:
    import json  # noqa: PLC0415

    from assay.scenarios.games_report import figures, markdown  # noqa: PLC0415

    plan = played[0].plan
    by_k = {str(one.plan.k): figures(one, concurrency=concurrency) for one in played}
    result: dict[str, object] = {
        "seed": plan.seed,
        "size": plan.size,
        "mix": plan.mix,
        "answers": plan.answers,
        "concurrency": concurrency,
        **by_k[str(plan.k)],
        "by_k": by_k,
    }
    if missing:
        result["peers_missing"] = missing
    text = json.dumps(result, indent=1)
    tables = "\n\n".join(
        f"K = {one.plan.k}, {plan.answers} answers, {plan.mix} mix, seed {plan.seed}, "
        f"{plan.size} games\n\n{markdown(one, concurrency=concurrency)}"
        for one in played
    )
    if out is not None:
        _keep(played, out, text, tables, concurrency)
    if as_json:
        typer.echo(text)
        return
    _print_tables(played, concurrency)
    if missing:
        typer.echo(f"peers left out: {missing}", err=True)


def _keep(played: "Sequence[Played]", out: Path, text: str, tables: str, concurrency: int) -> None:
    from assay.scenarios.games_report import page  # noqa: PLC0415
    from assay.scenarios.report import write  # noqa: PLC0415

    command = shlex.join(["assay", *sys.argv[1:]])
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "games.json").write_text(text + "\n", encoding="utf-8")
        (out / "games.md").write_text(tables + "\n", encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"cannot write to {str(out)!r}: {error.strerror}") from error
    write(page(played, command=command, concurrency=concurrency), out / "games.html")


def _print_tables(played: "Sequence[Played]", concurrency: int) -> None:
    from rich.console import Console  # noqa: PLC0415

    from assay.cli.tables import FigureTable  # noqa: PLC0415
    from assay.scenarios.games_report import SHOWN  # noqa: PLC0415
    from assay.scenarios.games_scoring import summarise  # noqa: PLC0415

    console = Console()
    for one in played:
        plan, rows = one.plan, list[list[str]]()
        for name, scores in one.scores.items():
            summary = summarise(scores, seed=plan.seed, concurrency=concurrency)
            rows.append([name, *(f"{summary[key].mean:.3f}" for key, _, _ in SHOWN)])
        title = (
            f"{plan.size} games, K = {plan.k}, {plan.mix} mix, {plan.answers} answers, "
            f"seed {plan.seed}"
        )
        head = ["method", *(column for _, column, _ in SHOWN)]
        console.print(FigureTable(title=title, head=head, rows=rows))
        for name, why in one.not_run.items():
            console.print(f"{name} not run: {why}", highlight=False, markup=False)
