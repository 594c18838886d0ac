"""What came of a run with faults, as tables and as JSON."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from fault_script import Checks
from rich.console import Console
from rich.table import Table


class Outcome(NamedTuple):
    """What came of a run.

    Attributes:
        ways: What cut the network.
        turns: Turns acknowledged.
        faults: Faults that struck.
        missed: Faults that did not: no turn came to them any more.
        seconds: Of the run with faults.
        checks: What is not as it must be.
        failures: Turns without a reply.
        dead: Jobs put aside.
        again: Requests that were sent again, by error.
        unplanned: Workers that ended by themselves.
        recoveries: By the fault's name.
        struck: By the fault's name.
    """

    ways: str
    turns: int
    faults: int
    missed: int
    seconds: float
    checks: Checks
    failures: list[str]
    dead: int
    again: dict[str, int]
    unplanned: int
    recoveries: dict[str, list[float]]
    struck: dict[str, int]

    @property
    def every_recovery(self) -> list[float]:
        """Recovery times of all faults together, seconds."""
        return [seconds for hits in self.recoveries.values() for seconds in hits]

    @property
    def is_well(self) -> bool:
        """Whether all is as it must be."""
        return not any((*self.checks, self.missed, self.dead, self.failures))


def recovery_table(outcome: Outcome) -> Table:
    """How long it took until it went on."""
    table = Table(title="From a fault to the next reply, seconds")
    for column in ("fault", "count", "users hit", "p50", "p99", "max"):
        table.add_column(column, justify="left" if column == "fault" else "right")
    rows = [*sorted(outcome.struck.items()), ("all", outcome.faults)]
    for name, count in rows:
        hits = outcome.every_recovery if name == "all" else outcome.recoveries.get(name, [])
        table.add_row(name, str(count), str(len(hits)), *figures(hits))
    return table


def figures(seconds: Sequence[float]) -> tuple[str, str, str]:
    """p50, p99 and max."""
    if not seconds:
        return ("-", "-", "-")
    p50, p99 = np.percentile(seconds, [50, 99])
    return (f"{p50:.2f}", f"{p99:.2f}", f"{max(seconds):.2f}")


def check_table(outcome: Outcome) -> Table:
    """What must be 0."""
    table = Table(title="Beside the embedded run of the same script: what must be 0")
    table.add_column("check")
    table.add_column("count", justify="right")
    checks = outcome.checks
    for name, count in (
        ("acknowledged replies lost", checks.lost),
        ("decisions doubled", checks.doubled),
        ("turns whose journal is not each event once", checks.incomplete),
        ("records that differ", checks.records),
        ("decisions that differ", checks.decisions),
        ("replies that differ", checks.replies),
        ("archived messages that differ", checks.archived),
        ("turns without a reply", len(outcome.failures)),
        ("jobs put aside", outcome.dead),
        ("faults that did not strike", outcome.missed),
    ):
        table.add_row(name, str(count))
    return table


def show(outcome: Outcome, console: Console) -> None:
    """Print all."""
    console.print(recovery_table(outcome), check_table(outcome))
    console.print(
        f"{outcome.turns} turns acknowledged, {outcome.faults} faults in {outcome.seconds:.0f} s; "
        f"network cut by {outcome.ways}; "
        f"{sum(outcome.again.values())} requests sent again, "
        f"{outcome.unplanned} workers ended by themselves",
        highlight=False,
    )
    for what, count in outcome.again.items():
        console.print(f"  sent again {count}: {what}", highlight=False, markup=False)
    for failure in outcome.failures:
        console.print(f"  no reply: {failure}", highlight=False, markup=False)


def as_json(outcome: Outcome) -> dict[str, Any]:
    """All figures, recovery times in seconds."""
    recovery = {
        name: dict(zip(("p50", "p99", "max"), np.percentile(hits, [50, 99, 100]), strict=True))
        for name, hits in {**outcome.recoveries, "all": outcome.every_recovery}.items()
        if hits
    }
    return {
        **outcome._asdict(),
        "checks": outcome.checks._asdict(),
        "recoveries": recovery,
        "is_well": outcome.is_well,
    }
