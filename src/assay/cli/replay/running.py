"""What benchmark commands share: opening what a run needs, showing progress, printing the result."""

import json
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from assay.cli.tables import FigureTable
from assay.errors import AssayError, ScenarioError
from assay.guards.methods import guard_named
from assay.guards.perturb import PERTURBATIONS
from assay.guards.protocols import ChatModel, Guard
from assay.runtime.clock import SystemClock
from assay.runtime.models.opening import is_endpoint, open_embedding, open_model
from assay.runtime.paths import cache_path
from assay.scenarios import runner
from assay.scenarios.causal_locomo import SUITE, load_blind
from assay.scenarios.families import SUITE as FAMILIES
from assay.scenarios.families import generate
from assay.scenarios.families_data import families_digest
from assay.scenarios.families_metrics import abstention, by_family
from assay.scenarios.folder import REPORT_FILE, RunFolder, digest
from assay.scenarios.metrics import METRICS
from assay.scenarios.oracle import run_published
from assay.scenarios.recorded_costs import PUBLISHED_COSTS
from assay.scenarios.report import write
from assay.scenarios.report_runs import decided_by_all, unfinished_run
from assay.scenarios.results import COSTS, MethodResult, method_results, summary
from assay.scenarios.run_report import run_report
from assay.scenarios.runs import RunConfig, RunRecord
from assay.scenarios.schema import Scenario
from assay.stores.cache_file import open_cache
from assay.stores.memory import InMemoryCache
from assay.stores.protocols import Cache

HEADINGS = {
    "useful_f1": "F1",
    "gold_recall": "recall",
    "useful_precision": "precision",
    "bad_rejection": "bad rejected",
    "poison_adoption": "poison",
    "poison_adoption_poisoned": "of poisoned",
    "avg_memories": "memories",
}
"""Headings short enough for a terminal of 80 columns; JSON has the full names."""


@asynccontextmanager
async def open_equipment(config: RunConfig) -> AsyncGenerator[runner.Equipment]:
    """Open model, embedder and evaluation cache; closed when the block ends."""
    async with AsyncExitStack() as stack:
        settings, base_url = config.settings, config.base_url
        at_model = is_endpoint(config.model) or not is_endpoint(config.embedder)
        embedder = await stack.enter_async_context(
            open_embedding(config.embedder, settings=settings, base_url=base_url)
        )
        model = await stack.enter_async_context(
            open_model(config.model, settings=settings, base_url=base_url if at_model else None)
        )

        def guard(name: str) -> Guard:
            return guard_named(
                name,
                on_undecided=config.on_undecided,
                seed=config.seed,
                embedder=embedder,
                perturbations=config.perturbations,
                tolerance=config.tolerance,
            )

        cache = await stack.enter_async_context(_answers(config.model))
        yield runner.Equipment(
            model=model,
            likelihood=None,
            embedder=embedder,
            cache=_recorded(cache, config.cassette, model),
            guard=guard,
            renderings=PERTURBATIONS,
            clock=SystemClock(),
        )


def load(config: RunConfig) -> list[Scenario]:
    """The scenarios of a run, from the very data it began with.

    Raises:
        ScenarioError: If the data is missing, malformed or changed, or a bank is smaller than K.
    """
    scenarios = _generated(config) if config.suite == FAMILIES else _read(config)
    for scenario in scenarios:
        size = len(scenario.example.records)
        if 0 < size < config.k:
            raise ScenarioError(
                f"K is {config.k}, but the bank of {scenario.example.id!r} holds {size} records; "
                f"pass --k {size} or less"
            )
    return scenarios


def _read(config: RunConfig) -> list[Scenario]:
    path = Path(config.data)
    found = digest(path)
    if found != config.data_sha256:
        raise ScenarioError(
            f"{config.data!r} has changed since the run began (sha256 {found[:12]}..., expected "
            f"{config.data_sha256[:12]}...); bring the old file back, or begin a new run"
        )
    return load_blind(path, seed=config.seed, limit=config.limit)


def _generated(config: RunConfig) -> list[Scenario]:
    size = config.limit or 0
    if families_digest(size, seed=config.seed) != config.data_sha256:
        raise ScenarioError(
            "the generator of the families has changed since the run began; begin a new run"
        )
    return generate(size, seed=config.seed)


