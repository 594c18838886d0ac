"""A posterior over fault structures: what the answers so far say about gold and harm."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from assay.guards.attribution import membership
from assay.guards.clearing.structures import (
    MOST_CELLS,
    Formula,
    Formulas,
    PriorName,
    gold_formulas,
    harm_formulas,
    prior,
    tabulate,
)
from assay.guards.coalitions import Coalition

Mass: TypeAlias = npt.NDArray[np.float64]
"""Shape ``(golds, harms)``: posterior probability of each pair of hypotheses."""

NEVER_ENOUGH = 0.01
"""Prior chance that no subset of the candidates does the task."""

NOTHING_HARMS = 0.02
"""Prior chance that no candidate harms; the grand coalition was answered wrong, after all."""

NONE_OF_THESE = 0.01
"""Prior chance that no enumerated structure describes the context."""

NEGLIGIBLE = 1e-9
"""Posterior mass below which a gold or a harm is given up for good."""

WORTH_IT = 0.7
"""Share of the table that must be left for forgetting not to be worth a copy."""

BASE_RATE = 0.25
"""Chance of a right answer when no enumerated structure describes the context."""


class Space(NamedTuple):
    """The hypotheses over ``n`` candidates and their prior; shared by all games of one size."""

    golds: Formulas
    harms: Formulas
    mass: Mass


class Belief(NamedTuple):
    """The best explanation.

    Attributes:
        harm: The most probable harm among those that blame the most probable candidates.
        mass: Posterior probability that exactly these candidates are harmful.
    """

    harm: Formula
    mass: float


class Draws(NamedTuple):
    """Hypotheses drawn from the posterior: rows of ``golds`` and ``harms``."""

    golds: npt.NDArray[np.intp]
    harms: npt.NDArray[np.intp]


@lru_cache(maxsize=8)
def space_of(n: int, name: PriorName) -> Space | None:
    """Hypotheses over ``n`` candidates with a prior; ``None`` if even the simple ones are too many."""
    golds = tabulate(gold_formulas(n), n)
    most = MOST_CELLS // len(golds.rows)
    harms = tabulate(harm_formulas(n, most), n)
    if not any(row.kind == "joint" for row in harms.rows) and n > 1:
        return None
    mass = np.outer(
        prior(golds, name, {"never": NEVER_ENOUGH}), prior(harms, name, {"none": NOTHING_HARMS})
    )
    mass *= golds.mentions.astype(np.float32) @ harms.mentions.T.astype(np.float32) == 0
    return Space(golds, harms, mass / mass.sum())


class Posterior:
    """Bayes' rule over a ``Space``, plus one hypothesis that none of it fits.

    Args:
        n: Number of candidates.
        space: The hypotheses and their prior.
    """

    def __init__(self, n: int, space: Space) -> None:
        self._n = n
        self._golds = space.golds
        self._harms = space.harms
        self._mass = space.mass.copy()
        self._misfit = NONE_OF_THESE
        blamed = [row.mentioned for row in space.harms.rows]
        index = {bits: k for k, bits in enumerate(dict.fromkeys(blamed))}
        self._blame = np.array([index[bits] for bits in blamed])

    @property
    def misfit(self) -> float:
        """Posterior probability that no enumerated structure describes the context."""
        return self._misfit

    def observe(self, context: Coalition, log_odds: float) -> None:
        """Take in one answer: natural log of P(answer | right) / P(answer | wrong)."""
        present = membership([context], self._n)
        gold = self._golds.truth(present)[0]
        harmless = ~self._harms.truth(present)[0]
        likelihood_right, likelihood_wrong = _likelihoods(log_odds)
        right = np.flatnonzero(gold)[:, None], np.flatnonzero(harmless)[None, :]
        total = self._mass.sum()
        in_right = self._mass[right].sum()
        self._mass[right] *= likelihood_right / likelihood_wrong
        fitted = in_right * likelihood_right + (total - in_right) * likelihood_wrong
        rate = BASE_RATE * likelihood_right + (1 - BASE_RATE) * likelihood_wrong
        self._misfit *= rate / (self._misfit * rate + (1 - self._misfit) * fitted)
        self._mass /= self._mass.sum()
        self._forget_the_impossible()

    def _forget_the_impossible(self) -> None:
        """Drop golds and harms with next to no mass: later answers then cost less to take in."""
        golds = np.flatnonzero(self._mass.sum(axis=1) > NEGLIGIBLE)
        harms = np.flatnonzero(self._mass.sum(axis=0) > NEGLIGIBLE)
        if golds.size * harms.size > self._mass.size * WORTH_IT:
            return
        self._mass = self._mass[np.ix_(golds, harms)]
        self._mass /= self._mass.sum()
        self._golds, self._harms = _subset(self._golds, golds), _subset(self._harms, harms)
        self._blame = self._blame[harms]

    def belief(self) -> Belief:
        """The most probable set of harmful candidates."""
        by_harm = self._mass.sum(axis=0)
        by_blame = np.bincount(self._blame, weights=by_harm)
        best = int(by_blame.argmax())
        candidates = np.where(self._blame == best, by_harm, -1.0)
        return Belief(self._harms.rows[int(candidates.argmax())], float(by_blame[best]))

    def hopeless(self) -> float:
        """Probability that no subset of the candidates does the task."""
        never = [k for k, row in enumerate(self._golds.rows) if row.kind == "never"]
        return float(self._mass[never].sum())

    def blame(self) -> npt.NDArray[np.float64]:
        """Probability of each candidate to be harmful, shape ``(n,)``."""
        return np.asarray(self._mass.sum(axis=0) @ self._harms.mentions, dtype=np.float64)

    def draw(self, count: int, rng: np.random.Generator) -> Draws:
        """Hypotheses drawn by systematic resampling; few draws cover the mass well."""
        cumulative: npt.NDArray[np.float64] = self._mass.ravel().cumsum()
        points = (rng.random() + np.arange(count)) / count * cumulative[-1]
        # numpy's stubs leave the type of the places open.
        places = cast("npt.NDArray[np.intp]", np.digitize(points, cumulative))
        flat = np.minimum(places, cumulative.shape[0] - 1)
        return Draws(flat // self._mass.shape[1], flat % self._mass.shape[1])

    def blamed(self, draws: Draws) -> npt.NDArray[np.intp]:
        """A number per drawn hypothesis; the same number means the same harmful candidates."""
        return np.asarray(self._blame[draws.harms], dtype=np.intp)

    def predict(self, contexts: Sequence[Coalition], draws: Draws) -> npt.NDArray[np.bool_]:
        """Whether each context is right under each drawn hypothesis, shape ``(m, draws)``."""
        present = membership(contexts, self._n)
        golds = _rows(self._golds, draws.golds).truth(present)
        return golds & ~_rows(self._harms, draws.harms).truth(present)

    def hypotheses(self, draws: Draws) -> list[tuple[Coalition, Coalition]]:
        """Gold and harm of each drawn hypothesis, as coalitions."""
        golds, harms = self._golds.rows, self._harms.rows
        return [
            (golds[int(g)].mentioned, harms[int(h)].mentioned)
            for g, h in zip(draws.golds, draws.harms, strict=True)
        ]


def _subset(formulas: Formulas, rows: npt.NDArray[np.intp]) -> Formulas:
    kept = tuple(formulas.rows[int(row)] for row in rows)
    return Formulas(kept, formulas.any_of[rows], formulas.all_of[rows], formulas.mentions[rows])


def _likelihoods(log_odds: float) -> tuple[float, float]:
    right = 1.0 / (1.0 + float(np.exp(-log_odds)))
    return right, 1.0 - right


def _rows(formulas: Formulas, rows: npt.NDArray[np.intp]) -> Formulas:
    """Like ``_subset`` without the formulas themselves: for truth only, row numbers repeat."""
    return Formulas((), formulas.any_of[rows], formulas.all_of[rows], formulas.mentions[rows])
