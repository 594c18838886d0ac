"""The arithmetic of capacity: by hand once, and what must hold for any unit cost."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from benchmarks.capacity import UNITS, Assumptions, Case, Need, Units, needed, read_units
from hypothesis import given
from hypothesis import strategies as st

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "capacity.py"

ROUND = Units(
    measured_on="nowhere",
    command="none",
    record_bytes=5_000,
    hnsw_bytes=2_000,
    turn_bytes=10_000,
    cache_row_bytes=1_000,
    turn_wal_bytes=50_000,
    turn_entries=8,
    turn_evaluations=4,
    turn_rounds=3,
    turn_worker_cpu_ms=10,
    turn_database_cpu_ms=5,
    worker_mb=100,
    backend_mb=5,
    bus_messages_per_s=2_000,
    bus_message_cpu_us=100,
    bus_jobs_per_s=500,
    bus_job_cpu_us=1_000,
)
SIMPLE = Assumptions(
    turn_records=0,
    average_load=0.5,
    evaluations=3,
    input_tokens=1_000,
    output_tokens=100,
    input_price=1,
    output_price=10,
    model_s=1,
    turns_kept_days=10,
    cache_kept_days=0,
    large_share=0.5,
    hot_share=0.5,
    node_cores=10,
    node_gb=100,
    node_tb=1,
    worker_slots=100,
)

OTHERWISE = {"measured_on", "command", "bus_messages_per_s", "bus_jobs_per_s"}
amounts = st.floats(0, 1e5)
units = st.builds(
    Units,
    measured_on=st.just("nowhere"),
    command=st.just("none"),
    bus_messages_per_s=st.floats(1, 1e5),
    bus_jobs_per_s=st.floats(1, 1e5),
    **dict.fromkeys(set(Units.__struct_fields__) - OTHERWISE, amounts),
)
positive = st.floats(0.1, 1e3)
shares = st.floats(0, 1)
assumptions = st.builds(
    Assumptions,
    turns_per_minute=positive,
    average_load=shares,
    evaluations=st.floats(0, 20),
    cache_hits=shares,
    model_s=st.floats(0, 10),
    large_share=shares,
    hot_share=shares,
    replication=st.integers(1, 5),
    headroom=st.floats(0.1, 1),
    node_cores=positive,
    node_gb=positive,
    node_tb=positive,
    worker_slots=positive,
)
cases = st.builds(Case, records=st.floats(0, 1e9), sessions=st.floats(0, 1e5))


def test_a_case_reckoned_by_hand() -> None:
    need = needed(Case(records=1e9, sessions=6_000), ROUND, SIMPLE)

    # 6,000 sessions x 1 turn a minute / 60; a reply and 3 evaluations each
    assert need.turns_per_s == 100
    assert need.model_calls_per_s == 400
    # 400/s x half x (1,000 x 1 + 100 x 10) / 1,000,000 x 30 days of 86,400 s
    assert need.model_money_a_month == pytest.approx(1_036_800)
    # 1 core is used; 300 turns at once take 3 workers, 6 at half of their slots
    assert (need.worker_cores, need.workers, need.worker_nodes) == (1, 6, 1)
    # 1e9 x (5,000 + half x 2,000), and 100 x half x 864,000 s x 10,000
    assert need.database_tb == pytest.approx(6 + 0.432)
    # half of 6 TB, a day of turns, and 6 x 8 connections of 5 MB
    assert need.database_gb == pytest.approx(3_000 + 43.2 + 0.24)
    # 3,043 GB in nodes of 100 GB used to a half
    assert (need.database_scarcest, need.database_primaries) == ("memory", 61)
    assert need.database_nodes == 183
    # 100 jobs/s of 1 ms and 800 messages/s of 0.1 ms, three times
    assert (need.bus_jobs_per_s, need.bus_messages_per_s) == (100, 800)
    assert need.bus_cores == pytest.approx(0.54)
    assert need.bus_nodes == 3


@given(cases, units, assumptions)
def test_what_is_needed_fits_on_the_nodes(case: Case, costs: Units, given: Assumptions) -> None:
    need = needed(case, costs, given)

    room = given.headroom * need.database_primaries * (1 + 1e-9)
    assert need.database_cores <= given.node_cores * room
    assert need.database_tb <= given.node_tb * room
    assert need.database_gb <= given.node_gb * room
    assert need.worker_cores <= need.workers * given.headroom * (1 + 1e-9)
    assert need.worker_gb <= need.worker_nodes * given.node_gb * (1 + 1e-9)
    assert need.bus_nodes >= given.replication


@given(cases, units, assumptions, st.floats(1, 10))
def test_more_records_or_sessions_never_need_less(
    case: Case, costs: Units, given: Assumptions, times: float
) -> None:
    small = needed(case, costs, given)

    more_records = needed(case._replace(records=case.records * times), costs, given)
    more_sessions = needed(case._replace(sessions=case.sessions * times), costs, given)

    assert all(a <= b * (1 + 1e-9) for a, b in pairs(small, more_records))
    assert all(a <= b * (1 + 1e-9) for a, b in pairs(small, more_sessions))


@given(cases, units, assumptions)
def test_a_cache_that_answers_everything_leaves_the_replies_to_pay(
    case: Case, costs: Units, given: Assumptions
) -> None:
    cached = msgspec.structs.replace(given, cache_hits=1.0)

    need = needed(case, costs, cached)

    assert need.model_calls_per_s == pytest.approx(need.turns_per_s)


def pairs(small: Need, large: Need) -> Iterator[tuple[float, float]]:
    """Each number of two needs."""
    both = zip(msgspec.structs.astuple(small), msgspec.structs.astuple(large), strict=True)
    return ((a, b) for a, b in both if not isinstance(a, str))


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own script
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False
    )


def test_the_command_prints_what_it_reckoned_with(tmp_path: Path) -> None:
    file = tmp_path / "units.json"
    file.write_bytes(msgspec.json.encode(ROUND))

    done = command("--units", str(file), "--json", "--evaluations", "2")

    printed = json.loads(done.stdout)
    assert [case["sessions"] for case in printed["cases"]] == [1_000, 100_000]
    assert printed["assumptions"]["evaluations"] == 2
    assert msgspec.convert(printed["units"], Units) == ROUND


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--records", "5"], "a case is --records and --sessions"),
        (["--headroom", "0"], "headroom"),
        (["--replication", "0"], "replication"),
        (["--units", "nowhere.json"], "--measure makes them"),
    ],
)
def test_a_wrong_question_says_what_was_expected(arguments: list[str], told: str) -> None:
    done = command(*arguments)

    assert done.returncode == 1
    assert told in done.stderr


def test_unit_costs_of_another_shape_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "units.json"
    file.write_text('{"record_bytes": -1}')

    with pytest.raises(ValueError, match=r"no unit costs in .*units.json"):
        read_units(file)


def test_the_unit_costs_kept_here_can_be_read() -> None:
    assert read_units(UNITS).measured_on.startswith("PostgreSQL")
