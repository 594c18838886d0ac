"""The scripts that measure run on real servers, and what they write is what others read."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.capacity import read_units

SCRIPTS = Path(__file__).parents[2] / "benchmarks"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def printed(script: str, *arguments: object) -> str:
    command = [sys.executable, str(SCRIPTS / script), *map(str, arguments)]
    done = subprocess.run(  # noqa: S603 - our own script
        command, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_unit_costs_of_postgres_and_nats_are_what_capacity_reads(tmp_path: Path) -> None:
    file = tmp_path / "units.json"

    printed("unit_costs.py", "--turns", 3, "--records", 200, "--out", file)

    units = read_units(file)
    assert units.record_bytes > 384 * 4
    assert min(units.turn_worker_cpu_ms, units.turn_database_cpu_ms, units.turn_bytes) > 0
    assert units.bus_messages_per_s > 0


def test_a_small_bank_in_postgres_is_written_searched_and_recalled() -> None:
    sizes = ("--records", 600, "--namespaces", 3, "--large", 0.5)
    counts = ("--queries", 10, "--writes", 20, "--recall-queries", 5)

    figures = json.loads(printed("postgres_scale.py", *sizes, *counts, "--global-index", "--json"))

    assert figures["own_index_as_the_bank_rows_of_50"] == 50
    naive = figures["global_index_no_iteration_rows_of_50"]
    assert figures["global_index_as_the_bank_rows_of_50"] > naive
