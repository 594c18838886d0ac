"""The published protocol: the recorded run decided again, labels and answers in hand."""

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from assay.cli.replay.running import HEADINGS
from assay.scenarios.causal_locomo import SUITE
from assay.scenarios.metrics import METRICS
from assay.scenarios.published_cmi import Replayed, read_diagnostics, read_keys, replay_published

_SHOWN = ("useful_f1", "gold_recall", "useful_precision", "bad_rejection")


def published(data: Path, diagnostics: Path, *, seed: int, as_json: bool) -> None:
    """Decide every recorded candidate again and print how often the recording is met."""
    replayed = replay_published(read_keys(data), read_diagnostics(diagnostics), seed=seed)
    if as_json:
        print(json.dumps(_summary(replayed, seed)))
        return
    console = Console()
    table = Table(title="Published protocol", title_justify="left", title_style="bold")
    table.add_column("rule")
    for name in _SHOWN:
        table.add_column(HEADINGS[name], justify="right")
    table.add_column("poisoned", justify="right")
    for name, result in replayed.methods.items():
        means = [result.metrics[metric].mean for metric in _SHOWN]
        figures = ["-" if mean is None else f"{mean:.4f}" for mean in means]
        table.add_row(name, *figures, f"{result.poisoned} of {result.poisonable}")
    console.print(table)
    console.print(
        f"{replayed.reproduced} of {replayed.decisions} recorded decisions reproduced; seed {seed}",
        highlight=False,
    )


def _summary(replayed: Replayed, seed: int) -> dict[str, object]:
    return {
        "suite": SUITE,
        "protocol": "published",
        "seed": seed,
        "examples": replayed.examples,
        "decisions": replayed.decisions,
        "reproduced": replayed.reproduced,
        "methods": {
            name: {metric: result.metrics[metric].mean for metric in METRICS}
            | {"poisoned": result.poisoned, "poisonable": result.poisonable}
            for name, result in replayed.methods.items()
        },
        "intervals": {
            name: {m: [result.metrics[m].low, result.metrics[m].high] for m in METRICS}
            for name, result in replayed.methods.items()
        },
    }
