"""Turns a second, waiting and recovery of any number of workers, simulated; beside a measured case.

    python benchmarks/queueing.py [--workers 2] [--sessions 100] [--mean-life-s 60] ... [--json]
    python benchmarks/queueing.py --against MEASURED.json ...

The model is in ``queue_simulation.py``; every field of a plan is an option. Rounds and processor
times of a turn are those in ``units.json`` unless given. ``--against`` simulates
what ``benchmarks/distributed.py`` measured: an object, or a list of them, with ``workers``,
``sessions``, ``turns`` in all, ``turns_per_s``, ``p50`` and ``p99`` of a turn in seconds, ``model_ms``;
any other field of a plan that stands there is taken too, what does not stand there comes from the
options. Prints simulated / measured. With ``--fit-latency`` the one thing nobody can measure apart
(waiting for commits, the network and the scheduler) is fitted to the first case.
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

import msgspec
import numpy as np
from msgspec import Meta
from queue_simulation import Plan, Run, Simulation
from rich.console import Console
from rich.table import Table

UNITS = Path(__file__).with_name("units.json")
COMPARED = ("turns_per_s", "p50", "p99")


class Figures(NamedTuple):
    """What a run comes to; times in seconds.

    Attributes:
        turns_per_s: Turns finished a second of the whole run.
        sessions_per_s: Sessions finished a second.
        p50: Median time of a turn, from asking to the reply.
        p99: Its 99th percentile.
        mean_wait: Mean time until a turn's work first began.
        slots_used: Share of the slots that held a turn.
        cores_used: Share of the cores that worked.
        deaths: Of workers.
        recovery_p50: Median time from a death until an orphaned turn ran again.
        recovery_max: The longest.
    """

    turns_per_s: float
    sessions_per_s: float
    p50: float
    p99: float
    mean_wait: float
    slots_used: float
    cores_used: float
    deaths: int
    recovery_p50: float
    recovery_max: float


def figures(plan: Plan, run: Run) -> Figures:
    """Summarise a run."""
    spent = [turn.finished - turn.asked for turn in run.turns]
    p50, p99 = np.percentile(spent, [50, 99])
    recoveries = run.recoveries or [0.0]
    return Figures(
        turns_per_s=len(run.turns) / run.seconds,
        sessions_per_s=plan.sessions / run.seconds,
        p50=float(p50),
        p99=float(p99),
        mean_wait=float(np.mean([turn.started - turn.asked for turn in run.turns])),
        slots_used=run.slots_used,
        cores_used=run.cores_used,
        deaths=run.deaths,
        recovery_p50=float(np.median(recoveries)),
        recovery_max=max(recoveries),
    )


def simulated(plan: Plan) -> Figures:
    """Run a plan to its end."""
    return figures(plan, Simulation(plan).run())


def plan_of(measured: dict[str, Any], base: Plan) -> Plan:
    """The plan of a measured case; what it does not say is the base's.

    Raises:
        ValueError: If a figure is missing.
    """
    needed = {"workers", "sessions", "turns", "model_ms", *COMPARED}
    if missing := needed - measured.keys():
        raise ValueError(f"a measured case says {sorted(needed)}, this one lacks {sorted(missing)}")
    names = {field.name for field in msgspec.structs.fields(Plan)}
    said = {name: value for name, value in measured.items() if name in names}
    said["turns"] = max(1, round(measured["turns"] / measured["sessions"]))
    said["model_s"] = measured["model_ms"] / 1000
    return msgspec.convert(msgspec.to_builtins(base) | said, Plan)


def cases_in(file: Path) -> list[dict[str, Any]]:
    """The measured cases in a file: one, or a list of them."""
    content = msgspec.json.decode(file.read_bytes(), type=list[dict[str, Any]] | dict[str, Any])
    return content if isinstance(content, list) else [content]


def fitted(measured: dict[str, Any], base: Plan) -> Plan:
    """The base with the latency that makes the median of one case come out as measured."""
    missing_s = measured["p50"] - simulated(plan_of(measured, base)).p50
    return msgspec.structs.replace(base, latency_s=max(0.0, base.latency_s + missing_s))


def compare(measured: dict[str, Any], base: Plan) -> dict[str, Any]:
    """A measured case with the plan of it, what the simulation says, and the ratios."""
    plan = plan_of(measured, base)
    figures = simulated(plan)._asdict()
    return {
        "plan": msgspec.to_builtins(plan),
        "simulated": figures,
        "measured": {name: measured[name] for name in COMPARED},
        "ratio": {name: figures[name] / measured[name] for name in COMPARED},
    }


def comparison(rows: list[dict[str, Any]]) -> Table:
    """The table of ``compare``."""
    latency_ms = 1000 * rows[0]["plan"]["latency_s"]
    table = Table(title=f"Simulated beside measured, latency of a turn {latency_ms:.0f} ms")
    for column in ("workers", "sessions", "figure", "simulated", "measured", "ratio"):
        table.add_column(column, justify="left" if column == "figure" else "right")
    for row in rows:
        for name in COMPARED:
            sides = (row[side][name] for side in ("simulated", "measured", "ratio"))
            plan = row["plan"]
            cells = (f"{value:,.3f}" for value in sides)
            table.add_row(str(plan["workers"]), str(plan["sessions"]), name, *cells)
    return table


def overview(plan: Plan, figures: Figures) -> Table:
    """The table of one run."""
    title = f"{plan.sessions:,} sessions of {plan.turns} turns, {plan.workers} workers"
    table = Table(title=f"{title} of {plan.slots} slots")
    table.add_column("figure")
    table.add_column("simulated", justify="right")
    for name, value in figures._asdict().items():
        table.add_row(name, f"{value:,.3f}" if isinstance(value, float) else f"{value:,}")
    return table


def measured_plan(units: Path) -> Plan:
    """The default plan, with the costs of a turn that ``unit_costs.py`` has measured."""
    if not units.exists():
        return Plan()
    costs = json.loads(units.read_bytes())
    return Plan(
        rounds=round(costs["turn_rounds"]),
        worker_cpu_s=costs["turn_worker_cpu_ms"] / 1000,
        database_cpu_s=costs["turn_database_cpu_ms"] / 1000,
    )


def parsed(base: Plan) -> argparse.Namespace:
    """The command line: each field of a plan is an option, with a default."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", type=Path, metavar="MEASURED.json")
    parser.add_argument(
        "--fit-latency",
        action="store_true",
        help="take the latency of a turn from the first case, and predict the others with it",
    )
    parser.add_argument("--json", action="store_true", help="one JSON value, and no table")
    for name, hint in get_type_hints(Plan, include_extras=True).items():
        kind, *notes = get_args(hint) or (hint,)
        told = [note.description for note in notes if isinstance(note, Meta) and note.description]
        default = getattr(base, name)
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=kind,
            default=default,
            help=f"{' '.join(told)} ({default})",
        )
    return parser.parse_args()


def main() -> None:
    """Simulate, and print."""
    options = vars(parsed(measured_plan(UNITS)))
    against, fit, as_json = (options.pop(name) for name in ("against", "fit_latency", "json"))
    try:
        plan = msgspec.convert(options, Plan)
        cases = cases_in(against) if against else []
        base = fitted(cases[0], plan) if fit and cases else plan
        rows = [compare(case, base) for case in cases]
    except (OSError, ValueError) as error:
        raise SystemExit(f"queueing: {error}") from error
    if as_json:
        print(json.dumps(rows or simulated(plan)._asdict()))
    else:
        Console().print(comparison(rows) if rows else overview(plan, simulated(plan)))


if __name__ == "__main__":
    main()
