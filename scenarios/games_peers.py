"""Estimators of the ``shapiq`` package as outside peers, for benchmarks only.

Their coalitions do not depend on values: an estimator is run once on a game that only notes what it
asks, the notes are asked in one stage, and it is run again, from the same seed, on the answers.
"""

import importlib
import math
import warnings
from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from assay.errors import ConfigError
from assay.guards.attribution import Membership
from assay.guards.clearing.answers import Answers
from assay.guards.clearing.probes import Search
from assay.guards.clearing.published import Known, ask_new, verified_filtration
from assay.guards.coalitions import Coalition, coalition_of, grand
from assay.scenarios.games_methods import Method

INSTALL = "pip install 'assay[benchmark]'"

ONLY_WHEN_NAMED = frozenset({"shapiq_proxyspex"})
"""Peers that take seconds to minutes a game, so that "all methods" leaves them out.

ProxySPEX fits boosted trees, which do not split as few answers as there are for 5 candidates: it
measures nothing there, and something from 8 candidates on.
"""

MOST_PASSES = 8
"""Times an estimator may come back for coalitions it had not asked for before."""

PERMUTATIONS = 16
"""The peers get as many distinct evaluations as MeClear touches with this many permutations."""


class _Values(Protocol):
    """What is used of shapiq's result."""

    def get_n_order_values(self, order: int) -> npt.NDArray[np.float64]: ...


class _Approximator(Protocol):
    """What is used of shapiq's estimators."""

    def approximate(self, budget: int, game: Callable[..., npt.NDArray[np.float64]]) -> _Values: ...


Make: TypeAlias = Callable[[int, int], _Approximator]
"""From the number of candidates and a seed to a fresh estimator."""


def peer_methods() -> Mapping[str, Method]:
    """The peers by name; making a search raises ``ConfigError`` where shapiq is not installed."""
    return {
        "shapiq_kernelshap": _peer(lambda n, seed: _of("KernelSHAP")(n=n, random_state=seed)),
        "shapiq_svarm": _peer(lambda n, seed: _of("SVARM")(n=n, random_state=seed)),
        "shapiq_owen": _peer(lambda n, seed: _of("OwenSamplingSV")(n=n, random_state=seed)),
        "shapiq_permutation": _peer(
            lambda n, seed: _of("PermutationSamplingSV")(n=n, random_state=seed)
        ),
        "shapiq_proxyspex": _peer(
            lambda n, seed: _of("ProxySPEX")(n=n, index="SV", random_state=seed)
        ),
    }


def budget_for(n: int) -> int:
    """Distinct coalitions that 16 uniform permutations of ``n`` candidates touch on average."""
    if n < 1:
        return 1
    expected = 0.0
    for k in range(n + 1):
        count = float(math.comb(n, k))
        expected += count * (1.0 - (1.0 - 1.0 / count) ** PERMUTATIONS)
    return max(round(expected), min(1 << n, n + 2))


def _peer(make: Make) -> Method:
    def search(n: int, answers: Answers, rng: np.random.Generator) -> Search:
        return _prefetched(n, make, int(rng.integers(1 << 31)))

    return search


def _prefetched(n: int, make: Make, seed: int) -> Search:
    known: Known = {}
    yield from ask_new([grand(n)], known)
    effects = np.zeros(n)
    for _ in range(MOST_PASSES):
        note = _NotingGame(n, known)
        effects = _run(make, n, seed, note)
        if not note.missing:
            break
        yield from ask_new(list(note.missing), known)
    return (yield from verified_filtration(n, effects, known))


class _NotingGame:
    """Answers from what is known and notes what is not.

    What is not known is answered by the share of candidates shown meanwhile: estimators that fit a
    model cannot fit a constant.
    """

    def __init__(self, n: int, known: Known) -> None:
        self._n = n
        self._known = known
        self.missing: dict[Coalition, None] = {}

    def __call__(self, present: Membership) -> npt.NDArray[np.float64]:
        rows = np.atleast_2d(present)
        asked = [coalition_of(int(i) for i in np.flatnonzero(row)) for row in rows]
        for coalition in asked:
            if coalition not in self._known:
                self.missing[coalition] = None
        shares = rows.mean(axis=1) if self._n else np.zeros(len(rows))
        return np.array(
            [self._known.get(c, float(share)) for c, share in zip(asked, shares, strict=True)]
        )


def _run(make: Make, n: int, seed: int, game: _NotingGame) -> npt.NDArray[np.float64]:
    # The package warns where it corrects an option or enumerates all coalitions; neither matters here.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            values = make(n, seed).approximate(budget_for(n), game)
        except ImportError as error:
            raise ConfigError(f"an outside peer lacks a package: {error}; {INSTALL}") from error
        except (IndexError, ValueError):
            # Some estimators cannot fit answers that are all the same: no measurement.
            return np.full(n, np.nan)
        return np.asarray(values.get_n_order_values(1), dtype=np.float64)


def _of(name: str) -> Callable[..., _Approximator]:
    try:
        module = importlib.import_module("shapiq")
    except ImportError as error:
        raise ConfigError(
            f"the outside peers need the shapiq package, which is not installed; {INSTALL}"
        ) from error
    found: Callable[..., _Approximator] = getattr(module, name)
    return found
