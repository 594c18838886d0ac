"""Contested values: what only one of two records claims, and the question has not."""

from typing import NamedTuple

from assay.guards.evidence.text import content


class Contest(NamedTuple):
    """What two records claim against each other; stems, without the question's own.

    Attributes:
        left: Only the first has them.
        right: Only the second has them.
    """

    left: frozenset[str]
    right: frozenset[str]


def contested(question: str, left: str, right: str) -> Contest:
    """The values two records contest."""
    asked, mine, yours = content([question]), content([left]), content([right])
    return Contest(left=mine - yours - asked, right=yours - mine - asked)
