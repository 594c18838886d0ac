"""Claimed times against the times that turns speak of."""

from collections.abc import Sequence
from datetime import date
from typing import Final

from assay.guards.evidence.brief import Brief
from assay.guards.evidence.relevance import Likeness
from assay.guards.evidence.spans import Span, agreement, shift

_IMPLIED: Final = 0.1
_IMPLIED_DAYS: Final = 3
_PRIOR_WEIGHT: Final = 0.1


def agreement_of(brief: Brief, i: int, pool: Sequence[int], weights: Likeness) -> float | None:
    """How well a candidate's claimed times agree with those the turns speak of.

    Relative times of record and turn are both resolved against the day of the turn; of several
    claimed times the best agreeing one counts. A turn that names no time implies its own day or the
    three before, and counts a tenth.

    Returns:
        In [0, 1.1]; ``None`` if the candidate claims no time.
    """
    explicit = implied = total = total_implied = 0.0
    claims_one = False
    for t, weight in zip(pool, weights, strict=True):
        turn = brief.turns[t]
        day = turn.at.date()
        claimed = brief.times(brief.texts[i], day)
        claims_one = claims_one or bool(claimed)
        if spoken := brief.times(turn.text, day):
            explicit += float(weight) * _best(claimed, spoken)
            total += float(weight)
        else:
            implied += float(weight) * _best(claimed, _near(day))
            total_implied += float(weight)
    if not claims_one:
        return None
    return explicit / (total + _PRIOR_WEIGHT) + _IMPLIED * implied / max(
        total_implied, _PRIOR_WEIGHT
    )


def _near(day: date) -> tuple[Span]:
    return (Span(shift(day, -_IMPLIED_DAYS), day),)


def _best(claims: Sequence[Span], spoken: Sequence[Span]) -> float:
    return max((agreement(claim, span) for claim in claims for span in spoken), default=0.0)
