"""A small lasso, for the linear surrogate of random ablations (Cohen-Wang et al. 2024, ContextCite)."""

import numpy as np
import numpy.typing as npt

from assay.guards.attribution import Membership
from assay.guards.coalitions import Attributions, Utilities

KEEP = 0.5
"""Chance that a candidate is kept in one ablation."""

ABLATIONS = 64


def surrogate(
    present: Membership, utilities: Utilities, *, penalty: float = 0.01, sweeps: int = 1000
) -> Attributions:
    """Weights of a sparse linear model of utility on membership.

    Minimises ``|v - b - Xw|^2 / (2 m) + penalty * |w|_1`` with an unpenalised intercept, by cyclic
    coordinate descent with soft thresholding (Friedman et al. 2007). Unmeasured rows are left out.

    Args:
        present: Shape ``(m, n)``.
        utilities: Shape ``(m,)``.
        penalty: At least 0, in units of utility.
        sweeps: Most passes over the candidates.

    Returns:
        Shape ``(n,)``, in units of utility; all NaN if nothing was measured.
    """
    measured = np.isfinite(utilities)
    n: int = present.shape[1]
    if not measured.any():
        return np.full(n, np.nan)
    columns: npt.NDArray[np.float64] = present[measured].astype(np.float64)
    columns = np.asarray(columns - columns.mean(axis=0), dtype=np.float64)
    target = utilities[measured] - utilities[measured].mean()
    rows = columns.shape[0]
    gram: npt.NDArray[np.float64] = np.asarray(columns.T @ columns / rows, dtype=np.float64)
    pull: npt.NDArray[np.float64] = np.asarray(columns.T @ target / rows, dtype=np.float64)
    return _descend(gram, pull, penalty, sweeps)


def _descend(
    gram: npt.NDArray[np.float64], pull: npt.NDArray[np.float64], penalty: float, sweeps: int
) -> Attributions:
    weights = np.zeros(pull.shape[0])
    for _ in range(sweeps):
        moved = 0.0
        for i in np.flatnonzero(np.diag(gram) > 0):
            rest = pull[i] - gram[i] @ weights + gram[i, i] * weights[i]
            step = np.sign(rest) * max(abs(rest) - penalty, 0.0) / gram[i, i]
            moved = max(moved, abs(step - weights[i]))
            weights[i] = step
        if moved < 1e-10:  # noqa: PLR2004  # far below any utility that matters
            break
    return weights
