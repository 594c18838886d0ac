"""The 432 tasks of the model stage, in published order, and evenly spaced subsets of them."""

from assay.errors import ScenarioError
from assay.scenarios.jointcorebench.conditions import (
    BLOCKS,
    DOMAINS,
    HORIZONS,
    SUPPORTS,
    Condition,
    Coordinates,
    condition,
)
from assay.scenarios.jointcorebench.rules import FAMILIES

MODEL_SEED = 26082901
"""Seed base of the published model stage."""

RECORDS = 16
"""Records per task."""


def model_tasks(base: int = MODEL_SEED) -> list[Condition]:
    """All 432 tasks: by family, domain, support size and block, the last one running fastest."""
    return [
        condition(Coordinates(domain, family, RECORDS, s, HORIZONS[block], block), base=base)
        for family in FAMILIES
        for domain in DOMAINS
        for s in SUPPORTS
        for block in BLOCKS
    ]


def subset(tasks: list[Condition], count: int) -> list[Condition]:
    """``count`` evenly spaced tasks from the first on; of 432, 108 are the published every fourth.

    Raises:
        ScenarioError: If there are not so many, or fewer than 1 are wanted.
    """
    if not 1 <= count <= len(tasks):
        raise ScenarioError(f"a subset has from 1 to {len(tasks)} tasks, got {count}")
    return [tasks[i * len(tasks) // count] for i in range(count)]
