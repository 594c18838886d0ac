"""Whose turn it is: those with waiting work in a circle, one piece of work each time round."""

from collections import OrderedDict
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K")


class Turn(NamedTuple, Generic[K]):
    """One turn in the line; ``stamp`` says how recent the news of its work is."""

    who: K
    stamp: int


class Line(Generic[K]):
    """A circle of those who may have waiting work; who joins is served within one round."""

    def __init__(self) -> None:
        self._stamps: OrderedDict[K, int] = OrderedDict()
        self._news = 0

    def __len__(self) -> int:
        return len(self._stamps)

    def join(self, who: K) -> None:
        """There is work for ``who``; a place that it has already stays."""
        self._news += 1
        self._stamps[who] = self._news

    def next(self) -> Turn[K] | None:
        """Who is served next, and goes to the end; ``None``: nobody waits."""
        if not self._stamps:
            return None
        who, stamp = self._stamps.popitem(last=False)
        self._stamps[who] = stamp
        return Turn(who, stamp)

    def leave(self, turn: Turn[K]) -> None:
        """No work was found at this turn: out of the line, unless news has come since."""
        if self._stamps.get(turn.who) == turn.stamp:
            del self._stamps[turn.who]
