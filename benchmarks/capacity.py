"""What two sizes of installation need: arithmetic from measured unit costs and named assumptions.

    python benchmarks/capacity.py [--records N --sessions N] [--turns-per-minute 1] ... [--json]
    python benchmarks/capacity.py --measure     # first writes units.json anew, see unit_costs.py

Prints every assumption with its value, every unit cost with where it was measured, and for each case
what is needed with the formula. A unit cost comes from ``benchmarks/units.json`` or ``--units FILE``
and is never typed by hand; whatever is not measured is an option and says that it is assumed.
"""

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias, get_args, get_type_hints

import msgspec
from msgspec import Meta
from rich.console import Console
from rich.table import Table

UNITS = Path(__file__).with_name("units.json")
MEASURE = Path(__file__).with_name("unit_costs.py")

Amount: TypeAlias = Annotated[float, Meta(ge=0)]
Positive: TypeAlias = Annotated[float, Meta(gt=0)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]

MB, GB, TB = 1e6, 1e9, 1e12
DAY_S, MONTH_D = 86_400, 30


class Units(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Unit costs, measured by ``unit_costs.py`` on real servers, indexes included."""

    measured_on: str
    command: str
    record_bytes: Annotated[Amount, Meta(description="a record: row, words, vector, indexes")]
    hnsw_bytes: Annotated[Amount, Meta(description="a vector in an approximate index")]
    turn_bytes: Annotated[Amount, Meta(description="a turn: journal, archive, lease")]
    cache_row_bytes: Annotated[Amount, Meta(description="a cached answer")]
    turn_wal_bytes: Annotated[Amount, Meta(description="log written in a turn")]
    turn_entries: Annotated[Amount, Meta(description="journal entries of a turn, each told once")]
    turn_evaluations: Annotated[Amount, Meta(description="evaluations of the guard in a turn")]
    turn_rounds: Annotated[Amount, Meta(description="model calls one after another in a turn")]
    turn_worker_cpu_ms: Annotated[Amount, Meta(description="processor of a worker, a turn")]
    turn_database_cpu_ms: Annotated[Amount, Meta(description="processor of PostgreSQL, a turn")]
    worker_mb: Annotated[Amount, Meta(description="resident memory of a worker")]
    backend_mb: Annotated[Amount, Meta(description="own memory of a database connection")]
    bus_messages_per_s: Annotated[
        Positive, Meta(description="kept by a stream on files, one client")
    ]
    bus_message_cpu_us: Annotated[Amount, Meta(description="processor of NATS, a message")]
    bus_jobs_per_s: Annotated[Positive, Meta(description="submitted and done by one client, empty")]
    bus_job_cpu_us: Annotated[Amount, Meta(description="processor of NATS, a job")]


class Assumptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What nobody measured here; each is an option."""

    turns_per_minute: Annotated[Positive, Meta(description="of a session at the peak")] = 1.0
    average_load: Annotated[Share, Meta(description="mean of a day over its peak")] = 0.4
    evaluations: Annotated[
        Amount, Meta(description="of the guard in a turn (the panel's, measured by replays)")
    ] = 3.8
    cache_hits: Annotated[Share, Meta(description="share of evaluations already answered")] = 0.0
    input_tokens: Annotated[Amount, Meta(description="of a model call")] = 700.0
    output_tokens: Annotated[Amount, Meta(description="of a model call")] = 60.0
    input_price: Annotated[Amount, Meta(description="a million tokens in")] = 0.15
    output_price: Annotated[Amount, Meta(description="a million tokens out")] = 0.60
    model_s: Annotated[Amount, Meta(description="seconds of a model call")] = 1.0
    turn_records: Annotated[Amount, Meta(description="records a turn leaves behind")] = 0.2
    turns_kept_days: Annotated[Amount, Meta(description="journal and archive")] = 90.0
    cache_kept_days: Annotated[Amount, Meta(description="cached answers")] = 30.0
    large_share: Annotated[
        Share, Meta(description="records in namespaces large enough for an approximate index")
    ] = 0.1
    hot_share: Annotated[Share, Meta(description="records in memory, with their indexes")] = 0.1
    turns_hot_days: Annotated[Amount, Meta(description="turns in memory")] = 1.0
    replication: Annotated[int, Meta(ge=1, description="copies of everything")] = 3
    headroom: Annotated[float, Meta(gt=0, le=1, description="of a resource, used at the peak")] = (
        0.5
    )
    node_cores: Annotated[Positive, Meta(description="a node")] = 16.0
    node_gb: Annotated[Positive, Meta(description="memory of a node")] = 128.0
    node_tb: Annotated[Positive, Meta(description="disk of a node")] = 4.0
    node_wal_mb_s: Annotated[Positive, Meta(description="log a primary writes and ships")] = 200.0
    worker_slots: Annotated[Positive, Meta(description="turns in flight in a worker")] = 64.0
    worker_connections: Annotated[Amount, Meta(description="of a worker to PostgreSQL")] = 8.0
    queued_share: Annotated[
        Share, Meta(description="of evaluations that are jobs of their own")
    ] = 0.0


class Case(NamedTuple):
    """A size to plan for.

    Attributes:
        records: In the bank at the start.
        sessions: That take turns at the same time.
    """

    records: float
    sessions: float


CASES = (Case(1e7, 1e3), Case(1e9, 1e5))


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """What a case takes; each figure says its formula."""

    turns_per_s: Annotated[float, Meta(description="sessions x turns a minute / 60")]
    model_calls_per_s: Annotated[
        float, Meta(description="turns/s x (1 + evaluations x (1 - cache hits))")
    ]
    model_calls_at_once: Annotated[float, Meta(description="calls/s x seconds of a call")]
    model_tokens_per_s: Annotated[float, Meta(description="calls/s x tokens in and out")]
    model_money_a_month: Annotated[
        float, Meta(description="calls/s x average load x price of a call x 30 days")
    ]
    workers: Annotated[
        int,
        Meta(
            description="the more of cores, and turns/s x rounds x seconds of a call over slots; "
            "/ headroom"
        ),
    ]
    worker_cores: Annotated[float, Meta(description="turns/s x processor of a turn")]
    worker_gb: Annotated[float, Meta(description="workers x memory")]
    worker_nodes: Annotated[int, Meta(description="a core for each worker; memory")]
    database_cores: Annotated[float, Meta(description="turns/s x processor of a turn")]
    database_tb: Annotated[
        float, Meta(description="records + turns and cache kept, before replication")
    ]
    database_gb: Annotated[float, Meta(description="hot records and turns, connections")]
    database_wal_mb_s: Annotated[float, Meta(description="turns/s x log of a turn")]
    database_primaries: Annotated[
        int, Meta(description="the most of cores, disk, memory and log over a node's / headroom")
    ]
    database_scarcest: Annotated[str, Meta(description="what most primaries are needed for")]
    database_nodes: Annotated[int, Meta(description="primaries x replication")]
    disk_tb: Annotated[float, Meta(description="of all copies, with headroom")]
    bus_jobs_per_s: Annotated[float, Meta(description="turns/s x (1 + evaluations x queued share)")]
    bus_messages_per_s: Annotated[float, Meta(description="turns/s x journal entries")]
    bus_cores: Annotated[
        float, Meta(description="(jobs/s and messages/s x processor of each) x replication")
    ]
    bus_nodes: Annotated[
        int, Meta(description="cores over a node's / headroom, at least the replication")
    ]


def needed(case: Case, units: Units, given: Assumptions) -> Need:
    """What a case takes, from unit costs and assumptions."""
    turns = case.sessions * given.turns_per_minute / 60
    calls = turns * (1 + given.evaluations * (1 - given.cache_hits))
    worker_cores = turns * units.turn_worker_cpu_ms / 1000
    at_once = turns * units.turn_rounds * given.model_s
    workers = _most((worker_cores, 1.0), (at_once, given.worker_slots), headroom=given.headroom)
    disk, memory = _disk(case, turns, units, given), _memory(case, turns, workers, units, given)
    cores = turns * units.turn_database_cpu_ms / 1000
    wal = turns * units.turn_wal_bytes / MB
    demands = {
        "cores": (cores, given.node_cores),
        "disk": (disk / TB, given.node_tb),
        "memory": (memory / GB, given.node_gb),
        "log": (wal, given.node_wal_mb_s),
    }
    primaries = _most(*demands.values(), headroom=given.headroom)
    jobs = turns * (1 + given.evaluations * given.queued_share)
    messages = turns * units.turn_entries
    bus = jobs * units.bus_job_cpu_us + messages * units.bus_message_cpu_us
    bus_cores = bus * given.replication / 1e6
    worker_gb = workers * units.worker_mb * MB / GB
    return Need(
        turns_per_s=turns,
        model_calls_per_s=calls,
        model_calls_at_once=calls * given.model_s,
        model_tokens_per_s=calls * (given.input_tokens + given.output_tokens),
        model_money_a_month=calls * given.average_load * _price(given) * DAY_S * MONTH_D,
        workers=workers,
        worker_cores=worker_cores,
        worker_gb=worker_gb,
        worker_nodes=_most((workers, given.node_cores), (worker_gb, given.node_gb), headroom=1),
        database_cores=cores,
        database_tb=disk / TB,
        database_gb=memory / GB,
        database_wal_mb_s=wal,
        database_primaries=primaries,
        database_scarcest=max(demands, key=lambda name: demands[name][0] / demands[name][1]),
        database_nodes=primaries * given.replication,
        disk_tb=disk / TB * given.replication / given.headroom,
        bus_jobs_per_s=jobs,
        bus_messages_per_s=messages,
        bus_cores=bus_cores,
        bus_nodes=max(
            given.replication, _most((bus_cores, given.node_cores), headroom=given.headroom)
        ),
    )


def _price(given: Assumptions) -> float:
    """Money for one model call."""
    tokens = given.input_tokens * given.input_price + given.output_tokens * given.output_price
    return tokens / 1e6


def _turns_a_day(turns: float, given: Assumptions) -> float:
    return turns * given.average_load * DAY_S


def _records(case: Case, turns: float, units: Units, given: Assumptions) -> float:
    """Bytes of the records at the end of ``turns_kept_days``, with those that turns left behind."""
    added = _turns_a_day(turns, given) * given.turns_kept_days * given.turn_records
    return (case.records + added) * (units.record_bytes + given.large_share * units.hnsw_bytes)


def _disk(case: Case, turns: float, units: Units, given: Assumptions) -> float:
    """Bytes of one copy."""
    a_day = _turns_a_day(turns, given)
    answers = a_day * given.cache_kept_days * given.evaluations * (1 - given.cache_hits)
    return (
        _records(case, turns, units, given)
        + a_day * given.turns_kept_days * units.turn_bytes
        + answers * units.cache_row_bytes
    )


def _memory(case: Case, turns: float, workers: int, units: Units, given: Assumptions) -> float:
    """Bytes a primary would like to hold; each large namespace has an index of its own."""
    return (
        given.hot_share * _records(case, turns, units, given)
        + _turns_a_day(turns, given) * given.turns_hot_days * units.turn_bytes
        + workers * given.worker_connections * units.backend_mb * MB
    )


def _most(*demands: tuple[float, float], headroom: float) -> int:
    """Nodes for the scarcest of several resources, given what is needed and what a node has."""
    return max(1, *(math.ceil(needed / (has * headroom)) for needed, has in demands))


def told(kind: type[msgspec.Struct], name: str) -> str:
    """The description of a field."""
    notes = get_args(get_type_hints(kind, include_extras=True)[name])
    return " ".join(note.description for note in notes if getattr(note, "description", None))


def shown(value: object) -> str:
    """A figure at a length people read."""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.3g}"  # noqa: PLR2004 - digits


