"""Fewer rounds by asking ahead: several questions at once, the likeliest continuations first.

Pure. A search is replayed against the answers known so far, then followed along the answers it
thinks likely; what it would ask there is asked now. Answers off the path are spent too, but a
search that takes told answers still learns from them.
"""

import heapq
import itertools
from collections.abc import Mapping
from typing import NamedTuple

from assay.guards.protocols import Ask
from assay.guards.reduction.search import (
    Core,
    Oracle,
    Problem,
    Question,
    Reduction,
    Search,
    SearchFactory,
    Step,
    finished,
    stopped,
)


class _Node(NamedTuple):
    """A point the search may come to: how unlikely, under which assumptions."""

    rank: float
    number: int
    assumed: Mapping[Ask, bool]
    search: Search | None
    question: Question | None


class Speculator:
    """Drives a search in batches; remembers every answer, so no question is asked twice.

    Args:
        start: Starts the search afresh; equal answers must lead to equal questions.
        problem: The records it reduces.
        concurrency: Most questions in a batch, at least 1.
        limit: Most questions in all; ``None``: no limit.
        depth: Most continuations looked at per question of a batch.

    Raises:
        ValueError: If the concurrency is below 1.
    """

    def __init__(
        self,
        start: SearchFactory,
        problem: Problem,
        *,
        concurrency: int,
        limit: int | None = None,
        depth: int = 4,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, got {concurrency}")
        self._start = start
        self._problem = problem
        self._concurrency = concurrency
        self._limit = limit
        self._depth = depth
        self._known: dict[Ask, bool] = {}
        self._steps: list[Step] = []
        self._core: Core | None = None
        self._question = self._open_question()
        self.rounds = 0

    def batch(self) -> list[Ask]:
        """The next questions to ask at once; empty when the search or the limit is at its end."""
        if self._question is None:
            return []
        room = self._concurrency
        if self._limit is not None:
            room = min(room, self._limit - len(self._steps))
        if room <= 1:
            return [self._question.ask][: max(room, 0)]
        return self._ahead(self._question, room)

    def learn(self, answers: Mapping[Ask, bool]) -> None:
        """Take in the answers to a batch."""
        self.rounds += 1
        self._known.update(answers)
        self._steps += [Step(ask, same) for ask, same in answers.items()]
        self._question = self._open_question()

    def narrow(self) -> None:
        """From now on ask one question at a time."""
        self._concurrency = 1

    def result(self) -> Reduction:
        """The reduction so far; ``steps`` holds everything spent."""
        if self._core is not None:
            return finished(self._core, self._steps, self._problem)
        return stopped(self._steps, self._problem)

    def _open_question(self) -> Question | None:
        """The first question no answer is known to; keeps the core where there is none."""
        question, core = self._advance(self._start(self._known), {})
        self._core = core
        return question

    def _advance(
        self, search: Search, assumed: Mapping[Ask, bool], at: Question | None = None
    ) -> tuple[Question | None, Core | None]:
        """Feed what is known or assumed, to the first open question or to the end.

        ``at`` is the question a running search waits at.
        """
        try:
            question = at or next(search)
            send, known = search.send, self._known
            while True:
                same = known.get(question.ask)
                if same is None and (same := assumed.get(question.ask)) is None:
                    return question, None
                question = send(same)
        except StopIteration as stop:
            return None, stop.value

    def _ahead(self, first: Question, room: int) -> list[Ask]:
        chosen = dict.fromkeys([] if first.beside is None else first.beside(room))
        counter = itertools.count()
        heap = [_Node(-1.0, next(counter), {}, None, first)]
        for _ in range(room * self._depth):
            if not heap or len(chosen) >= room:
                break
            node = heapq.heappop(heap)
            search, question = self._reach(node)
            if question is None:
                continue
            chosen[question.ask] = None
            likely = question.likely >= 0.5  # noqa: PLR2004  # the likelier of the two answers
            for same in (likely, not likely):
                chance = question.likely if same else 1 - question.likely
                assumed = {**node.assumed, question.ask: same}
                # Only one continuation can take over the running search; the other is replayed.
                live = search if same is likely else None
                heapq.heappush(
                    heap, _Node(node.rank * chance, next(counter), assumed, live, question)
                )
        return list(chosen)

    def _reach(self, node: _Node) -> tuple[Search | None, Question | None]:
        if not node.assumed:
            return None, node.question
        if node.search is None or node.question is None:
            search = self._start(self._known)
            return search, self._advance(search, node.assumed)[0]
        return node.search, self._advance(node.search, node.assumed, node.question)[0]


class Rounds(NamedTuple):
    """A reduction and the number of batches it took, one after the other."""

    reduction: Reduction
    rounds: int


def drive_in_rounds(
    start: SearchFactory,
    oracle: Oracle,
    *,
    problem: Problem,
    concurrency: int,
    limit: int | None = None,
) -> Rounds:
    """Run a search against an oracle in batches of at most ``concurrency`` questions.

    Returns:
        The reduction, whose evaluations are all that was spent, and the rounds.
    """
    speculator = Speculator(start, problem, concurrency=concurrency, limit=limit)
    while batch := speculator.batch():
        speculator.learn({ask: oracle(ask) for ask in batch})
    return Rounds(speculator.result(), speculator.rounds)
