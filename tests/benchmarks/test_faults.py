"""Real processes are killed in the middle of turns, and nothing is lost, doubled or different."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.fault_plan import POINTS, SHARES, planned
from benchmarks.fault_script import STEPS, Checks, Left, Said, checked

SCRIPTS = Path(__file__).parents[2] / "benchmarks"

ONCE = Counter({step.__name__: 1 for step in STEPS})
SAID = (Said("session0", "My cat is called Miso.", "0/0"),)
ACKNOWLEDGED = {"0/0": "Noted."}


def printed(script: str, *arguments: object) -> Any:
    command = [sys.executable, str(SCRIPTS / script), *map(str, arguments), "--json"]
    done = subprocess.run(  # noqa: S603 - our own script
        command, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


def left(
    *,
    reply: str = "Noted.",
    records: dict[str, Any] | None = None,
    decisions: int = 1,
    archived: tuple[str, ...] = (
        "session0 assistant Noted.",
        "session0 user My cat is called Miso.",
    ),
) -> Left:
    return Left(
        records={"m1": {"text": "My cat is called Miso."}} if records is None else records,
        decisions={"session0/0": {"judgements": ()}},
        replies={"session0/0": reply},
        archived=list(archived),
        events={"session0/0": ONCE | Counter({"GuardDecided": decisions})},
    )


@pytest.mark.timeout(90)
def test_a_worker_killed_at_each_step_of_a_turn_loses_and_doubles_nothing() -> None:
    sizes = ("--turns", 26, "--users", 13, "--jobs", 1, "--lease", 0.5)

    outcome = printed("faults.py", "--phases", "--workers", 1, *sizes)

    assert outcome["turns"] == 26
    assert outcome["struck"] == {f"worker killed {point}": 1 for point in POINTS}
    assert not any(outcome["checks"].values())


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("network", [[], ["--proxies"]], ids=["namespaces", "proxies"])
def test_random_faults_of_every_kind_lose_and_double_nothing(network: list[str]) -> None:
    outcome = printed("faults.py", "--turns", 80, "--faults", 30, "--users", 6, *network)

    assert outcome["faults"] == 30
    assert {"NATS killed", "PostgreSQL killed"} < outcome["struck"].keys()
    assert not any(outcome["checks"].values())


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_what_workers_do_is_what_the_simulation_is_compared_with(tmp_path: Path) -> None:
    sizes = ("--sessions", 4, "--turns", 2, "--model-ms", 5)
    measured = tmp_path / "measured.json"

    measured.write_text(json.dumps(printed("distributed.py", "--workers", 1, *sizes)))

    [row] = printed("queueing.py", "--against", measured)
    assert row["plan"]["workers"] == 1
    assert row["measured"]["turns_per_s"] > 0


def test_faults_are_of_every_kind_in_the_order_of_the_turns() -> None:
    faults = planned(200, 500, 10, np.random.default_rng(7))

    assert len(faults) == 200
    assert {fault.kind for fault in faults} == SHARES.keys()
    assert [fault.at for fault in faults] == sorted(fault.at for fault in faults)
    assert {fault.point for fault in faults if fault.kind == "worker"} > set(POINTS)


def test_all_is_well_when_the_same_is_left() -> None:
    assert not any(checked(ACKNOWLEDGED, SAID, left(), left()))


@pytest.mark.parametrize(
    ("wrong", "counted"),
    [
        (left(reply="Something else."), {"lost": 1, "replies": 1}),
        (left(archived=("session0 user My cat is called Miso.",)), {"lost": 1, "archived": 1}),
        (left(decisions=2), {"doubled": 1, "incomplete": 1}),
        (left(records={}), {"records": 1}),
    ],
    ids=["another reply", "not archived", "decided twice", "no record"],
)
def test_what_is_not_as_it_must_be_is_counted(wrong: Left, counted: dict[str, int]) -> None:
    checks = checked(ACKNOWLEDGED, SAID, wrong, left())

    assert checks._asdict() == dict.fromkeys(Checks._fields, 0) | counted
