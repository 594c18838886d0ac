"""Reducing with an evaluator that errs.

Two kinds of error: fresh ones, gone on another draw, and persistent ones, which a model at
temperature 0 repeats for the same request. A *look* is one way to ask again: another draw helps
against the first kind, only another rendering against the second.
"""

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from assay.guards.coalitions import Coalition
from assay.guards.protocols import Ask
from assay.guards.reduction.core import AGAIN, MISSING, Frame
from assay.guards.reduction.lattice import MOST_RECORDS, Floats, lattice, prior_of
from assay.guards.reduction.search import PLAIN, Answering, Core, Problem, Question, Search

Looks: TypeAlias = Callable[[int], tuple[str, int]]
"""From the number of times a coalition was asked before to the rendering and draw to use now."""


def looks_at(renderings: Sequence[str] = (PLAIN,)) -> Looks:
    """Go through the renderings, then through them again with the next draw.

    One rendering asks afresh by drawing again; several are what persistent errors need.

    Raises:
        ValueError: If there is no rendering.
    """
    if not renderings:
        raise ValueError("expected at least one rendering, got none")
    return lambda time: (renderings[time % len(renderings)], time // len(renderings))


class _Asker:
    """Asks every coalition in a new way each time."""

    __slots__ = ("_looks", "_times")

    def __init__(self, looks: Looks) -> None:
        self._looks = looks
        self._times: Counter[int] = Counter()

    def once(self, retained: int, likely: float = 0.5) -> Answering:
        """One more look at a coalition."""
        rendering, draw = self._looks(self._times[retained])
        self._times[retained] += 1
        return (yield Question(Ask(Coalition(retained), rendering, draw), likely))

    def majority(self, retained: int, votes: int, likely: float = 0.5) -> Answering:
        """What most of ``votes`` looks say; stops when the rest cannot change it."""
        same = differs = 0
        while max(same, differs) * 2 <= votes:
            if (yield from self.once(retained, likely)):
                same += 1
            else:
                differs += 1
        return same > differs


def voted(search: Search, looks: Looks, votes: int) -> Search:
    """Any search, each of its questions answered by the majority of ``votes`` looks.

    Raises:
        ValueError: If ``votes`` is not odd and positive.
    """
    return (yield from _voted(search, _Asker(looks), _odd(votes)))


def checked(
    start: Callable[[], Search], problem: Problem, looks: Looks, *, votes: int = 1, check: int = 3
) -> Search:
    """Any search, voted, then a final check of its core; it starts over where that fails.

    Args:
        start: Starts the search afresh.
        problem: The records it reduces.
        looks: How to ask again.
        votes: Looks per question of the search, odd.
        check: Looks at the core in the end, odd; the majority decides.

    Returns:
        The first core that passes; all records, marked ``unreduced``, after three that failed.
    """
    asker = _Asker(looks)
    for _ in range(3):
        core = yield from _voted(start(), asker, _odd(votes))
        if core.kept == problem.everything:
            return core
        if (yield from asker.majority(core.kept, _odd(check), 0.9)):
            return Core(core.kept, "sufficient")
    return Core(problem.everything, "unreduced")


class Trust(NamedTuple):
    """What is believed about the evaluator, and how sure to be.

    Attributes:
        error: Probability that an answer is wrong, in (0, 0.5).
        sufficient: Least probability that the core is sufficient.
        cheapest: Least probability that it is the cheapest one.
    """

    error: float = 0.05
    sufficient: float = 0.997
    cheapest: float = 0.95


def core_robust(
    problem: Problem, looks: Looks, trust: Trust | None = None, b: int = MOST_RECORDS
) -> Search:
    """A core by belief: answers weigh the monotone rules instead of ruling them out.

    Each next question is the one whose answer is expected to tell most about the rule, asked in a
    new look if it was asked before; it ends when the core is believed sufficient and cheapest.

    Raises:
        ValueError: If the error is not in (0, 0.5).
    """
    belief = trust or Trust()
    if not 0 < belief.error < 0.5:  # noqa: PLR2004  # at one half an answer says nothing
        raise ValueError(f"the error must be in (0, 0.5), got {belief.error!r}")
    frame = Frame(problem, b)
    asker = _Asker(looks)
    while True:
        local = yield from _believe(frame, asker, belief)
        if local is not None:
            return Core(Coalition(frame.globally(local) | frame.needed), "sufficient")
        missing = yield from _find_missing(frame, asker)
        frame.needed = Coalition(frame.needed | 1 << missing)


def _believe(frame: Frame, asker: _Asker, trust: Trust) -> Generator[Question, bool, int | None]:
    """The local part of the core, or ``None`` when a record outside is believed to be needed."""
    table = _rule_table(len(frame.top))
    net = lattice(len(frame.top))
    possible = bool(frame.outside) and frame.needed.bit_count() < len(frame.outside)
    belief = prior_of(net, (AGAIN if frame.needed else MISSING) if possible else 0.0)
    costs = np.array([frame.problem.cost(frame.globally(q)) for q in range(2 ** len(frame.top))])
    cheapest = _cheapest(table, costs)
    while True:
        missing = float(belief[net.rules == 0].sum())
        if missing > trust.sufficient:
            return None
        local, chance = _likeliest(belief, cheapest, len(costs))
        likely = belief @ table
        if likely[local] >= trust.sufficient and chance >= trust.cheapest:
            return local
        query = _most_telling(likely, trust.error, local, sure=chance >= trust.cheapest)
        same = yield from asker.once(frame.globally(query) | frame.needed, float(likely[query]))
        agrees = table[:, query] == (1.0 if same else 0.0)
        belief = belief * np.where(agrees, 1 - trust.error, trust.error)
        belief /= belief.sum()


def _likeliest(belief: Floats, cheapest: Floats, size: int) -> tuple[int, float]:
    """The subset most likely to be a cheapest sufficient one, and how likely."""
    chances = belief @ cheapest
    best = int(chances.argmax())
    return min(best, size - 1), float(chances[best])


def _most_telling(likely: Floats, error: float, core: int, *, sure: bool) -> int:
    """The subset with the greatest expected information; the core itself once only it is open."""
    if sure:
        return core
    answered = likely * (1 - error) + (1 - likely) * error
    answered = np.clip(answered, 1e-12, 1 - 1e-12)
    return int((-answered * np.log2(answered) - (1 - answered) * np.log2(1 - answered)).argmax())


def _find_missing(frame: Frame, asker: _Asker) -> Generator[Question, bool, int]:
    """Bisect the ranking for the missing record, three looks a cut."""
    waiting = [i for i in frame.outside if not frame.needed >> i & 1]
    prefixes = [frame.everything | frame.needed]
    for i in waiting:
        prefixes.append(prefixes[-1] | 1 << i)
    low, high = 0, len(waiting)
    while high - low > 1:
        cut = (low + high) // 2 if low or frame.needed else 1
        if (yield from asker.majority(prefixes[cut], 3)):
            high = cut
        else:
            low = cut
    return waiting[high - 1]


def _voted(search: Search, asker: _Asker, votes: int) -> Search:
    try:
        question = next(search)
        while True:
            same = yield from asker.majority(question.ask.coalition, votes, question.likely)
            question = search.send(same)
    except StopIteration as stop:
        core: Core = stop.value
        return core


def _odd(votes: int) -> int:
    if votes < 1 or votes % 2 == 0:
        raise ValueError(f"votes must be odd and positive, got {votes}")
    return votes


@lru_cache(maxsize=MOST_RECORDS)
def _rule_table(b: int) -> Floats:
    """Shape ``(rules, 2 ** b)``: 1 where the subset suffices under the rule."""
    net = lattice(b)
    rows = [[float(int(rule) >> q & 1) for q in range(2**b)] for rule in net.rules]
    return np.array(rows, dtype=np.float64)


def _cheapest(table: Floats, costs: Floats) -> Floats:
    """Shape ``(rules, 2 ** b)``: 1 where the subset is a cheapest sufficient one of the rule."""
    priced = np.where(table == 1, costs, np.inf)
    least = priced.min(axis=1, keepdims=True)
    cheapest: Floats = ((priced == least) & np.isfinite(priced)).astype(np.float64)
    return cheapest
