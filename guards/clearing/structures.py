"""Hypotheses about a context: which evidence the task needs, and which candidates harm it.

A context is right iff its gold condition holds and no harm is active. Both are small formulas over
"candidate i is shown": *any of* up to four candidates, or *both of* two.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from assay.guards.attribution import Membership
from assay.guards.coalitions import Coalition, coalition_of

PriorName: TypeAlias = Literal["even", "flat", "simple"]

MOST_CELLS = 3_000_000
"""Most pairs of gold and harm that are enumerated; beyond, richer kinds of harm are left out."""

Truth: TypeAlias = npt.NDArray[np.bool_]
"""Shape ``(m, formulas)``: whether a formula holds in a context."""


class Formula(NamedTuple):
    """Holds when any of ``any_of`` is shown or, if there are any, all of ``all_of`` are.

    Attributes:
        kind: Its family, which carries the prior.
        any_of: Each alone suffices.
        all_of: Two that are needed together.
        always: Holds whatever is shown.
    """

    kind: str
    any_of: tuple[int, ...] = ()
    all_of: tuple[int, ...] = ()
    always: bool = False

    @property
    def mentioned(self) -> Coalition:
        """Candidates the formula speaks of."""
        return coalition_of((*self.any_of, *self.all_of))


@dataclass(frozen=True, slots=True)
class Formulas:
    """Formulas as index arrays, so that a batch of contexts is judged at once.

    Attributes:
        rows: The formulas.
        any_of: Shape ``(f, 4)``, padded with a column that is never shown.
        all_of: Shape ``(f, 2)``, padded likewise.
        mentions: Shape ``(f, n)``.
    """

    rows: tuple[Formula, ...]
    any_of: npt.NDArray[np.intp]
    all_of: npt.NDArray[np.intp]
    mentions: Membership

    def truth(self, present: Membership) -> Truth:
        """Shape ``(m, f)`` for contexts of shape ``(m, n)``."""
        m = present.shape[0]
        never, ever = np.zeros((m, 1), np.bool_), np.ones((m, 1), np.bool_)
        shown = np.concatenate([present, never, ever], axis=1)
        holds = shown[:, self.all_of[:, 0]] & shown[:, self.all_of[:, 1]]
        for column in range(self.any_of.shape[1]):
            holds |= shown[:, self.any_of[:, column]]
        return np.asarray(holds, dtype=np.bool_)


def tabulate(rows: tuple[Formula, ...], n: int) -> Formulas:
    """Index arrays of these formulas over ``n`` candidates."""
    any_of = np.full((len(rows), 4), n, np.intp)
    all_of = np.full((len(rows), 2), n, np.intp)
    mentions = np.zeros((len(rows), n), np.bool_)
    for k, row in enumerate(rows):
        any_of[k, : len(row.any_of)] = row.any_of
        if row.all_of:
            all_of[k] = row.all_of
        if row.always:
            any_of[k, 0] = n + 1
        mentions[k, [*row.any_of, *row.all_of]] = True
    return Formulas(rows, any_of, all_of, mentions)


def gold_formulas(n: int) -> tuple[Formula, ...]:
    """Evidence: nothing needed, one record, both of a pair, either of a pair, or never enough."""
    pairs = list(combinations(range(n), 2))
    return (
        Formula("never"),
        Formula("ungated", always=True),
        *(Formula("single", any_of=(i,)) for i in range(n)),
        *(Formula("and", all_of=pair) for pair in pairs),
        *(Formula("or", any_of=pair) for pair in pairs),
    )


def harm_formulas(n: int, most: int) -> tuple[Formula, ...]:
    """Harm: none, one record, copies, a joint pair, one record and a joint pair; at most ``most``.

    Kinds are added from the simple to the rich as long as they fit.
    """
    rows: list[Formula] = [Formula("none")]
    kinds: list[tuple[int, Callable[[int], Iterator[Formula]]]] = [
        (n, _copies(1)),
        (n * (n - 1) // 2, _copies(2)),
        (n * (n - 1) // 2, _joint),
        (n * (n - 1) * (n - 2) // 6, _copies(3)),
        (n * (n - 1) * (n - 2) // 2, _direct_and_joint),
        (n * (n - 1) * (n - 2) * (n - 3) // 24, _copies(4)),
    ]
    for count, make in kinds:
        if len(rows) + count <= most:
            rows += make(n)
    return tuple(rows)


def prior(
    formulas: Formulas, name: PriorName, rare: Mapping[str, float]
) -> npt.NDArray[np.float64]:
    """Prior mass of each formula.

    Args:
        formulas: The hypotheses.
        name: ``even``: every kind the same mass, spread evenly inside it; ``flat``: every
            hypothesis the same; ``simple``: each further candidate in a hypothesis divides its kind
            by two. None of them is the mix of a benchmark's generator.
        rare: Kinds with a fixed small mass instead.
    """
    kinds = [row.kind for row in formulas.rows]
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    if name == "flat":
        mass = np.array([1.0 for _ in kinds])
    else:
        mass = np.array([1.0 / counts[kind] for kind in kinds])
    if name == "simple":
        mass *= 0.5 ** formulas.mentions.sum(axis=1)
    is_rare = np.array([kind in rare for kind in kinds])
    mass[~is_rare] *= (1.0 - sum(rare.values())) / max(mass[~is_rare].sum(), 1e-300)
    for k in np.flatnonzero(is_rare):
        mass[k] = rare[kinds[k]] / counts[kinds[k]]
    return np.asarray(mass / mass.sum(), dtype=np.float64)


def deletions(harm: Formula) -> tuple[Coalition, ...]:
    """The smallest withholdings that switch a harm off: one per way to break its joint part."""
    always = coalition_of(harm.any_of)
    if not harm.all_of:
        return (always,)
    return tuple(Coalition(always | 1 << i) for i in harm.all_of)


def _copies(r: int) -> Callable[[int], Iterator[Formula]]:
    def make(n: int) -> Iterator[Formula]:
        for group in combinations(range(n), r):
            yield Formula(f"copies{r}", any_of=group)

    return make


def _joint(n: int) -> Iterator[Formula]:
    for pair in combinations(range(n), 2):
        yield Formula("joint", all_of=pair)


def _direct_and_joint(n: int) -> Iterator[Formula]:
    for pair in combinations(range(n), 2):
        for i in range(n):
            if i not in pair:
                yield Formula("direct+joint", any_of=(i,), all_of=pair)
