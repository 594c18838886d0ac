"""The simulation of queue, leases and deaths: exact accounting, closed formulas, nothing lost."""

import json
import math
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest
from benchmarks.queue_simulation import FairQueue, Plan, Run, Simulation, Turn
from hypothesis import given
from hypothesis import strategies as st

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "queueing.py"

PLANS = st.builds(
    Plan,
    sessions=st.integers(1, 12),
    turns=st.integers(1, 5),
    tenants=st.integers(1, 4),
    think_s=st.floats(0, 2),
    arrivals_per_s=st.sampled_from([0.0, 0.5, 20.0]),
    workers=st.integers(1, 3),
    slots=st.integers(1, 4),
    cores=st.integers(1, 3),
    rounds=st.integers(1, 3),
    model_s=st.floats(0, 0.5),
    model_spread=st.sampled_from([0.0, 0.5, 1.0]),
    worker_cpu_s=st.floats(0, 0.1),
    database_cpu_s=st.floats(0, 0.1),
    quantum_s=st.sampled_from([0.005, 0.03, 1.0]),
    latency_s=st.floats(0, 0.05),
    lease_s=st.floats(0, 5),
    redelivery_s=st.floats(0, 5),
    mean_life_s=st.sampled_from([0.0, 3.0, 20.0]),
    restart_s=st.floats(0, 2),
    seed=st.integers(0, 2**32 - 1),
)


def queue(*, arrivals_per_s: float, model_spread: float, workers: int = 1, slots: int = 1) -> Run:
    """Poisson arrivals of turns that take 1 s on average."""
    return Simulation(
        Plan(
            sessions=20_000,
            turns=1,
            arrivals_per_s=arrivals_per_s,
            workers=workers,
            slots=slots,
            rounds=1,
            model_s=1.0,
            model_spread=model_spread,
        )
    ).run()


def mean_wait(run: Run) -> float:
    return float(np.mean([turn.started - turn.asked for turn in run.turns]))


def erlang_c_wait(load: float, servers: int) -> float:
    """Mean wait of M/M/c with service of mean 1 (Erlang, 1917)."""
    spare = servers - load
    below = sum(load**k / math.factorial(k) for k in range(servers))
    all_busy = load**servers / math.factorial(servers) * servers / spare
    return all_busy / (below + all_busy) / spare


def machine_repair_rate(sessions: int, think: float) -> float:
    """Throughput of M/M/1//N with service of mean 1 (Palm's machine repair model)."""
    idle = 1 / sum(math.perm(sessions, k) / think**k for k in range(sessions + 1))
    return 1 - idle


@given(PLANS)
def test_every_turn_is_answered_once(plan: Plan) -> None:
    run = Simulation(plan).run()

    answered = [turn.session for turn in run.turns]
    assert sorted(answered) == sorted(list(range(plan.sessions)) * plan.turns)


@given(PLANS)
def test_no_turn_begins_before_it_is_asked_or_ends_before_it_begins(plan: Plan) -> None:
    run = Simulation(plan).run()

    assert all(turn.asked <= turn.started <= turn.finished <= run.seconds for turn in run.turns)


@given(PLANS)
def test_turns_of_a_session_follow_each_other(plan: Plan) -> None:
    run = Simulation(plan).run()

    in_order = sorted(run.turns, key=lambda turn: (turn.session, turn.asked, turn.finished))
    overlaps = [
        (one, other)
        for one, other in pairwise(in_order)
        if one.session == other.session and other.asked < one.finished
    ]
    assert overlaps == []


@given(PLANS)
def test_littles_law_holds_exactly(plan: Plan) -> None:
    run = Simulation(plan).run()

    spent = sum(turn.finished - turn.asked for turn in run.turns)
    assert run.turn_seconds == pytest.approx(spent, rel=1e-9, abs=1e-9)


@given(PLANS)
def test_nothing_is_used_more_than_wholly(plan: Plan) -> None:
    run = Simulation(plan).run()

    assert 0 <= run.slots_used <= 1 + 1e-9
    assert 0 <= run.cores_used <= 1 + 1e-9


@given(PLANS)
def test_the_same_seed_gives_the_same_run(plan: Plan) -> None:
    assert msgspec.json.encode(Simulation(plan).run()) == msgspec.json.encode(
        Simulation(plan).run()
    )


@given(PLANS)
def test_with_free_slots_a_death_costs_a_turn_the_longer_of_lease_and_delivery(plan: Plan) -> None:
    roomy = msgspec.structs.replace(plan, slots=plan.sessions, mean_life_s=3.0, restart_s=0.0)

    run = Simulation(roomy).run()

    most = max(plan.lease_s, plan.redelivery_s) * run.deaths
    assert all(wait <= most + 1e-9 for wait in run.recoveries)


@pytest.mark.parametrize("load", [0.3, 0.5, 0.7])
def test_exponential_service_waits_as_mm1_says(load: float) -> None:
    run = queue(arrivals_per_s=load, model_spread=1.0)

    assert mean_wait(run) == pytest.approx(load / (1 - load), rel=0.12)
    assert run.slots_used == pytest.approx(load, rel=0.05)


@pytest.mark.parametrize("load", [0.3, 0.5, 0.7])
def test_constant_service_waits_half_as_long_as_md1_says(load: float) -> None:
    run = queue(arrivals_per_s=load, model_spread=0.0)

    assert mean_wait(run) == pytest.approx(load / (2 * (1 - load)), rel=0.12)


