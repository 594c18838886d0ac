"""How many cores are idle: llama.cpp's threads wait for one another, so more than that are slower."""

import os
import time
from pathlib import Path

_STAT = Path("/proc/stat")
_IDLE = slice(3, 5)
"""Fields of a ``cpu`` line that count idle time: idle, and waiting for a disk."""


def usable_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def idle_cores(*, seconds: float = 0.2) -> int:
    """Cores of this process with nothing to do just now, at least 1; blocking.

    Args:
        seconds: How long to look.

    Returns:
        All usable cores where the system does not tell (it is read from ``/proc/stat``).
    """
    before = _ticks()
    if before is None:
        return usable_cores()
    time.sleep(seconds)
    after = _ticks()
    return count_idle(before, after or before, cores=usable_cores())


def count_idle(before: list[int], after: list[int], *, cores: int) -> int:
    """Idle cores between two readings of the system's ticks, in [1, cores].

    Args:
        before: Ticks by kind, as in the first line of ``/proc/stat``.
        after: The same, later.
        cores: How many there are.
    """
    passed = [later - earlier for earlier, later in zip(before, after, strict=True)]
    total = sum(passed)
    if total <= 0:
        return cores
    return max(1, min(cores, round(cores * sum(passed[_IDLE]) / total)))


def _ticks() -> list[int] | None:
    try:
        name, *ticks = _STAT.read_text(encoding="ascii").split("\n", 1)[0].split()
    except (OSError, UnicodeDecodeError, ValueError):
        return None
    # Guest time, the last two fields, is in user time already.
    return [int(tick) for tick in ticks[:8]] if name == "cpu" and len(ticks) >= 5 else None  # noqa: PLR2004
