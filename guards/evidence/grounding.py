"""Whether what a record claims was ever said, without looking at any other record."""

from typing import Final, NamedTuple

from assay.guards.evidence.brief import Brief
from assay.guards.evidence.contest import closest, support
from assay.guards.evidence.denial import Polarity
from assay.guards.evidence.times import agreement_of

_FLOOR: Final = 0.5


class Grounding(NamedTuple):
    """What the archive says about one record.

    Attributes:
        score: Support for its claims plus agreement of its times, in [-1, 2.1]; 1 if it claims
            nothing that the question does not already say.
        times: Agreement of its times, in [0, 1.1]; ``None`` if it claims none.
        claims: How many words and times it claims beyond the question.
        turns: Ids of the turns closest to it.
    """

    score: float
    times: float | None
    claims: int
    turns: tuple[str, ...]


def grounding(brief: Brief, i: int) -> Grounding:
    """Ground candidate ``i`` in the turns found for the question or for it."""
    pool = brief.pool(i)
    weights = brief.weights(pool, i)
    claims = _claims(brief, i)
    times = agreement_of(brief, i, pool, weights)
    count = len(claims.affirmed) + len(claims.denied) + (times is not None)
    if not count:
        return Grounding(score=1.0, times=None, claims=0, turns=closest(brief, pool, weights))
    floored = _FLOOR + (1 - _FLOOR) * weights
    said = [brief.said[t] for t in pool]
    score = support(claims, said, floored, brief.speakers) + (times or 0.0)
    return Grounding(score=score, times=times, claims=count, turns=closest(brief, pool, weights))


def _claims(brief: Brief, i: int) -> Polarity:
    own = brief.claims[i]
    return Polarity(
        affirmed=own.affirmed - brief.asked - brief.speakers,
        denied=own.denied - brief.speakers,
    )
