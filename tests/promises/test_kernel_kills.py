"""A process that dies within a write, a sync or a checkpoint loses nothing it acknowledged."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from .conftest import Promise
from .traced_child import ROUNDS, Point, Told, held, needs_strace, points, run_struck

SEED = 21


def killed_at(folder: Path, point: Point) -> Told:
    """A child that dies at its n-th write or sync; what it acknowledged is there."""
    path = folder / f"{point.call}-{point.n}"
    told = run_struck(point, "signal=KILL", path, "one")
    there = held(path, "one")
    assert told.acknowledged - there == set(), point
    return told


@needs_strace
@pytest.mark.timeout(120)
@pytest.mark.promise("P1", "a process killed at any moment loses no acknowledged write")
def test_a_kill_at_the_nth_write_or_sync_loses_nothing(promise: Promise, tmp_path: Path) -> None:
    chosen = points(promise.times(3, 40), seed=SEED)

    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(partial(killed_at, tmp_path), chosen))

    # Each thread counts its own calls: a late point may strike in none of them.
    struck = [told for told in runs if told.struck]
    rows = sum(len(told.acknowledged) for told in struck)
    assert len(struck) >= promise.times(1, 20)
    assert all(len(told.acknowledged) == 4 * ROUNDS for told in runs if not told.struck)
    promise.kept(
        f"{len(struck)} kills within a write or a sync (seed {SEED}): "
        f"{rows} acknowledged, {rows} found"
    )
