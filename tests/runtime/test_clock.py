from datetime import UTC, datetime, timedelta, timezone

import pytest

from assay.runtime.clock import StoppedClock, SystemClock
from assay.stores.protocols import Clock

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(params=[SystemClock, StoppedClock])
def clock(request: pytest.FixtureRequest) -> Clock:
    made: Clock = request.param()
    return made


def test_a_clock_tells_utc_and_never_goes_back(clock: Clock) -> None:
    first, second = clock.monotonic(), clock.monotonic()

    assert clock.now().tzinfo is UTC
    assert first <= second


def test_a_stopped_clock_stands_still() -> None:
    clock = StoppedClock(NOON)

    assert clock.now() == clock.now() == NOON
    assert clock.monotonic() == 0


def test_time_passes_on_both_scales() -> None:
    clock = StoppedClock(NOON)

    clock.advance(1.5)

    assert clock.now() == NOON + timedelta(seconds=1.5)
    assert clock.monotonic() == 1.5


def test_a_jump_of_the_time_of_day_changes_no_duration() -> None:
    clock = StoppedClock(NOON)

    clock.set(datetime(2016, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))))

    assert clock.now() == datetime(2016, 1, 1, tzinfo=UTC)
    assert clock.monotonic() == 0


def test_a_naive_time_and_a_negative_wait_are_refused() -> None:
    naive = datetime(2026, 1, 1)  # noqa: DTZ001

    with pytest.raises(ValueError, match="timezone-aware"):
        StoppedClock(naive)
    with pytest.raises(ValueError, match="timezone-aware"):
        StoppedClock().set(naive)
    with pytest.raises(ValueError, match="at least 0"):
        StoppedClock().advance(-1)
