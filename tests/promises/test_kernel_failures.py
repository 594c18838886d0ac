"""A disk that fails within a write, a sync or a checkpoint leaves whole rows and a typed error."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from .conftest import Promise
from .traced_child import BATCH, Point, Told, held, needs_strace, points, run_struck

FAULTS = ("error=ENOSPC+", "error=EIO", "error=EIO+", "error=ENOSPC")
"""Once, or, as on a full disk, from then on."""


def failed_at(folder: Path, case: tuple[Point, str]) -> Told:
    """A child whose n-th write or sync fails: typed, readable, and whole afterwards."""
    point, fault = case
    path = folder / f"{point.call}-{point.n}-{fault}"
    told = run_struck(point, fault, path, "one")
    assert told.code == 0, (point, told.errors)
    records = sum(kind == "record" for kind, _ in told.acknowledged)
    # Reading still works in the process whose writes failed, if there was a bank to open at all.
    assert (told.read is None) == (not told.acknowledged and not told.refused), (point, told.errors)
    assert (told.read or 0) >= BATCH * records
    assert told.acknowledged - held(path, "one") == set(), (point, fault)
    return told


@needs_strace
@pytest.mark.timeout(120)
@pytest.mark.promise("P2", "any single failing call leaves no half row, and reads still work")
def test_the_nth_write_or_sync_within_sqlite_may_fail(promise: Promise, tmp_path: Path) -> None:
    chosen = points(promise.times(3, 12), seed=22)
    cases = list(product(chosen, FAULTS if promise.long else FAULTS[:1]))

    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(partial(failed_at, tmp_path), cases))

    # Each thread counts its own calls: a late point may strike in none of them.
    struck = [told for told in runs if told.struck]
    refused = sum(len(told.refused) for told in struck)
    unopened = sum(told.read is None for told in struck)
    assert len(struck) >= promise.times(1, 20)
    assert refused + unopened > 0
    promise.kept(
        f"{len(struck)} writes and syncs within SQLite failed (ENOSPC, EIO; once, or from then on): "
        f"{refused} calls and {unopened} openings refused by name, 0 half rows"
    )