def table_of(title: str, source: str, values: msgspec.Struct) -> Table:
    """Fields, values, what they are and where they come from."""
    table = Table(title=title)
    table.add_column("parameter", no_wrap=True)
    table.add_column("value", justify="right")
    table.add_column("what")
    table.add_column("source")
    for name in values.__struct_fields__:
        if what := told(type(values), name):
            table.add_row(name, shown(getattr(values, name)), what, source)
    return table


def table_of_needs(cases: Sequence[Case], needs: Sequence[Need]) -> Table:
    """One column a case; the formula under each figure's name."""
    table = Table(title="Needed")
    table.add_column("figure")
    for case in cases:
        title = f"{case.records:,.0f} records\n{case.sessions:,.0f} sessions"
        table.add_column(title, justify="right", no_wrap=True)
    for name in Need.__struct_fields__:
        figure = f"{name}\n  [dim]{told(Need, name)}[/dim]"
        table.add_row(figure, *(shown(getattr(need, name)) for need in needs))
    return table


def parsed() -> argparse.Namespace:
    """The command line: each assumption is an option."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=float, help="of a case of your own")
    parser.add_argument("--sessions", type=float, help="of a case of your own, at the same time")
    parser.add_argument("--units", type=Path, default=UNITS, help="unit costs (units.json)")
    parser.add_argument("--measure", action="store_true", help="measure the unit costs first")
    parser.add_argument("--json", action="store_true", help="one JSON object, and no table")
    for name, default in msgspec.structs.asdict(Assumptions()).items():
        text = f"{told(Assumptions, name)} ({default})"
        kind = int if isinstance(default, int) else float
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=default, help=text)
    return parser.parse_args()


def cases_of(records: float | None, sessions: float | None) -> Sequence[Case]:
    """The two standard cases, or the one asked for.

    Raises:
        ValueError: If only one of both is given, or one is negative.
    """
    if records is None and sessions is None:
        return CASES
    if records is None or sessions is None or min(records, sessions) < 0:
        raise ValueError(
            f"a case is --records and --sessions, both at least 0, got {records!r} and {sessions!r}"
        )
    return (Case(records, sessions),)


def read_units(file: Path) -> Units:
    """The unit costs in a file.

    Raises:
        ValueError: If there are none.
    """
    try:
        return msgspec.json.decode(file.read_bytes(), type=Units)
    except (OSError, msgspec.DecodeError) as error:
        raise ValueError(f"no unit costs in {file}: {error}; --measure makes them") from error


def as_json(
    cases: Sequence[Case], needs: Sequence[Need], units: Units, given: Assumptions
) -> dict[str, Any]:
    """Everything that was printed."""
    pairs = zip(cases, needs, strict=True)
    return {
        "cases": [case._asdict() | msgspec.to_builtins(need) for case, need in pairs],
        "units": msgspec.to_builtins(units),
        "assumptions": msgspec.to_builtins(given),
    }


def main() -> None:
    """Read or measure the unit costs, reckon, print."""
    options = vars(parsed())
    file: Path = options.pop("units")
    if options.pop("measure"):
        subprocess.run([sys.executable, MEASURE, "--out", file], check=True)  # noqa: S603 - ours
    quiet = options.pop("json")
    try:
        cases = cases_of(options.pop("records"), options.pop("sessions"))
        given, units = msgspec.convert(options, Assumptions), read_units(file)
    except ValueError as error:
        raise SystemExit(f"capacity: {error}") from error
    needs = [needed(case, units, given) for case in cases]
    if quiet:
        print(json.dumps(as_json(cases, needs, units, given)))
        return
    console = Console()
    console.print(table_of(f"Unit costs: {units.measured_on}", "measured", units))
    console.print(table_of("Assumptions", "assumed", given))
    console.print(table_of_needs(cases, needs))


if __name__ == "__main__":
    main()
