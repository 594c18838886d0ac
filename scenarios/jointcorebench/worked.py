"""The worked example of the JointCore paper, run on the real condition."""

from typing import NamedTuple

from assay.guards.coalitions import Coalition, without
from assay.guards.protocols import Ask
from assay.guards.reduction.published import conditional_singleton, jointcore, leave_one_out
from assay.guards.reduction.search import Problem, Reduction, Search, drive
from assay.scenarios.jointcorebench.conditions import Coordinates, condition


class Deletion(NamedTuple):
    """One question: is the decision the same without this group?"""

    group: Coalition
    same: bool


class WorkedExample(NamedTuple):
    """The example and what the methods make of it.

    Attributes:
        problem: Sixteen records.
        channels: Either of these suffices.
        steps: Group deletion, question by question.
        kept: Its core.
        legacy: The core in the legacy order.
        singleton_questions: Questions of conditional single deletion.
        leave_one_out: What leave-one-out keeps.
    """

    problem: Problem
    channels: list[int]
    steps: list[Deletion]
    kept: Coalition
    legacy: Coalition
    singleton_questions: int
    leave_one_out: Coalition


def worked_example() -> WorkedExample:
    """Run the published example: orders, multiple_minimal_sets, n=16, s=2, h=1, b=0."""
    task = condition(Coordinates("orders", "multiple_minimal_sets", 16, 2, 1, 0)).task
    problem = Problem(task.costs, task.scores)
    rule = task.rule

    def oracle(ask: Ask) -> bool:
        return rule(ask.coalition)

    def run(search: Search) -> Reduction:
        return drive(search, oracle, problem=problem)

    reduction = run(jointcore(problem.cost_order()))
    return WorkedExample(
        problem=problem,
        channels=list(task.support),
        steps=deletions(reduction, problem.everything),
        kept=reduction.kept,
        legacy=run(jointcore(problem.legacy_order())).kept,
        singleton_questions=run(conditional_singleton(problem.cost_order())).evaluations,
        leave_one_out=run(leave_one_out(problem.n)).kept,
    )


def deletions(reduction: Reduction, everything: Coalition) -> list[Deletion]:
    """The groups a group-deletion search asked about, from what was retained each time."""
    kept = everything
    found: list[Deletion] = []
    for step in reduction.steps:
        found.append(Deletion(without(kept, step.ask.coalition), step.same))
        if step.same:
            kept = step.ask.coalition
    return found
