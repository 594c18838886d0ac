"""How many threads a local model gets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.runtime.models.cores import count_idle, idle_cores, usable_cores

#         user nice system idle iowait irq softirq steal
START = [100, 0, 50, 1000, 10, 0, 0, 0]


@pytest.mark.parametrize(
    ("busy", "idle", "cores", "found"),
    [(0, 40, 2, 2), (20, 20, 2, 1), (40, 0, 2, 1), (10, 30, 4, 3), (0, 0, 2, 2)],
)
def test_idle_cores_are_what_is_left(busy: int, idle: int, cores: int, found: int) -> None:
    later = [START[0] + busy, *START[1:3], START[3] + idle, *START[4:]]

    assert count_idle(START, later, cores=cores) == found


@given(st.lists(st.integers(0, 10**6), min_size=8, max_size=8), st.integers(1, 256))
def test_there_is_always_one_and_never_more_than_there_are(ticks: list[int], cores: int) -> None:
    assert 1 <= count_idle([0] * 8, ticks, cores=cores) <= cores


def test_this_machine_has_at_least_one() -> None:
    assert 1 <= idle_cores(seconds=0.02) <= usable_cores()
