"""The machine's clock is set while sessions run: nothing is timed, ordered or ended by it."""

import logging
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.stores.support import ANN, NOON, ids, memory

from assay.runtime.clock import StoppedClock
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.wiring import open_runtime
from assay.stores.embeddings import HashingEmbedder

from .bank_content import opened
from .conftest import Promise

STATEMENT = "a clock that jumps loses, deletes and reorders nothing"

HOURS, YEARS = timedelta(hours=1), timedelta(days=3653)
JUMPS = (HOURS, -HOURS, YEARS, -YEARS, -HOURS, -YEARS, YEARS, HOURS)

BERLIN = ZoneInfo("Europe/Berlin")


class JumpingClock(StoppedClock):
    """Jumps at each look at the time of day, and lets a hundredth of a second pass."""

    def __init__(self) -> None:
        super().__init__(NOON)
        self._jumps = cycle(JUMPS)
        self.jumped = 0

    def now(self) -> datetime:
        self.set(super().now() + next(self._jumps))
        self.advance(0.01)
        self.jumped += 1
        return super().now()


@pytest.mark.promise("P18", STATEMENT)
async def test_a_session_goes_on_in_its_own_order(
    promise: Promise, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, texts = JumpingClock(), [f"My number {n} is {n}7." for n in range(promise.times(6, 40))]
    caplog.set_level(logging.INFO, "assay.turns")
    async with open_runtime(
        model=ScriptedModel(),
        embedder=HashingEmbedder(16),
        guard="panel",
        bank=tmp_path,
        clock=clock,
    ) as runtime:
        session = runtime.session(user="ann", session_id="s1")
        for text in texts:
            await session.send(text)
        past, decisions = await runtime.turns("ann"), await runtime.decisions("ann")
        written = (await runtime.bank.store.changes(ANN, after=0)).records
        replayed = await runtime.replay("ann")

    seconds = [vars(record)["seconds"] for record in caplog.records if hasattr(record, "seconds")]
    assert [one.id for one in past] == [f"s1/{n}" for n in range(len(texts))]
    assert [one.question for one in decisions] == [one.text for one in past] == texts
    assert [one.text for one in written] == texts
    assert len(seconds) >= len(texts)
    assert replayed.divergences == ()
    assert all(0 <= one < 60 for one in seconds)
    promise.kept(
        f"{len(texts)} turns under {clock.jumped} jumps: in order, {len(seconds)} durations all "
        f"under {max(seconds):.2f} s, 0 memories lost, replayed alike"
    )


@pytest.mark.promise("P18", STATEMENT)
async def test_an_hour_that_comes_twice_ends_nothing_early(
    promise: Promise, tmp_path: Path
) -> None:
    # Clocks went back at 3:00 that night; within one zone Python compares what they show.
    first = datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN)
    second, end = first.replace(fold=1), first.replace(fold=1, minute=45)
    async with opened(tmp_path) as bank:
        await bank.store.write([memory("kept", at=first, valid_to=end)])

        for look in (first, first.replace(minute=50), second):
            assert ids(await bank.store.current(ANN, at=look)) == ["kept"]
        assert await bank.store.current(ANN, at=end) == []
        assert ids((await bank.store.changes(ANN, after=0)).records) == ["kept"]
    assert end.astimezone(UTC) - first.astimezone(UTC) == timedelta(minutes=75)
    promise.kept("valid through both hours of the night clocks go back, and not a minute longer")