async def execute(
    folder: RunFolder, record: RunRecord, scenarios: Sequence[Scenario], kit: runner.Equipment
) -> Mapping[str, MethodResult]:
    """Take the decisions that are missing, write the report, give the figures."""
    config = record.config
    with _progress() as bar:
        task = bar.add_task("deciding", total=len(scenarios) * len(config.methods))

        def watch(progress: runner.Progress) -> None:
            what = f"{progress.row.method} {progress.row.example}" if progress.row else "reading"
            bar.update(task, completed=progress.done, total=progress.total, description=what)

        examples = [scenario.example for scenario in scenarios]
        run = run_published if config.protocol == "published" else runner.run
        try:
            rows = await run(folder, examples, config, kit, watch=watch)
        except AssayError:
            await _show_what_is_there(folder, record, scenarios)
            raise
    results = method_results(scenarios, rows, config)
    write(run_report(record, scenarios, results), folder.path / REPORT_FILE)
    return results


async def _show_what_is_there(
    folder: RunFolder, record: RunRecord, scenarios: Sequence[Scenario]
) -> None:
    """Leave a page of what a failed run has come to; nothing where no example is decided yet."""
    rows = await folder.rows()
    shown = decided_by_all(record, scenarios, rows)
    if shown:
        results = method_results(shown, rows, record.config)
        warning = unfinished_run(record, scenarios, rows)
        write(run_report(record, shown, results, warning=warning), folder.path / REPORT_FILE)


def show(
    record: RunRecord,
    scenarios: Sequence[Scenario],
    results: Mapping[str, MethodResult],
    *,
    kept_in: Path | None,
) -> None:
    """Print the result: one JSON object, or a table and where the rest is."""
    if record.as_json:
        print(json.dumps(_summary(scenarios, results, record.config)))
        return
    console = Console()
    console.print(_table("What was selected", METRICS, results))
    console.print(_costs(record.config, results))
    if record.config.suite == FAMILIES:
        console.print(_families(scenarios, results))
    console.print(
        f"{len(scenarios)} examples, K = {record.config.k}, seed {record.config.seed}, "
        f"model {record.identity}, embedder {record.embedder}",
        style="dim",
        highlight=False,
    )
    console.print(record.command, style="dim", highlight=False, soft_wrap=True)
    if kept_in is not None:
        console.print(f"report: {kept_in / REPORT_FILE}", highlight=False, soft_wrap=True)


def _summary(
    scenarios: Sequence[Scenario], results: Mapping[str, MethodResult], config: RunConfig
) -> dict[str, object]:
    found = summary(scenarios, results, config)
    if config.suite == FAMILIES:
        found["by_family"] = by_family(scenarios, results)
        found["abstention"] = abstention(scenarios, results)
    return found


def _costs(config: RunConfig, results: Mapping[str, MethodResult]) -> FigureTable:
    """What each method cost, and beside it what the study's serial runs did."""
    published: list[list[str]] = []
    if config.suite == SUITE:
        for name, cost in PUBLISHED_COSTS.items():
            figures = (f"{cost.calls:.1f}", "-", f"{cost.rounds:.1f}", f"{cost.tokens:.1f}")
            published.append([f"{name}, as published", *figures, f"{cost.seconds:.1f}"])
    return _table("What it cost", COSTS, results, published)


def _families(scenarios: Sequence[Scenario], results: Mapping[str, MethodResult]) -> FigureTable:
    rows = [
        [family, *(f"{m['useful_f1']:.2f}, {m['abstained']:.2f}" for m in methods.values())]
        for family, methods in by_family(scenarios, results).items()
    ]
    title = "F1, and how often nothing was selected"
    return FigureTable(title=title, head=["family", *results], rows=rows)


@asynccontextmanager
async def _answers(model: str) -> AsyncGenerator[Cache]:
    """Answers paid for; a cassette alone answers, whatever earlier runs on this machine know."""
    if model.startswith("cassette:"):
        yield InMemoryCache()
        return
    async with open_cache(cache_path()) as cache:
        yield cache


def _recorded(cache: Cache, cassette: str, model: ChatModel) -> Cache:
    if not cassette:
        return cache
    from assay.runtime.models.cassette import RecordingCache  # noqa: PLC0415  # rarely used

    return RecordingCache(cache, Path(cassette), model=model)


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


def _table(
    title: str,
    names: Sequence[str],
    results: Mapping[str, MethodResult],
    published: Sequence[Sequence[str]] = (),
) -> FigureTable:
    ours = [
        [method, *(_figure(name, result) for name in names)] for method, result in results.items()
    ]
    return FigureTable(
        title=title,
        head=["method", *(HEADINGS.get(name, name) for name in names)],
        rows=[*ours, *published],
        dim={row[0] for row in published},
    )


def _figure(name: str, result: MethodResult) -> str:
    if name in result.costs:
        return f"{result.costs[name]:,.0f}" if name == "live" else f"{result.costs[name]:.1f}"
    mean, low, high = result.metrics[name]
    if mean is None:
        return "-"
    bounds = "" if low is None or high is None else f"\n{low:.2f}..{high:.2f}"
    return f"{mean:.3f}{bounds}"
