"""The cheapest sufficient set anywhere, certified for any monotone decision.

Implicit hitting set: every insufficient set found says "one of the records left out is needed"; the
cheapest set that meets all these demands is a lower bound; when a confirmed set costs no more than
the bound, it is the minimum. Two things make it short. First the lattice of the top records is
played with its questions turned so that the likely answer tells most: an expected "same" is asked
with everything outside the top left out, an expected "differs" with everything outside kept in.
Then each set cheaper than the best is refuted by the largest set around it that should still fail.
"""

from collections import deque
from collections.abc import Generator
from typing import NamedTuple

from assay.guards.coalitions import Coalition, coalition_of, members
from assay.guards.reduction.core import Frame, next_missing
from assay.guards.reduction.hitting import cheapest_hitting_set
from assay.guards.reduction.knowledge import Knowledge
from assay.guards.reduction.lattice import MOST_RECORDS, STOP, lattice
from assay.guards.reduction.rivals import halve
from assay.guards.reduction.search import Answering, Core, Problem, Question, Search, Told


def core_global(problem: Problem, b: int = MOST_RECORDS, told: Told | None = None) -> Search:
    """The cheapest sufficient set among all subsets, if the decision is monotone.

    Args:
        problem: The records.
        b: How many top records guide the search, from 1 to 4; the certificate does not depend
            on them.
        told: Answers known before.
    """
    knowledge = Knowledge(problem.everything, told)
    frame = Frame(problem, b)
    guess = yield from _guess(frame, knowledge)
    yield from knowledge.find_out(guess.kept, 0.9)
    while True:
        best = Coalition(min(knowledge.sufficient, key=lambda s: problem.cost(Coalition(s))))
        demands = [problem.everything & ~failed for failed in knowledge.insufficient]
        bound = cheapest_hitting_set(problem, demands)
        if problem.cost(bound) >= problem.cost(best) * (1 - 1e-12):
            return Core(best, "least cost if monotone")
        attempt = _grow(bound, frame, guess.failing, knowledge)
        if (yield from knowledge.ask(attempt, 0.1)):
            yield from _shrink(attempt, problem, knowledge)


class _Guess(NamedTuple):
    """What the lattice game suggests: the core, and local subsets of the top that should fail."""

    kept: Coalition
    failing: list[int]


def _guess(frame: Frame, knowledge: Knowledge) -> Generator[Question, bool, _Guess]:
    """Play the lattice game as if nothing outside the top mattered, until that turns out wrong."""
    net = lattice(len(frame.top))
    while True:
        state = yield from _play(frame, knowledge)
        kept = int(frame.plan("certificate").kept[state])
        if kept != STOP:
            failed = int(net.insufficient[state])
            failing = [q for q in range(2 ** len(frame.top)) if failed >> q & 1]
            return _Guess(Coalition(frame.globally(kept) | frame.needed), failing)
        missing = yield from next_missing(frame, knowledge)
        if missing is None:
            return _Guess((yield from halve(frame.problem.cost_order(), knowledge)).kept, [])
        frame.needed = Coalition(frame.needed | 1 << missing)


def _play(frame: Frame, knowledge: Knowledge) -> Generator[Question, bool, int]:
    net = lattice(len(frame.top))
    best = frame.plan("certificate")
    everything_else = frame.problem.everything & ~frame.everything
    state = frame.state(knowledge)
    while (local := int(best.question[state])) != STOP:
        likely = float(best.likely[state])
        # "Even all the top records fail" sends the search outside: never take it on a guess.
        whole = local == 2 ** len(frame.top) - 1
        beside = frame.needed if whole or likely >= 0.5 else everything_else  # noqa: PLR2004
        same = yield from knowledge.find_out(frame.globally(local) | beside, likely)
        state = int((net.on_same if same else net.on_differs)[state, local])
    return state


def _grow(bound: int, frame: Frame, failing: list[int], knowledge: Knowledge) -> Coalition:
    """A large set around ``bound`` that should be insufficient and may still turn out not to be."""
    problem = frame.problem
    absent = frame.needed & ~bound
    if absent:
        attempt = problem.everything & ~(absent & -absent)
    else:
        inside = sum(1 << at for at, i in enumerate(frame.top) if bound >> i & 1)
        around = [q for q in failing if q & inside == inside]
        widest = max(around, key=lambda q: _strength(q, frame), default=inside)
        attempt = problem.everything & ~frame.everything | frame.globally(widest)
    return _break(attempt, bound, problem, knowledge)


def _strength(local: int, frame: Frame) -> tuple[int, float]:
    """Prefers a subset that leaves few records out, and dear ones."""
    left_out = [frame.problem.costs[i] for at, i in enumerate(frame.top) if not local >> at & 1]
    return -len(left_out), min(left_out, default=0.0)


def _break(attempt: int, bound: int, problem: Problem, knowledge: Knowledge) -> Coalition:
    """Take records outside the bound away until no known sufficient set is left whole."""
    while whole := [known for known in knowledge.sufficient if known & attempt == known]:
        loose = members(Coalition(_union(whole) & ~bound))
        often = max(
            loose, key=lambda i: (sum(known >> i & 1 for known in whole), problem.costs[i], -i)
        )
        attempt &= ~(1 << often)
    return Coalition(attempt)


def _union(sets: list[int]) -> int:
    together = 0
    for one in sets:
        together |= one
    return together


def _shrink(kept: int, problem: Problem, knowledge: Knowledge) -> Answering:
    """Delete groups from a sufficient set, dearest last resort kept, until it is 1-minimal."""
    familiar = kept & coalition_of(
        i for known in knowledge.sufficient if known != kept for i in members(Coalition(known))
    )
    if familiar != kept and (yield from knowledge.find_out(familiar)):
        kept = familiar
    waiting = deque([[i for i in problem.cost_order() if kept >> i & 1]])
    while waiting:
        group = [i for i in waiting.popleft() if kept >> i & 1]
        retained = kept & ~coalition_of(group)
        if (yield from knowledge.find_out(retained)):
            kept = retained
        elif len(group) > 1:
            half = len(group) // 2
            waiting.extend((group[:half], group[half:]))
    return True
