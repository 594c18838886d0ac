"""Intervals and tests for figures over examples that come in conversations.

Examples of one conversation are not independent, so intervals resample whole conversations and the
sign-flip test flips whole conversations.
"""

import math
from collections.abc import Sequence
from itertools import product
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatVector = npt.NDArray[np.float64]

_EXACT_UP_TO = 14
"""Conversations up to which every one of the ``2 ** n`` sign flips is enumerated."""


class Interval(NamedTuple):
    """A mean with its interval; the bounds are ``None`` where fewer than two clusters exist."""

    mean: float | None
    low: float | None
    high: float | None


def bootstrap_interval(
    values: Sequence[float],
    clusters: Sequence[str],
    *,
    seed: int,
    level: float = 0.95,
    resamples: int = 2000,
) -> Interval:
    """Percentile bootstrap of the mean over examples, resampling clusters (Efron 1979).

    Args:
        values: One per example; none gives an interval of ``None``.
        clusters: The cluster of each example.
        seed: Of the resampling; the same seed gives the same interval.
        level: Coverage, in (0, 1).
        resamples: How many.

    Raises:
        ValueError: If the lengths differ or the level is not in (0, 1).
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level!r}")
    sums, counts = _by_cluster(values, clusters)
    if not len(counts):
        return Interval(None, None, None)
    mean = math.fsum(values) / len(values)
    if len(counts) == 1:
        return Interval(mean, None, None)
    rng = np.random.default_rng(seed)
    picks = rng.integers(0, len(counts), size=(resamples, len(counts)))
    means = sums[picks].sum(axis=1) / counts[picks].sum(axis=1)
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(mean, float(low), float(high))


def wilson(hits: int, n: int) -> Interval:
    """A share of independent trials with its 95 % score interval (Wilson 1927, equation 2).

    Args:
        hits: Trials that succeeded, in [0, n].
        n: How many trials; none gives an interval of ``None``.

    Raises:
        ValueError: If ``hits`` is not in [0, n].
    """
    if not 0 <= hits <= n:
        raise ValueError(f"hits must be in [0, {n}], got {hits!r}")
    if n == 0:
        return Interval(None, None, None)
    z = NormalDist().inv_cdf(0.975)
    share, spread = hits / n, z * z / n
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt((share * (1 - share) + spread / 4) / n)
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))


def mcnemar(first_only: int, second_only: int) -> float:
    """Two-sided exact McNemar test on discordant pairs.

    Args:
        first_only: Pairs that only the first method got right.
        second_only: Pairs that only the second got right.

    Returns:
        The p-value; 1 when there is no discordant pair.
    """
    n = first_only + second_only
    tail = sum(math.comb(n, k) for k in range(min(first_only, second_only) + 1))
    return float(min(1.0, 2 * tail / 2**n))


def sign_flip(
    differences: Sequence[float],
    clusters: Sequence[str],
    *,
    seed: int,
    resamples: int = 9999,
) -> float:
    """Two-sided paired sign-flip test of a zero mean difference, flipping whole clusters.

    Exact up to 14 clusters, else by ``resamples`` random flips.

    Args:
        differences: One per example: first method minus second.
        clusters: The cluster of each example.
        seed: Of the random flips.
        resamples: How many, where they are random.

    Returns:
        The p-value in (0, 1]; 1 without any example.
    """
    sums, _ = _by_cluster(differences, clusters)
    n = len(sums)
    if n <= _EXACT_UP_TO:
        flips = np.array(list(product((-1.0, 1.0), repeat=n)), dtype=np.float64)
        reached: FloatVector = np.abs(flips @ sums)
        return float(int(np.sum(reached >= abs(sums.sum()) - 1e-12)) / 2**n)
    signs = np.random.default_rng(seed).choice((-1, 1), size=(resamples, n))
    extreme = int(np.sum(np.abs(signs @ sums) >= abs(sums.sum()) - 1e-12))
    return (extreme + 1) / (resamples + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment (Holm 1979), in the order given."""
    m = len(p_values)
    adjusted = [0.0] * m
    running = 0.0
    for rank, i in enumerate(sorted(range(m), key=lambda i: p_values[i])):
        running = max(running, min(1.0, (m - rank) * p_values[i]))
        adjusted[i] = running
    return adjusted


def _by_cluster(
    values: Sequence[float], clusters: Sequence[str]
) -> tuple[FloatVector, FloatVector]:
    if len(values) != len(clusters):
        raise ValueError(f"{len(values)} values but {len(clusters)} clusters")
    names = {name: i for i, name in enumerate(sorted(set(clusters)))}
    where = np.array([names[name] for name in clusters], dtype=np.intp)
    weights = np.asarray(values, dtype=np.float64)
    sums = np.bincount(where, weights=weights, minlength=len(names))
    counts = np.bincount(where, minlength=len(names))
    return sums.astype(np.float64), counts.astype(np.float64)
