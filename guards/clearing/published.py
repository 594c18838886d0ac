"""Clearing by attribution: MeClear as published, and the attributions it is compared with.

Each asks its coalitions in one stage (they do not depend on values), ranks candidates by effect, and
verifies the nested filtration by the single check of the paper: a cached value counts.
"""

from collections.abc import Callable, Generator, Sequence
from typing import TypeAlias

import numpy as np

from assay.guards.attribution import (
    LONGEST_TABLE,
    Interactions,
    Table,
    exact_banzhaf,
    exact_shapley,
    leave_one_out,
    membership,
    permutation_shapley,
    random_walks,
    sampled_banzhaf,
    shapley_interactions,
    single_ablations,
)
from assay.guards.clearance import (
    RIGHT,
    TAU,
    choose,
    filtration,
    harmful,
    harmful_by_deletion,
    minimal_deletions,
    ranked,
)
from assay.guards.clearing.probes import Batch, Certificate, Clearing, Probe, Search, anytime
from assay.guards.coalitions import (
    EMPTY,
    Attributions,
    Coalition,
    Utilities,
    coalition_of,
    contains,
    grand,
    without,
)
from assay.guards.lasso import ABLATIONS, KEEP, surrogate

Known: TypeAlias = dict[Coalition, float]
"""Utilities asked so far; NaN: no measurement."""

Effects: TypeAlias = Callable[[Known], Attributions]


def meclear(
    n: int, rng: np.random.Generator, *, permutations: int = 16, antithetic: bool = False
) -> Search:
    """MeClear: sampled Shapley values, then the verified filtration.

    Args:
        n: Number of candidates.
        rng: Source of the permutations.
        permutations: L of the paper; 16 touches 28 distinct coalitions of 5 candidates.
        antithetic: Pair each permutation with its reverse.
    """
    walks = random_walks(n, permutations, rng, antithetic=antithetic)
    asked = [prefix for walk in walks for prefix in walk.prefixes]
    return by_effects(n, asked, lambda known: permutation_shapley(walks, known, n))


def by_leave_one_out(n: int) -> Search:
    """Leave-one-out effects, then the verified filtration."""
    asked = single_ablations(n)
    return by_effects(n, asked, lambda known: leave_one_out(_values(asked, known)))


def by_exact_shapley(n: int) -> Search:
    """Exact Shapley values of the full table, then the verified filtration; ``2 ** n`` evaluations.

    Raises:
        ValueError: If the table would have more than 2 ** 20 entries.
    """
    asked = _every(n)
    return by_effects(n, asked, lambda known: exact_shapley(_values(asked, known)))


def by_exact_deletion(n: int) -> Search:
    """The smallest recovering deletion of the full table; the effects are only reported.

    Raises:
        ValueError: If the table would have more than 2 ** 20 entries.
    """
    asked, known = _every(n), Known()
    return anytime(_exact_deletion(n, asked, known), lambda: _best(n, known))


def by_context_cite(n: int, rng: np.random.Generator, *, ablations: int = ABLATIONS) -> Search:
    """A lasso on random ablations, then the verified filtration."""
    asked = _random_coalitions(n, ablations, rng)
    present = membership(asked, n)
    return by_effects(n, asked, lambda known: surrogate(present, _values(asked, known)))


def by_banzhaf(n: int, rng: np.random.Generator, *, ablations: int = ABLATIONS) -> Search:
    """Banzhaf values, from the full table if it is no longer than the sample, then the filtration."""
    if 1 << n <= ablations:
        table = _every(n)
        return by_effects(n, table, lambda known: exact_banzhaf(_values(table, known)))
    asked = _random_coalitions(n, ablations, rng)
    return by_effects(n, asked, lambda known: sampled_banzhaf(asked, _values(asked, known), n))


def by_effects(n: int, asked: Sequence[Coalition], effects: Effects) -> Search:
    """Any attribution whose coalitions are known in advance, then MeClear's filtration.

    Args:
        n: Number of candidates.
        asked: Coalitions the attribution needs; the grand coalition is added.
        effects: From their utilities to effects.
    """
    known = Known()
    return anytime(_by_effects(n, asked, effects, known), lambda: _best(n, known))


