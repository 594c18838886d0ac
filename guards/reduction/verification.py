"""A core whose every claim was asked, for decisions that may not be monotone.

Models are not monotone: showing one more record can undo a decision. What a search infers is then
a guess, so it is followed by direct questions, and by repair where they disagree.
"""

from collections import deque
from collections.abc import Generator

from assay.guards.coalitions import Coalition, members
from assay.guards.reduction.core import core_within
from assay.guards.reduction.knowledge import Knowledge
from assay.guards.reduction.lattice import MOST_RECORDS
from assay.guards.reduction.search import Core, Problem, Question, Search, Told


def verify(problem: Problem, b: int = MOST_RECORDS, told: Told | None = None) -> Search:
    """``core``, then ask directly for its core and for the core without each record.

    If the decision differs with the core, groups are deleted from the cheapest set that was
    confirmed; if it is the same with one record fewer, that record goes. Ends with a set that is
    1-minimal for *any* deterministic decision: the decision with it is the same and with any one
    record fewer it differs, all of it asked.

    Args:
        problem: The records.
        b: How many top records are treated exactly, from 1 to 4.
        told: Answers known before.
    """
    knowledge = Knowledge(problem.everything, told)
    kept = (yield from core_within(problem, knowledge, b)).kept
    if not (yield from _asked(problem, knowledge, kept)):
        kept = yield from _delete_groups(problem, knowledge)
    kept = yield from _shave(problem, knowledge, kept)
    return Core(kept, "1-minimal")


def _asked(
    problem: Problem, knowledge: Knowledge, retained: int
) -> Generator[Question, bool, bool]:
    """A direct answer; the reference with all records is one."""
    if retained == problem.everything:
        return True
    return (yield from knowledge.ask(retained, 0.5))


def _delete_groups(problem: Problem, knowledge: Knowledge) -> Generator[Question, bool, Coalition]:
    """Published group deletion from the cheapest confirmed set, with nothing inferred."""
    confirmed = [subset for subset, same in knowledge.asked.items() if same]
    kept = min(confirmed, key=lambda s: problem.cost(Coalition(s)), default=problem.everything)
    waiting = deque([[i for i in problem.cost_order() if kept >> i & 1]])
    while waiting:
        group = [i for i in waiting.popleft() if kept >> i & 1]
        retained = kept & ~sum(1 << i for i in group)
        if not group:
            continue
        if (yield from knowledge.ask(retained)):
            kept = retained
        elif len(group) > 1:
            half = len(group) // 2
            waiting.extend((group[:half], group[half:]))
    return Coalition(kept)


def _shave(
    problem: Problem, knowledge: Knowledge, kept: int
) -> Generator[Question, bool, Coalition]:
    """Drop single records, dearest first, until each that is left was asked to be needed."""
    spare = True
    while spare:
        spare = False
        for i in problem.by_cost(members(Coalition(kept))):
            if (yield from knowledge.ask(kept & ~(1 << i), 0.1)):
                kept &= ~(1 << i)
                spare = True
                break
    return Coalition(kept)
