"""What a laboratory has spent so far."""

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from assay.guards.protocols import Ledger, Usage


class Accounts:
    """Counts questions as they are answered, so that a cancelled one is counted whole or not.

    Args:
        concurrency: Calls that may run at once; a round is that many questions.
        now: Seconds from an arbitrary start.
    """

    def __init__(self, *, concurrency: int, now: Callable[[], float]) -> None:
        self._concurrency = concurrency
        self._now = now
        self._asked: set[str] = set()
        self._hits = 0
        self._live = 0
        self._rounds = 0
        self._tokens = 0
        self._money = 0.0
        self._seconds = 0.0
        self._inside = 0
        self._entered = 0.0

    def hit(self, key: str) -> None:
        """The question was answered by the cache."""
        if self._first(key):
            self._hits += 1

    def sent(self, key: str, usage: Usage, money: float) -> None:
        """The question reached the model, whatever came of it."""
        self._first(key)
        self._live += 1
        self._tokens += usage.total
        self._money += money

    def unsent(self, key: str) -> None:
        """The question was put, but could not be sent."""
        self._first(key)

    @contextmanager
    def batch(self, keys: Sequence[str]) -> Generator[None]:
        """Around the questions that one caller leads; adds the rounds of those that are new.

        Rounds are ``ceil(new distinct questions / concurrency)``, cached or not: a property of the
        method, not of what happens to be cached. Questions that were cancelled unsent add none.
        """
        new = [key for key in keys if key not in self._asked]
        try:
            yield
        finally:
            self._rounds += math.ceil(sum(key in self._asked for key in new) / self._concurrency)

    @contextmanager
    def inside(self) -> Generator[None]:
        """Around everything a caller waits for; overlapping callers' time counts once."""
        if not self._inside:
            self._entered = self._now()
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._seconds += self._now() - self._entered

    def ledger(self) -> Ledger:
        """The state now; calls in flight are not in it."""
        running = self._now() - self._entered if self._inside else 0.0
        return Ledger(
            evaluations=len(self._asked),
            cache_hits=self._hits,
            live=self._live,
            rounds=self._rounds,
            tokens=self._tokens,
            money=self._money,
            seconds=self._seconds + running,
        )

    def _first(self, key: str) -> bool:
        first = key not in self._asked
        self._asked.add(key)
        return first


def spent_between(before: Ledger, after: Ledger) -> Ledger:
    """What was spent from one reading of a ledger to a later one."""
    return Ledger(
        evaluations=after.evaluations - before.evaluations,
        cache_hits=after.cache_hits - before.cache_hits,
        live=after.live - before.live,
        rounds=after.rounds - before.rounds,
        tokens=after.tokens - before.tokens,
        money=after.money - before.money,
        seconds=after.seconds - before.seconds,
    )
