"""Coalitions as bit sets: candidate ``i`` is in coalition ``c`` iff bit ``i`` of ``c`` is set.

Python integers, so any number of candidates fits; nothing overflows at 63.
"""

from collections.abc import Iterable, Iterator
from typing import NewType, TypeAlias

import numpy as np
import numpy.typing as npt

Coalition = NewType("Coalition", int)

Utilities: TypeAlias = npt.NDArray[np.float64]
"""Shape ``(m,)``: one utility per coalition asked; NaN where there was no measurement."""

Attributions: TypeAlias = npt.NDArray[np.float64]
"""Shape ``(n,)``: one effect per candidate, in units of utility; positive means it helps."""

EMPTY = Coalition(0)


def grand(n: int) -> Coalition:
    """The coalition of all ``n`` candidates."""
    return Coalition((1 << n) - 1)


def singleton(i: int) -> Coalition:
    """The coalition of candidate ``i`` alone."""
    return Coalition(1 << i)


def coalition_of(members: Iterable[int]) -> Coalition:
    """The coalition of these candidates."""
    bits = 0
    for i in members:
        bits |= 1 << i
    return Coalition(bits)


def union(a: Coalition, b: Coalition) -> Coalition:
    """Candidates in either."""
    return Coalition(a | b)


def without(a: Coalition, b: Coalition) -> Coalition:
    """Candidates of ``a`` that are not in ``b``."""
    return Coalition(a & ~b)


def contains(coalition: Coalition, i: int) -> bool:
    """Whether candidate ``i`` is in it."""
    return bool(coalition >> i & 1)


def is_subset(a: Coalition, b: Coalition) -> bool:
    """Whether every candidate of ``a`` is in ``b``."""
    return not a & ~b


def members(coalition: Coalition) -> list[int]:
    """The candidates in it, ascending."""
    return list(_bits(coalition))


def size(coalition: Coalition) -> int:
    """How many candidates are in it."""
    return coalition.bit_count()


def subsets(coalition: Coalition) -> Iterator[Coalition]:
    """Every subset, from the empty one up in numeric order; ``2 ** size`` of them."""
    current = 0
    while True:
        yield Coalition(current)
        if current == coalition:
            return
        current = (current - coalition) & coalition


def _bits(coalition: int) -> Iterator[int]:
    while coalition:
        lowest = coalition & -coalition
        yield lowest.bit_length() - 1
        coalition ^= lowest
