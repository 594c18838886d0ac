"""Our search: the optimal questions over the top records, bisection where they do not suffice.

Retrieval scores usually rank what matters on top. So the records outside the top ``b`` are dropped
together with the first question, and the rules the top records may follow are told apart by the
questions that leave the fewest expected further ones (``lattice``). Where the top turns out not to
suffice, the next record of the ranking is tried in place; where that is not it either, the ranking
is not trusted any further and what is left is halved, using all that was learned.
"""

from collections.abc import Callable, Generator

from assay.guards.coalitions import Coalition
from assay.guards.protocols import Ask
from assay.guards.reduction.knowledge import Knowledge
from assay.guards.reduction.lattice import (
    MOST_RECORDS,
    STOP,
    Goal,
    Plan,
    companions,
    cost_ranks,
    lattice,
    plan,
)
from assay.guards.reduction.rivals import halve
from assay.guards.reduction.search import Core, Problem, Question, Search, Told

MISSING = 0.05
"""Probability that the top records do not suffice, before anything is asked."""

AGAIN = 0.5
"""Probability that a record is still missing after one was: the ranking is no longer trusted."""


class Frame:
    """The top records of a problem as a lattice, beside what else is kept.

    Args:
        problem: The records.
        b: How many top records, from 1 to 4; fewer where there are not so many.

    Raises:
        ValueError: If ``b`` is out of range.
    """

    __slots__ = ("_ranks", "_subsets", "needed", "outside", "problem", "top")

    def __init__(self, problem: Problem, b: int = MOST_RECORDS) -> None:
        if not 1 <= b <= MOST_RECORDS:
            raise ValueError(f"b must be from 1 to {MOST_RECORDS}, got {b}")
        ranked = problem.ranked()
        self.problem = problem
        self.top = problem.by_cost(ranked[:b])
        self.outside = ranked[b:]
        self.needed = Coalition(0)
        self._ranks = cost_ranks([problem.costs[i] for i in self.top])
        self._subsets = [Coalition(0)]
        for i in self.top:
            self._subsets += [Coalition(subset | 1 << i) for subset in self._subsets]

    @property
    def everything(self) -> Coalition:
        """All top records."""
        return self._subsets[-1]

    def globally(self, local: int) -> Coalition:
        """The coalition of a local subset of the top records."""
        return self._subsets[local]

    def plan(self, goal: Goal) -> Plan:
        """The questions to ask, given how far the ranking can be trusted."""
        return plan(self._ranks, goal, AGAIN if self.needed else MISSING)

    def beside(self, goal: Goal, state: int) -> Callable[[int], list[Ask]]:
        """What to ask in one batch with the plan's question in a state."""
        missing, needed = (AGAIN if self.needed else MISSING), self.needed

        def batch(count: int) -> list[Ask]:
            together = companions(self._ranks, goal, missing, state, count)
            return [Ask(Coalition(self.globally(local) | needed)) for local in together]

        return batch

    def state(self, knowledge: Knowledge) -> int:
        """The lattice state that follows from all that is known."""
        implied, needed = knowledge.implied, self.needed
        answers = [implied(subset | needed) for subset in self._subsets]
        return lattice(len(self.top)).state(answers)


def core(problem: Problem, b: int = MOST_RECORDS, told: Told | None = None) -> Search:
    """A sufficient core that is 1-minimal if the decision is monotone, and very likely cheapest.

    Args:
        problem: The records.
        b: How many top records are treated exactly, from 1 to 4.
        told: Answers known before.
    """
    return (yield from _search(problem, b, "core", Knowledge(problem.everything, told)))


def core_certificate(problem: Problem, b: int = MOST_RECORDS, told: Told | None = None) -> Search:
    """Like ``core``, until no cheaper set within the top records can suffice.

    The certificate is ``least cost in the top records if monotone`` where they suffice at all,
    else what ``core`` holds.
    """
    return (yield from _search(problem, b, "certificate", Knowledge(problem.everything, told)))


def core_within(problem: Problem, knowledge: Knowledge, b: int = MOST_RECORDS) -> Search:
    """``core``, telling all it learns to ``knowledge``."""
    return (yield from _search(problem, b, "core", knowledge))


def _search(problem: Problem, b: int, goal: Goal, knowledge: Knowledge) -> Search:
    frame = Frame(problem, b)
    while True:
        kept = yield from _descend(frame, goal, knowledge)
        if kept is not None:
            break
        missing = yield from next_missing(frame, knowledge)
        if missing is None:
            return (yield from halve(problem.cost_order(b), knowledge))
        frame.needed = Coalition(frame.needed | 1 << missing)
    certified = goal == "certificate" and not frame.needed
    return Core(
        Coalition(kept | frame.needed),
        "least cost in the top records if monotone" if certified else "1-minimal if monotone",
    )


def _descend(
    frame: Frame, goal: Goal, knowledge: Knowledge
) -> Generator[Question, bool, Coalition | None]:
    """Play the lattice game; the part of the core in the top, or ``None`` if a record is missing."""
    net = lattice(len(frame.top))
    best = frame.plan(goal)
    state = frame.state(knowledge)
    while (local := int(best.question[state])) != STOP:
        retained = frame.globally(local) | frame.needed
        likely = float(best.likely[state])
        same = yield from knowledge.find_out(retained, likely, frame.beside(goal, state))
        state = int((net.on_same if same else net.on_differs)[state, local])
    kept = int(best.kept[state])
    return None if kept == STOP else frame.globally(kept)


def next_missing(frame: Frame, knowledge: Knowledge) -> Generator[Question, bool, int | None]:
    """The next record down the ranking if it completes those before it, else ``None``.

    A near miss costs one question. Past it the ranking has shown that it cannot be trusted.
    """
    following = next(i for i in frame.outside if not frame.needed >> i & 1)
    prefix = frame.everything | frame.needed | 1 << following
    if (yield from knowledge.find_out(prefix)):
        return following
    return None
