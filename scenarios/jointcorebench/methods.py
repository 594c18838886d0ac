"""Every method of the benchmark by its name, on the same information: costs and scores."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from assay.guards.coalitions import Coalition
from assay.guards.reduction.certified import core_global
from assay.guards.reduction.core import core, core_certificate
from assay.guards.reduction.published import conditional_singleton, jointcore, leave_one_out
from assay.guards.reduction.rivals import ddmin, probdd, quickxplain
from assay.guards.reduction.search import Problem, Search, Told, semantic_top, unasked
from assay.guards.reduction.verification import verify
from assay.scenarios.jointcorebench.conditions import Condition

TOP_B = 4
"""The published budget of the top-B methods."""


class Setting(NamedTuple):
    """What a method is started with.

    Attributes:
        problem: Costs and scores; all a real method may use.
        random_b: What the random baseline keeps.
        oracle: What the oracle keeps.
    """

    problem: Problem
    random_b: Coalition
    oracle: Coalition


Start: TypeAlias = Callable[[Setting, Told], Search]
"""Starts a method, told the answers known already."""

PUBLISHED: dict[str, Start] = {
    "full_memory": lambda at, _: unasked(at.problem.everything, "unreduced"),
    "random_b": lambda at, _: unasked(at.random_b),
    "semantic_top_b": lambda at, _: semantic_top(at.problem, TOP_B),
    "leave_one_out": lambda at, _: leave_one_out(at.problem.n),
    "singleton": lambda at, _: conditional_singleton(at.problem.by_cost(range(at.problem.n))),
    "jointcore_legacy": lambda at, _: jointcore(at.problem.legacy_order()),
    "jointcore": lambda at, _: jointcore(at.problem.cost_order(TOP_B)),
    "oracle": lambda at, _: unasked(at.oracle),
}
"""The published methods, in published order."""

OURS: dict[str, Start] = {
    "core": lambda at, told: core(at.problem, TOP_B, told),
    "core_certificate": lambda at, told: core_certificate(at.problem, TOP_B, told),
    "core_global": lambda at, told: core_global(at.problem, TOP_B, told),
    "verify": lambda at, told: verify(at.problem, TOP_B, told),
}
"""Our searches; see their modules for the certificate each one holds."""

RIVALS: dict[str, Start] = {
    "ddmin": lambda at, _: ddmin(at.problem.cost_order(TOP_B)),
    "probdd": lambda at, _: probdd(at.problem.cost_order(TOP_B)),
    "quickxplain": lambda at, _: quickxplain(at.problem.cost_order(TOP_B)[::-1]),
}
"""Other people's searches, as published elsewhere."""

EXACT: dict[str, Start] = PUBLISHED | OURS
"""What the exact stage runs, in order."""


def setting_for(condition: Condition) -> Setting:
    """What the methods get for one condition."""
    task = condition.task
    return Setting(
        problem=Problem(task.costs, task.scores),
        random_b=condition.random_b(TOP_B),
        oracle=task.rule.cheapest(task.costs),
    )
