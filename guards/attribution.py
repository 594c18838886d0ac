"""How much each candidate helps: leave-one-out, Shapley, Banzhaf and pair interactions.

Arithmetic only. A *table* is the utility of every coalition, index = coalition as an integer; where a
table would be too long, functions take the coalitions asked and the utilities they gave. NaN (no
measurement) spreads to every effect computed from it: an unmeasured effect is NaN, never 0.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from assay.guards.coalitions import EMPTY, Attributions, Coalition, Utilities, grand, singleton

Table: TypeAlias = npt.NDArray[np.float64]
"""Shape ``(2 ** n,)``: utility of every coalition, indexed by its bits."""

Interactions: TypeAlias = npt.NDArray[np.float64]
"""Shape ``(n, n)``: symmetric, in units of utility, zero diagonal."""

Membership: TypeAlias = npt.NDArray[np.bool_]
"""Shape ``(m, n)``: row per coalition, column per candidate."""

LONGEST_TABLE = 20
"""Most candidates a full table is built for: a million utilities."""


class Walk(NamedTuple):
    """A permutation and its prefixes.

    Attributes:
        order: Candidates in the order they join.
        prefixes: ``n + 1`` coalitions, from the empty to the grand one.
    """

    order: tuple[int, ...]
    prefixes: tuple[Coalition, ...]


def membership(coalitions: Sequence[Coalition], n: int) -> Membership:
    """Who is in which coalition, shape ``(m, n)``; any number of candidates."""
    width = (n + 7) // 8 or 1
    packed = b"".join(coalition.to_bytes(width, "little") for coalition in coalitions)
    rows = np.frombuffer(packed, dtype=np.uint8).reshape(len(coalitions), width)
    return np.unpackbits(rows, axis=1, count=n, bitorder="little").astype(np.bool_)


def single_ablations(n: int) -> list[Coalition]:
    """The grand coalition, then it without each candidate in turn: ``n + 1`` coalitions."""
    everyone = grand(n)
    return [everyone, *(Coalition(everyone & ~singleton(i)) for i in range(n))]


def leave_one_out(utilities: Utilities) -> Attributions:
    """Ablate one candidate at a time: ``v(all) - v(all without i)``.

    Args:
        utilities: Of ``single_ablations(n)``, shape ``(n + 1,)``.

    Returns:
        Shape ``(n,)``, in units of utility; positive means the candidate helps. Zero for every one
        of several redundant copies: an effect near 0 is locally inconclusive, not a verdict.
    """
    return np.asarray(utilities[0] - utilities[1:], dtype=np.float64)


def exact_shapley(table: Table) -> Attributions:
    """Shapley values of a full table (Shapley 1953).

    Args:
        table: Shape ``(2 ** n,)``.

    Returns:
        Shape ``(n,)``; they sum to ``v(all) - v(empty)``.

    Raises:
        ValueError: If the table's length is no power of two.
    """
    n = _players(table)
    sizes = _sizes(n)
    weights = np.array([1.0 / (n * math.comb(n - 1, s)) for s in range(n)])
    values = np.empty(n)
    for i in range(n):
        absent = _absent(n, 1 << i)
        gains = table[absent | (1 << i)] - table[absent]
        values[i] = float(weights[sizes[absent]] @ gains)
    return values


def shapley_interactions(table: Table) -> Interactions:
    """Second-order Shapley interactions of a full table (Grabisch and Roubens 1999).

    ``v(S+ij) - v(S+i) - v(S+j) + v(S)`` averaged with weights ``s! (n-s-2)! / (n-1)!``.

    Raises:
        ValueError: If the table's length is no power of two.
    """
    n = _players(table)
    sizes = _sizes(n)
    weights = np.array([1.0 / ((n - 1) * math.comb(n - 2, s)) for s in range(max(n - 1, 0))])
    result = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1, n):
            absent = _absent(n, 1 << i | 1 << j)
            both, first, second = absent | 1 << i | 1 << j, absent | 1 << i, absent | 1 << j
            joint = table[both] - table[first] - table[second] + table[absent]
            result[i, j] = result[j, i] = float(weights[sizes[absent]] @ joint)
    return result


def exact_banzhaf(table: Table) -> Attributions:
    """Banzhaf values of a full table: mean gain over all coalitions, each equally likely.

    Raises:
        ValueError: If the table's length is no power of two.
    """
    n = _players(table)
    values = np.empty(n)
    for i in range(n):
        absent = _absent(n, 1 << i)
        values[i] = float(np.mean(table[absent | (1 << i)] - table[absent]))
    return values


def sampled_banzhaf(coalitions: Sequence[Coalition], utilities: Utilities, n: int) -> Attributions:
    """Banzhaf values from random coalitions: mean with a candidate minus mean without it.

    Every coalition serves every candidate (Wang and Jia 2023). NaN for a candidate that was always
    in or always out.
    """
    present = membership(coalitions, n)
    values = np.full(n, np.nan)
    for i in range(n):
        inside, outside = utilities[present[:, i]], utilities[~present[:, i]]
        if inside.size and outside.size:
            values[i] = float(inside.mean() - outside.mean())
    return values


def random_walks(
    n: int, permutations: int, rng: np.random.Generator, *, antithetic: bool = False
) -> list[Walk]:
    """Uniform random permutations as walks from the empty to the grand coalition.

    Args:
        n: Number of candidates.
        permutations: How many walks.
        rng: Source of the permutations.
        antithetic: Follow each permutation by its reverse (Mitchell et al. 2022): the same number
            of walks, less variance where gains fall or rise with the coalition's size.
    """
    orders: list[tuple[int, ...]] = []
    while len(orders) < permutations:
        order = tuple(int(i) for i in rng.permutation(n))
        orders.append(order)
        if antithetic:
            orders.append(order[::-1])
    return [_walk(order) for order in orders[:permutations]]


def permutation_shapley(
    walks: Sequence[Walk], utilities: dict[Coalition, float], n: int
) -> Attributions:
    """Shapley values as the mean gain over walks (Castro et al. 2009): unbiased for uniform walks.

    Args:
        walks: Permutations and their prefixes.
        utilities: Of every prefix; a coalition that many walks pass is asked once.
        n: Number of candidates.

    Returns:
        Shape ``(n,)``. Unmeasured gains are left out of a mean; NaN if none was measured.
    """
    gains = np.full((len(walks), n), np.nan)
    for row, walk in enumerate(walks):
        path = np.array([utilities[prefix] for prefix in walk.prefixes])
        gains[row, list(walk.order)] = np.diff(path)
    measured = np.isfinite(gains)
    counts = measured.sum(axis=0)
    totals = np.where(measured, gains, 0.0).sum(axis=0)
    return np.where(counts > 0, totals / np.maximum(counts, 1), np.nan)


def hoeffding_bound(n: int, permutations: int, *, width: float = 1.0, delta: float = 0.05) -> float:
    """Error that no sampled Shapley value exceeds, with probability at least ``1 - delta``.

    A gain lies in an interval of length ``2 * width``; Hoeffding's inequality and a union bound
    over ``n`` candidates: ``width * sqrt(2 ln(2 n / delta) / permutations)``.
    """
    return width * math.sqrt(2.0 * math.log(2.0 * n / delta) / permutations)


def _walk(order: tuple[int, ...]) -> Walk:
    prefixes = [EMPTY]
    for i in order:
        prefixes.append(Coalition(prefixes[-1] | 1 << i))
    return Walk(order, tuple(prefixes))


def _players(table: Table) -> int:
    n = int(table.shape[0]).bit_length() - 1
    if table.shape != (1 << n,):
        raise ValueError(f"a table needs 2 ** n utilities, got shape {table.shape!r}")
    return n


def _sizes(n: int) -> npt.NDArray[np.int64]:
    return np.bitwise_count(np.arange(1 << n, dtype=np.uint64)).astype(np.int64)


def _absent(n: int, bits: int) -> npt.NDArray[np.int64]:
    every = np.arange(1 << n, dtype=np.int64)
    return np.asarray(every[every & bits == 0], dtype=np.int64)
