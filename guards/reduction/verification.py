"""A core whose every claim was asked, for decisions that may not be monotone.

Models are not monotone: showing one more record can undo a decision. What a search infers is then
a guess, so it is followed by direct questions, and by repair where they disagree.
"""

from collections.abc import Generator

from assay.guards.coalitions import Coalition, members
from assay.guards.reduction.core import core_within
from assay.guards.reduction.knowledge import Knowledge
from assay.guards.reduction.lattice import MOST_RECORDS
from assay.guards.reduction.published import jointcore
from assay.guards.reduction.search import Core, Problem, Question, Search, Told


def verify(problem: Problem, b: int = MOST_RECORDS, told: Told | None = None) -> Search:
    """``core``, then ask directly for the core without each of its records.

    The core itself was asked: were it only inferred from a smaller set, that set would be the
    core. Where the decision is the same with one record fewer, that record goes and the rest is
    asked again. Ends with a set that is 1-minimal for *any* deterministic decision: the decision
    with it is the same and with any one record fewer it differs, all of it asked.

    Args:
        problem: The records.
        b: How many top records are treated exactly, from 1 to 4.
        told: Answers known before.
    """
    knowledge = Knowledge(problem.everything, told)
    kept = (yield from core_within(problem, knowledge, b)).kept
    return (yield from _verified(problem, knowledge, kept))


def verified_deletion(problem: Problem, b: int = MOST_RECORDS, told: Told | None = None) -> Search:
    """Published group deletion, each question asked once, then verified and repaired as above.

    It infers nothing, so the set it holds is sufficient at every moment for *any* deterministic
    decision, and 1-minimal in the end.

    Args:
        problem: The records.
        b: How many top records come last, dearest first, in the order of deletion.
        told: Answers known before.
    """
    knowledge = Knowledge(problem.everything, told)
    kept = (yield from _asked_once(jointcore(problem.cost_order(b)), knowledge)).kept
    return (yield from _verified(problem, knowledge, kept))


def _asked_once(search: Search, knowledge: Knowledge) -> Search:
    """A search that may repeat itself, its questions put to what is known first."""
    try:
        question = next(search)
        while True:
            same = yield from knowledge.ask(question.ask.coalition, question.likely)
            question = search.send(same)
    except StopIteration as stop:
        core: Core = stop.value
        return core


def _verified(problem: Problem, knowledge: Knowledge, kept: Coalition) -> Search:
    while (spare := (yield from _spare(problem, knowledge, kept))) is not None:
        kept = Coalition(kept & ~(1 << spare))
    return Core(kept, "1-minimal")


def _spare(
    problem: Problem, knowledge: Knowledge, kept: Coalition
) -> Generator[Question, bool, int | None]:
    """The dearest record without which the decision is the same, or ``None``."""
    for i in problem.by_cost(members(kept)):
        if (yield from knowledge.ask(kept & ~(1 << i), 0.1)):
            return i
    return None