def verified_filtration(n: int, effects: Attributions, known: Known) -> Search:
    """Ask what is missing of the nested family of harmful candidates, and choose.

    A context that already does its task is left alone.
    """
    order = harmful(effects, TAU)
    family = filtration(order)
    contexts = [without(grand(n), cleared) for cleared in family]
    yield from ask_new(contexts, known)
    choice = choose(family, known, n)
    return Clearing(
        flagged=coalition_of(order),
        cleared=choice.cleared,
        order=tuple(ranked(effects)),
        certificate="recovered" if choice.recovered else _unchanged(n, known),
        unmeasured=_unmeasured(known),
        tested=tuple(family[1:]),
        effects=effects,
        pairs=_pairs(n, known),
    )


def ask_new(coalitions: Sequence[Coalition], known: Known) -> Generator[Batch, Utilities, None]:
    """Ask the coalitions not known yet, in one stage; a cached value is never redrawn."""
    new = list(dict.fromkeys(c for c in coalitions if c not in known))
    if new:
        utilities = yield [Probe(coalition) for coalition in new]
        known.update(zip(new, map(float, utilities), strict=True))


def _by_effects(n: int, asked: Sequence[Coalition], effects: Effects, known: Known) -> Search:
    yield from ask_new([grand(n), *asked], known)
    return (yield from verified_filtration(n, effects(known), known))


def _exact_deletion(n: int, asked: Sequence[Coalition], known: Known) -> Search:
    yield from ask_new(asked, known)
    table: Table = _values(asked, known)
    smallest = minimal_deletions(known, n)
    blamed = harmful_by_deletion(known, n)
    values = exact_shapley(table)
    cleared = max(smallest, key=lambda d: known[without(grand(n), d)], default=EMPTY)
    by_value = ranked(values)
    return Clearing(
        flagged=blamed,
        cleared=cleared,
        order=(
            *(i for i in by_value if contains(blamed, i)),
            *(i for i in by_value if not contains(blamed, i)),
        ),
        certificate="recovered" if cleared else _unchanged(n, known),
        unmeasured=_unmeasured(known),
        tested=tuple(smallest),
        effects=values,
        pairs=shapley_interactions(table),
    )


def _best(n: int, known: Known) -> Clearing:
    """Budget ended: the smallest deletion among what was asked that recovers."""
    smallest = minimal_deletions(known, n)
    cleared = smallest[0] if smallest else EMPTY
    first = [i for i in range(n) if contains(cleared, i)]
    return Clearing(
        flagged=cleared,
        cleared=cleared,
        order=(*first, *(i for i in range(n) if not contains(cleared, i))),
        certificate="recovered" if cleared else _unchanged(n, known),
        stopped=True,
        unmeasured=_unmeasured(known),
    )


def _unchanged(n: int, known: Known) -> Certificate:
    return "clean" if known.get(grand(n), 0.0) >= RIGHT else "none"


def _values(asked: Sequence[Coalition], known: Known) -> Utilities:
    return np.array([known[coalition] for coalition in asked], dtype=np.float64)


def _unmeasured(known: Known) -> int:
    return sum(not np.isfinite(value) for value in known.values())


def _pairs(n: int, known: Known) -> Interactions | None:
    """Pair interactions cost nothing once every coalition was asked."""
    if n > LONGEST_TABLE or len(known) < 1 << n:
        return None
    return shapley_interactions(_values(_every(n), known))


def _every(n: int) -> list[Coalition]:
    if n > LONGEST_TABLE:
        raise ValueError(f"a full table takes at most {LONGEST_TABLE} candidates, got {n!r}")
    return [Coalition(bits) for bits in range(1 << n)]


def _random_coalitions(n: int, count: int, rng: np.random.Generator) -> list[Coalition]:
    kept = rng.random((count, n)) < KEEP
    return [coalition_of(int(i) for i in np.flatnonzero(row)) for row in kept]
