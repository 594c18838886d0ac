"""Causal verification: whether a model is misled by a case's faults, and in the way they claim."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from assay.guards.clearance import RIGHT
from assay.guards.coalitions import (
    EMPTY,
    Coalition,
    grand,
    singleton,
    union,
    without,
)
from assay.scenarios.faults_cohort import Posed
from assay.scenarios.faults_utility import ReferenceUtility

VERIFIED = "verified"


class Check(NamedTuple):
    """One thing a case must show.

    Attributes:
        context: The records shown.
        right: Whether the model must be right on it.
        why_not: What is said of a case that fails it.
    """

    context: Coalition
    right: bool
    why_not: str


def basic_checks(posed: Posed) -> list[Check]:
    """Right on the clean context, wrong on the faulted one, not right without any record."""
    everyone = grand(len(posed.candidates))
    return [
        Check(without(everyone, posed.harmful), right=True, why_not="wrong without any fault"),
        Check(everyone, right=False, why_not="right in spite of the faults"),
        Check(EMPTY, right=False, why_not="right without any record"),
    ]


def structure_checks(posed: Posed) -> list[Check]:
    """What the structure claims beyond that; nothing for a direct fault.

    Redundant: each copy alone misleads, and no single deletion helps. Joint: neither part alone
    misleads.
    """
    everyone = grand(len(posed.candidates))
    clean = without(everyone, posed.harmful)
    alone = [union(clean, singleton(i)) for i in posed.faults]
    if posed.case.structure == "redundant":
        return [
            *(Check(c, right=False, why_not="one copy alone does not mislead") for c in alone),
            *(
                Check(without(everyone, singleton(i)), right=False, why_not="one deletion helps")
                for i in range(len(posed.candidates))
            ),
        ]
    if posed.case.structure == "joint":
        return [Check(c, right=True, why_not="one part alone misleads") for c in alone]
    return []


async def verified(posed: Posed, utility: ReferenceUtility) -> str:
    """``verified``, or the first thing the model does otherwise; few questions where it fails early.

    Raises:
        ModelUnavailable: If the model does not answer.
    """
    for checks in (basic_checks(posed), structure_checks(posed)):
        if checks and (failed := _failed(checks, await utility([c.context for c in checks]))):
            return failed
    return VERIFIED


def _failed(checks: Sequence[Check], utilities: Sequence[float] | np.ndarray) -> str:
    for check, value in zip(checks, utilities, strict=True):
        if np.isnan(value):
            return "no measurement"
        if (value >= RIGHT) != check.right:
            return check.why_not
    return ""