@pytest.mark.parametrize(("workers", "slots"), [(1, 4), (4, 1), (2, 2)])
def test_slots_of_all_workers_are_one_pool_as_mmc_says(workers: int, slots: int) -> None:
    run = queue(arrivals_per_s=2.8, model_spread=1.0, workers=workers, slots=slots)

    assert mean_wait(run) == pytest.approx(erlang_c_wait(2.8, 4), rel=0.12)


@pytest.mark.parametrize("think", [2.0, 8.0, 30.0])
def test_sessions_that_think_use_a_slot_as_machine_repair_says(think: float) -> None:
    plan = Plan(
        sessions=10, turns=1000, think_s=think, workers=1, slots=1, rounds=1, model_s=1.0,
        model_spread=1.0,
    )  # fmt: skip

    run = Simulation(plan).run()

    before_any_session_ends = 8000
    rate = before_any_session_ends / run.turns[before_any_session_ends - 1].finished
    assert rate == pytest.approx(machine_repair_rate(10, think), rel=0.05)


def test_turns_share_a_worker_as_processor_sharing_says() -> None:
    plan = Plan(
        sessions=5_000, turns=1, arrivals_per_s=50, workers=1, slots=5_000, rounds=1, model_s=0,
        worker_cpu_s=0.01, quantum_s=0.0005,
    )  # fmt: skip

    run = Simulation(plan).run()

    # M/G/1-PS: service / (1 - load), whatever the distribution (Kleinrock, 1967)
    spent = np.mean([turn.finished - turn.asked for turn in run.turns])
    assert spent == pytest.approx(0.01 / (1 - 0.5), rel=0.1)


@pytest.mark.parametrize(("workers", "cores", "rate"), [(1, 4, 100), (2, 4, 200), (8, 2, 200)])
def test_processor_time_bounds_what_slots_would_allow(
    workers: int, cores: int, rate: float
) -> None:
    plan = Plan(
        sessions=400, turns=10, think_s=0, workers=workers, slots=200, cores=cores, rounds=1,
        model_s=0.05, worker_cpu_s=0.01,
    )  # fmt: skip

    run = Simulation(plan).run()

    assert len(run.turns) / run.seconds == pytest.approx(rate, rel=0.05)


@given(st.lists(st.integers(0, 5), max_size=60), st.data())
def test_a_tenant_is_never_passed_over_twice(tenants: list[int], data: st.DataObject) -> None:
    waiting = FairQueue()
    for number, tenant in enumerate(tenants):
        waiting.put(Turn(number, tenant, 0.0))

    served = [waiting.take() for _ in tenants]

    assert sorted(turn.session for turn in served) == list(range(len(tenants)))
    order = [turn.tenant for turn in served]
    assert all(between_is_short(order, i, j) for i, j in neighbours(order))


def neighbours(order: list[int]) -> list[tuple[int, int]]:
    """Positions of a tenant's turns that follow each other."""
    return [
        (i, order.index(tenant, i + 1))
        for i, tenant in enumerate(order)
        if tenant in order[i + 1 :]
    ]


def between_is_short(order: list[int], i: int, j: int) -> bool:
    """Between two turns of a tenant every other one is served at most once."""
    between = order[i + 1 : j]
    return len(between) == len(set(between))


def test_one_turn_beside_a_thousand_of_another_tenant_is_second() -> None:
    waiting = FairQueue()
    for number in range(1000):
        waiting.put(Turn(number, 0, 0.0))
    waiting.put(Turn(1000, 1, 0.0))

    assert [waiting.take().tenant for _ in range(3)] == [0, 1, 0]


@pytest.mark.parametrize(
    "wrong", [{"workers": 0}, {"model_s": -1}, {"cores": 0}, {"turns": 0}, {"wrokers": 2}]
)
def test_a_plan_out_of_range_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, Plan)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own script
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False
    )


def test_a_measured_case_is_simulated_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "measured.json"
    figures = {"workers": 1, "sessions": 8, "turns": 40, "model_ms": 50, "slots": 4, "think_s": 0}
    file.write_text(json.dumps([figures | {"turns_per_s": 40.0, "p50": 0.2, "p99": 0.2}]))

    no_processor = ("--worker-cpu-s", "0", "--database-cpu-s", "0")
    done = command("--against", str(file), "--rounds", "2", *no_processor, "--json")

    (row,) = json.loads(done.stdout)
    assert row["plan"]["turns"] == 5
    assert row["ratio"] == pytest.approx({"turns_per_s": 1.0, "p50": 1.0, "p99": 1.0})


def test_latency_fitted_to_the_first_case_predicts_the_next(tmp_path: Path) -> None:
    file = tmp_path / "measured.json"
    alone = {"workers": 1, "sessions": 1, "turns": 5, "model_ms": 50, "slots": 9, "think_s": 0}
    more = alone | {"sessions": 9, "turns": 45}
    seconds = {"p50": 0.08, "p99": 0.08}
    file.write_text(
        json.dumps(
            [alone | seconds | {"turns_per_s": 12.5}, more | seconds | {"turns_per_s": 112.5}]
        )
    )

    options = ("--rounds", "1", "--worker-cpu-s", "0", "--database-cpu-s", "0")
    done = command("--against", str(file), *options, "--fit-latency", "--json")

    rows = json.loads(done.stdout)
    assert [row["plan"]["latency_s"] for row in rows] == pytest.approx([0.03, 0.03])
    assert rows[1]["ratio"] == pytest.approx({"turns_per_s": 1.0, "p50": 1.0, "p99": 1.0})


def test_a_measured_case_that_lacks_a_figure_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "measured.json"
    file.write_text('{"workers": 1}')

    done = command("--against", str(file))

    assert done.returncode == 1
    assert "lacks ['model_ms', 'p50'" in done.stderr
