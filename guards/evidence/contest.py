"""A contest between two records: what they claim against each other, and whom the turns support."""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from assay.guards.evidence.brief import Brief
from assay.guards.evidence.denial import Polarity
from assay.guards.evidence.relevance import Likeness
from assay.guards.evidence.times import agreement_of

_FLOOR: Final = 0.2
_BEARING: Final = 0.3
_LONE: Final = 0.3
_COMPANY: Final = 2


class Contest(NamedTuple):
    """Two records weighed against each other by the turns found for either.

    Attributes:
        left: Support for what only the first claims, in [-1, 1].
        right: The same for the second.
        times: Difference in agreement of claimed times, in [-1.1, 1.1]; positive for the first.
            0 unless both claim one.
        is_contested: Whether each claims something the other does not, or both claim a time.
        turns: Ids of the turns closest to the matter.
    """

    left: float
    right: float
    times: float
    is_contested: bool
    turns: tuple[str, ...]

    def reversed(self) -> "Contest":
        """The same contest seen from the second record."""
        return self._replace(left=self.right, right=self.left, times=-self.times)


def contest(brief: Brief, i: int, j: int) -> Contest:
    """Weigh candidate ``i`` against candidate ``j``."""
    pool = brief.pool(i, j)
    weights = brief.weights(pool, i, j)
    said = [brief.said[t] for t in pool]
    floored = _FLOOR + (1 - _FLOOR) * weights
    for_left, for_right = (floored * together(brief, k, pool) for k in (i, j))
    left, right = _only(brief, i, j), _only(brief, j, i)
    left_times = agreement_of(brief, i, pool, weights)
    right_times = agreement_of(brief, j, pool, weights)
    both_times = left_times is not None and right_times is not None
    return Contest(
        left=support(left, said, for_left, brief.speakers),
        right=support(right, said, for_right, brief.speakers),
        times=left_times - right_times
        if left_times is not None and right_times is not None
        else 0.0,
        is_contested=both_times or (any(left) and any(right)),
        turns=closest(brief, pool, weights),
    )


def together(brief: Brief, i: int, pool: Sequence[int]) -> Likeness:
    """How far each turn holds more than one word of a candidate, in [_LONE, 1].

    A turn that shares a single word with a record, be it the contested value, hardly speaks of it.
    """
    own = brief.claims[i].affirmed | brief.claims[i].denied
    own -= brief.speakers
    shared = (len(own & (brief.said[t].affirmed | brief.said[t].denied)) for t in pool)
    return np.array([_LONE + (1 - _LONE) * min(max(n - 1, 0) / _COMPANY, 1.0) for n in shared])


def closest(brief: Brief, pool: Sequence[int], weights: Likeness) -> tuple[str, ...]:
    """Ids of the turns closest to the matter, ascending."""
    near = zip(pool, weights, strict=True)
    return tuple(str(brief.turns[t].id) for t, weight in near if weight >= _BEARING)


def _only(brief: Brief, i: int, j: int) -> Polarity:
    """What candidate ``i`` claims and ``j`` does not, the question's words apart.

    Speakers' names are kept only where nothing else is left: they are in every turn, so they would
    find support for anything.
    """
    mine, yours = brief.claims[i], brief.claims[j]
    affirmed = mine.affirmed - yours.affirmed - brief.asked
    return Polarity(
        affirmed=affirmed - brief.speakers or affirmed,
        denied=mine.denied - yours.denied - brief.speakers,
    )


def support(
    claims: Polarity, said: Sequence[Polarity], weights: Likeness, names: frozenset[str]
) -> float:
    """Share of the claims that turns bear out, less the share of the denials that they contradict.

    What is affirmed is borne out by a turn that affirms it, what is denied by one that denies it;
    each word counts by the closest such turn. A denial is contradicted as far as a turn closer
    than any that shares it affirms its word. A speaker's name (one of ``names``) bears out nothing.

    Returns:
        In [-1, 1]; 0 for no claims.
    """
    count = len(claims.affirmed) + len(claims.denied)
    if not count:
        return 0.0
    affirmed = _nearest(claims.affirmed - names, [turn.affirmed for turn in said], weights)
    denied = _nearest(claims.denied, [turn.denied for turn in said], weights)
    contrary = _nearest(claims.denied, [turn.affirmed for turn in said], weights)
    against = math.fsum(max(0.0, contrary[word] - denied[word]) for word in contrary)
    borne_out = math.fsum(affirmed.values()) + math.fsum(denied.values())
    return borne_out / count - against / max(len(claims.denied), 1)


def _nearest(
    values: frozenset[str], said: Sequence[frozenset[str]], weights: Likeness
) -> dict[str, float]:
    """For each value the weight of the closest turn that holds it; 0 where none does."""
    nearest = dict.fromkeys(values, 0.0)
    for spoken, weight in zip(said, weights, strict=True):
        for value in values & spoken:
            nearest[value] = max(nearest[value], float(weight))
    return nearest
