"""Later words of one user that take the place of earlier ones in what the model answers.

The two need not be alike: "I moved to Oslo" and "I live in Bergen" share hardly a word. That they
compete for one answer shows in behaviour alone: each by itself is told, and of both only one.
"""

from collections.abc import Sequence
from typing import Final

from assay.errors import BudgetExceeded
from assay.guards.coalitions import coalition_of
from assay.guards.evidence.brief import Brief
from assay.guards.evidence.settle import SUPERSEDED, Finding, Provenance
from assay.guards.evidence.text import content
from assay.guards.evidence.updates import replaces, speaks_of_change
from assay.guards.outcomes import has_answer
from assay.guards.protocols import Ask, Experimenter

MOST_PAIRS: Final = 4
"""Pairs asked about at most: three questions each, of which the single ones are asked anyway."""

_LATER: Final = Finding(
    "stands", "trust", "The same user said it later, of a change, and it competes for the answer."
)


async def hear_changes(
    brief: Brief,
    findings: Sequence[Finding],
    provenance: Provenance,
    laboratory: Experimenter,
) -> list[Finding]:
    """The findings, with what a user has since changed withheld and the later words admitted.

    The later words stand even if they bear less on the question; what they do not replace stands
    beside them. Whoever merely repeats either shares its fate.

    Args:
        brief: The case.
        findings: One per candidate.
        provenance: Tells which words are the later ones.
        laboratory: Where the pairs become answers; where its budget is spent, nothing changes.
    """
    gone: set[int] = set()
    came: set[int] = set()
    for new, old in _pairs(brief, findings, provenance):
        if old not in gone and await _compete(brief, new, old, laboratory):
            came.add(new)
            gone |= {old} if replaces(brief, new, old) else set()
    came -= gone
    standing = {i for i, finding in enumerate(findings) if finding.standing == "stands"}
    standing = (standing | came) - gone
    for i, restated in enumerate(provenance.restates):
        if restated & gone and not restated & standing:
            gone.add(i)
        elif restated & came and findings[i].standing == "aside":
            came.add(i)
    return [_heard(finding, i in gone, i in came) for i, finding in enumerate(findings)]


def _heard(finding: Finding, is_gone: bool, has_come: bool) -> Finding:  # noqa: FBT001  # private
    if is_gone:
        return SUPERSEDED
    return _LATER if has_come and finding.standing == "aside" else finding


def _pairs(
    brief: Brief, findings: Sequence[Finding], provenance: Provenance
) -> list[tuple[int, int]]:
    """Later words that speak of a change, and what they may replace; the most relevant first."""
    relevance = brief.likeness.relevance
    pairs = [
        (new, old)
        for new, old in provenance.newer
        if findings[new].standing in {"stands", "aside"}
        and findings[old].standing == "stands"
        and speaks_of_change(brief.texts[new])
    ]
    pairs.sort(
        key=lambda p: (-float(relevance[p[0]] + relevance[p[1]]), *(brief.texts[k] for k in p))
    )
    return pairs[:MOST_PAIRS]


async def _compete(brief: Brief, new: int, old: int, laboratory: Experimenter) -> bool:
    """Whether each alone is told in the answer, and of both together only one."""
    asks = [Ask(coalition_of(shown)) for shown in ([new], [old], [new, old])]
    try:
        outcomes = await laboratory.outcomes(asks)
    except BudgetExceeded:
        return False
    if not all(has_answer(outcome) for outcome in outcomes):
        return False
    of_new, of_old, of_both = (content([outcome.text]) - brief.asked for outcome in outcomes)
    told = [
        own & content([brief.texts[i]])
        for i, own in ((new, of_new - of_old), (old, of_old - of_new))
    ]
    return all(told) and any(not part & of_both for part in told)
