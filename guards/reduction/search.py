"""What every search of a sufficient core has in common. Pure: nothing here asks a model.

A search is a generator. It yields one question ("is the decision the same with only these
records?"), is sent the answer, and returns what it keeps. Whoever drives it decides where answers
come from: an exact oracle, a model behind the laboratory, a table, a noisy evaluator.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from math import isfinite
from typing import Literal, NamedTuple, TypeAlias

from assay.guards.coalitions import Coalition, coalition_of, grand
from assay.guards.protocols import Ask

Certificate: TypeAlias = Literal[
    "unreduced",
    "none",
    "sufficient",
    "1-minimal if monotone",
    "least cost in the top records if monotone",
    "least cost if monotone",
    "1-minimal",
]
"""What is known about the kept set.

``unreduced``: it is the full set. ``none``: nothing was asked about it. ``sufficient``: the
decision with it was asked and is the same. ``1-minimal``: and with any one record fewer it was
asked and differs. ``... if monotone``: implied by what was asked, provided that adding records
never breaks a sufficient set.
"""


PLAIN = "plain"
"""The rendering that shows the records as they are."""


class Question(NamedTuple):
    """One evaluation a search wants.

    Attributes:
        ask: The retained coalition, and how to show and draw it.
        likely: Probability the search gives to "same", in (0, 1); steers speculation only.
        beside: What is best asked in one batch with it, itself first, at most as many as told;
            ``None``: its likeliest continuations.
    """

    ask: Ask
    likely: float = 0.5
    beside: Callable[[int], list[Ask]] | None = None


class Core(NamedTuple):
    """What a search ends with."""

    kept: Coalition
    certificate: Certificate


Search: TypeAlias = Generator[Question, bool, Core]
"""Yields questions, is sent whether the decision was the same, returns the core."""

Told: TypeAlias = Mapping[Ask, bool]
"""Answers that are known before a search starts."""

SearchFactory: TypeAlias = Callable[[Told], Search]
"""Starts a search with answers it may use; equal answers must lead to equal questions."""

Answering: TypeAlias = Generator[Question, bool, bool]
"""A part of a search that finds out one yes or no."""

Oracle: TypeAlias = Callable[[Ask], bool]
"""Whether the decision for an ask is the same as with all records."""


class Problem:
    """The records of one reduction, as far as a search may know them.

    Args:
        costs: Shape ``(n,)``, positive, in any unit; what is to be saved.
        scores: Shape ``(n,)``, higher is more relevant; any finite scale.

    Raises:
        ValueError: If there are no records, the shapes differ, a cost is not positive and finite,
            or a score is not finite.
    """

    __slots__ = ("_by_rank", "_costs", "_scores", "_worst_first")

    def __init__(self, costs: Sequence[float], scores: Sequence[float]) -> None:
        if not costs or len(costs) != len(scores):
            raise ValueError(
                f"expected one cost and one score per record, got {len(costs)} and {len(scores)}"
            )
        for i, cost in enumerate(costs):
            if not (isfinite(cost) and cost > 0):
                raise ValueError(f"cost of record {i} must be positive and finite, got {cost!r}")
        for i, score in enumerate(scores):
            if not isfinite(score):
                raise ValueError(f"score of record {i} must be finite, got {score!r}")
        self._costs = tuple(costs)
        self._scores = tuple(scores)
        self._by_rank = sorted(range(self.n), key=lambda i: (-scores[i], i))
        self._worst_first = sorted(range(self.n), key=lambda i: (scores[i], i))

    @property
    def costs(self) -> tuple[float, ...]:
        """Shape ``(n,)``."""
        return self._costs

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self._costs)

    @property
    def everything(self) -> Coalition:
        """All records."""
        return grand(self.n)

    def cost(self, coalition: Coalition) -> float:
        """What a coalition costs together."""
        total = 0.0
        bits = int(coalition)
        while bits:
            lowest = bits & -bits
            total += self._costs[lowest.bit_length() - 1]
            bits ^= lowest
        return total

    def ranked(self) -> list[int]:
        """Records by descending score, ties by index."""
        return list(self._by_rank)

    def by_cost(self, records: Sequence[int]) -> list[int]:
        """These records by descending cost, ties by index."""
        return sorted(records, key=lambda i: (-self._costs[i], i))

    def legacy_order(self) -> list[int]:
        """Ascending by (score, index): the order JointCore was first published with."""
        return list(self._worst_first)

    def cost_order(self, b: int = 4) -> list[int]:
        """Outside the top ``b`` ascending by (score, index), then the top by descending cost."""
        top = self.ranked()[:b]
        inside = set(top)
        return [i for i in self.legacy_order() if i not in inside] + self.by_cost(top)


class Step(NamedTuple):
    """One answered question of a trace."""

    ask: Ask
    same: bool


class Reduction(NamedTuple):
    """What came out of a search, finished or not.

    Attributes:
        kept: The core; the full set when nothing could be removed.
        certificate: What is known about it.
        finished: False when the budget ended the search early; ``kept`` is sufficient all the same.
        steps: Every evaluation, in order, repeats included.
    """

    kept: Coalition
    certificate: Certificate
    finished: bool
    steps: tuple[Step, ...]

    @property
    def evaluations(self) -> int:
        """Questions asked; the reference with all records is not one of them."""
        return len(self.steps)


def ask(
    coalition: int, likely: float = 0.5, beside: Callable[[int], list[Ask]] | None = None
) -> Question:
    """The plain question about a retained coalition."""
    return Question(Ask(Coalition(coalition)), likely, beside)


def unasked(kept: Coalition, certificate: Certificate = "none") -> Search:
    """A selection that asks nothing."""
    return Core(kept, certificate)
    yield  # what makes it a generator, so that all methods look alike


def semantic_top(problem: Problem, b: int) -> Search:
    """Keep the ``b`` records with the highest scores."""
    return unasked(coalition_of(problem.ranked()[:b]))


def drive(
    search: Search, oracle: Oracle, *, problem: Problem, limit: int | None = None
) -> Reduction:
    """Run a search against an oracle, at most ``limit`` evaluations.

    The search may be stopped after any evaluation: the answer then is the cheapest set the oracle
    confirmed, or the full set marked ``unreduced`` (always so for a limit below 1).

    Returns:
        The reduction with its full trace.
    """
    steps: list[Step] = []
    try:
        question = next(search)
        while limit is None or len(steps) < limit:
            same = oracle(question.ask)
            steps.append(Step(question.ask, same))
            question = search.send(same)
    except StopIteration as stop:
        return finished(stop.value, steps, problem)
    search.close()
    return stopped(steps, problem)


def finished(core: Core, steps: Sequence[Step], problem: Problem) -> Reduction:
    """The reduction of a search that came to its end."""
    certificate = core.certificate
    if core.kept == problem.everything and certificate in {"none", "sufficient"}:
        certificate = "unreduced"
    return Reduction(core.kept, certificate, finished=True, steps=tuple(steps))


def stopped(steps: Sequence[Step], problem: Problem) -> Reduction:
    """The reduction of a search whose budget ran out: the cheapest confirmed set so far."""
    confirmed = [step.ask.coalition for step in steps if step.same]
    kept = min(confirmed, key=problem.cost, default=problem.everything)
    certificate: Certificate = "sufficient" if confirmed else "unreduced"
    return Reduction(kept, certificate, finished=False, steps=tuple(steps))
