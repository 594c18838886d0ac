"""The model stage of ``assay replay jointcorebench``: the same searches, a model answers."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, cast

import anyio
import msgspec
import typer
from rich.console import Console

from assay.cli.naming import nearest
from assay.cli.tables import FigureTable
from assay.errors import ConfigError
from assay.guards.protocols import ChatModel, LikelihoodModel
from assay.runtime.models.opening import open_model, parse_spec
from assay.runtime.paths import cache_path
from assay.runtime.settings import Settings
from assay.scenarios.jointcorebench import model_tables as tables
from assay.scenarios.jointcorebench.methods import EXACT
from assay.scenarios.jointcorebench.model_folder import STAGE_FILE, StageFolder
from assay.scenarios.jointcorebench.model_report import StageReport, report_on
from assay.scenarios.jointcorebench.model_rows import FORMAT, StageConfig, StageRecord
from assay.scenarios.jointcorebench.model_stage import Asked, run_model_stage
from assay.scenarios.jointcorebench.model_tasks import MODEL_SEED, model_tasks, subset
from assay.scenarios.jointcorebench.prompting import INTERFACES, REPRESENTATIONS
from assay.stores.cache_file import open_cache

METHODS = ("full_memory", "semantic_top_b", "singleton", "jointcore", "verify", "oracle")
"""What is compared unless methods are named."""

_ALL = "all"
_INTERRUPTED = 130


class Wanted(NamedTuple):
    """The options, as given."""

    model: str
    base_url: str | None
    subset: int
    representations: Sequence[str]
    interfaces: Sequence[str]
    methods: Sequence[str]
    seed: int | None
    out: Path | None


def model_stage(
    wanted: Wanted, *, watch: Callable[[int], None], total: Callable[[int], None], as_json: bool
) -> tuple[StageReport, str]:
    """Run the model stage, or go on with it.

    Args:
        wanted: The options.
        watch: Told how many more tasks are done.
        total: Told how many there are.
        as_json: Whether the command printed JSON; for the command line that repeats it.

    Returns:
        The report, and the command that makes it again.
    """
    plan = _plan(wanted)
    command = command_of(plan, wanted, as_json=as_json)
    try:
        return anyio.run(_run, plan, wanted, command, watch, total), command
    except KeyboardInterrupt:
        again = "; --out DIR would keep what is done"
        if wanted.out is not None:
            # Interrupted before the run was written down, there is nothing to go on with.
            kept = (wanted.out / STAGE_FILE).is_file()
            again = f"; go on with: {command}" if kept else ""
        typer.echo(f"assay: interrupted{again}", err=True)
        raise typer.Exit(_INTERRUPTED) from None


def show_stage(report: StageReport, command: str, *, as_json: bool) -> None:
    """Print the report: one JSON object, or tables."""
    if as_json:
        print(msgspec.json.encode(report).decode())
        return
    console = Console()
    for cell in report.cells:
        title, rows = tables.cell_title(cell), tables.method_cells(cell)
        console.print(FigureTable(title=title, head=tables.METHOD_HEAD, rows=rows))
    rows = tables.oracle_cells(report)
    console.print(FigureTable(title="How it decides", head=tables.CELL_HEAD, rows=rows))
    if report.tests:
        title, rows = "Against the singleton", tables.comparison_cells(report)
        console.print(FigureTable(title=title, head=tables.TEST_HEAD, rows=rows, names=3))
    if report.fallback:
        title, rows = "Archive fallback", tables.fallback_cells(report)
        console.print(FigureTable(title=title, head=tables.FALLBACK_HEAD, rows=rows, names=2))
    console.print(tables.summary_line(report), style="dim", highlight=False)
    console.print(command, style="dim", highlight=False, soft_wrap=True)


def command_of(plan: StageConfig, wanted: Wanted, *, as_json: bool) -> str:
    """The command that does this run again, every option written out."""
    words = ["assay", "replay", "jointcorebench", "--stage", "model", "--model", wanted.model]
    words += ["--base-url", wanted.base_url] if wanted.base_url else []
    words += ["--subset", str(plan.tasks)]
    for option, values in (
        ("--representation", plan.representations),
        ("--interface", plan.interfaces),
        ("--method", plan.methods),
    ):
        words += [word for value in values for word in (option, value)]
    words += ["--seed", str(plan.seed)]
    words += ["--out", str(wanted.out)] if wanted.out is not None else []
    return shlex.join(words + (["--json"] if as_json else []))


def _plan(wanted: Wanted) -> StageConfig:
    """Everything but the model's identity, which is known when it is open."""
    kind = parse_spec(wanted.model).kind
    fields = {
        "identity": "",
        "scoring": "first token" if kind == "openai" else "teacher forcing",
        "seed": MODEL_SEED if wanted.seed is None else wanted.seed,
        "tasks": wanted.subset,
        "representations": _chosen(wanted.representations, REPRESENTATIONS, "representation"),
        "interfaces": _chosen(wanted.interfaces, INTERFACES, "interface"),
        "methods": _chosen(wanted.methods or METHODS, tuple(EXACT), "method"),
    }
    return msgspec.convert(fields, StageConfig)


def _chosen(names: Sequence[str], known: Sequence[str], what: str) -> tuple[str, ...]:
    """The named ones, the primary one where none is named, all for ``all``."""
    for name in names:
        if name not in (*known, _ALL):
            raise nearest(what, name, [*known, _ALL])
    if _ALL in names:
        return tuple(known)
    return tuple(dict.fromkeys(names)) or (known[0],)


async def _run(
    plan: StageConfig,
    wanted: Wanted,
    command: str,
    watch: Callable[[int], None],
    total: Callable[[int], None],
) -> StageReport:
    tasks = subset(model_tasks(plan.seed), plan.tasks)
    total(len(tasks) * len(plan.cells))
    settings = Settings.load()
    async with (
        open_model(wanted.model, settings=settings, base_url=wanted.base_url) as model,
        open_cache(cache_path()) as cache,
    ):
        config = msgspec.structs.replace(plan, identity=model.identity)
        folder = StageFolder(wanted.out)
        await folder.begin(StageRecord(format=FORMAT, config=config, command=command))
        asked = Asked(model, _likelihood(model, config), cache)
        rows = await run_model_stage(
            tasks, config.cells, config.methods, asked, folder, advance=watch
        )
    return report_on(rows, config)


def _likelihood(model: ChatModel, config: StageConfig) -> LikelihoodModel | None:
    if config.scoring == "first token":
        return None
    # Every kind of model but an endpoint's tells likelihoods; the type of open_model cannot say so.
    return cast("LikelihoodModel", model)


def require_model(model: str | None) -> str:
    """The model named on the command line.

    Raises:
        ConfigError: If none is.
    """
    if model is None:
        raise ConfigError("--stage model asks a model; pass --model, for example --model local")
    return model
