"""The only sources of time: the machine's clock, and one that stands still until it is moved."""

import time
from datetime import UTC, datetime, timedelta


class SystemClock:
    """The clock of the machine this runs on."""

    def now(self) -> datetime:
        """The time of day in UTC; it may jump when the machine's clock is set."""
        return datetime.now(UTC)  # noqa: TID251 - the one place that reads the machine's clock

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""
        return time.monotonic()


class StoppedClock:
    """A clock for tests and simulations: it moves only when told to.

    Args:
        start: The time of day it begins at, timezone-aware.

    Raises:
        ValueError: If ``start`` is naive.
    """

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = _in_utc(start)
        self._monotonic = 0.0

    def now(self) -> datetime:
        """The time of day it was last set or advanced to, in UTC."""
        return self._now

    def monotonic(self) -> float:
        """Seconds it has been advanced by since it was made; :meth:`set` does not change it."""
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass, on both scales.

        Raises:
            ValueError: If ``seconds`` is negative; to turn the time of day back, use :meth:`set`.
        """
        if seconds < 0:
            raise ValueError(f"seconds must be at least 0, got {seconds!r}; use set() to go back")
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds

    def set(self, moment: datetime) -> None:
        """Make the time of day jump, backwards too; elapsed seconds stay as they are.

        Raises:
            ValueError: If ``moment`` is naive.
        """
        self._now = _in_utc(moment)


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"expected a timezone-aware time, got the naive {moment!r}")
    return moment.astimezone(UTC)
