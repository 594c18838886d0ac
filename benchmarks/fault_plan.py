"""Which faults strike, and when: drawn from a seed."""

from typing import NamedTuple

import numpy as np

_EVENTS = (
    "message_received",
    "candidates_retrieved",
    "guard_decided",
    "reply_produced",
    "memories_written",
)

POINTS = (
    *(f"{when} {event}" for event in _EVENTS for when in ("before", "after")),
    "before an answer is cached",
    "before the turns are archived",
    "before the records are written",
)
"""Where a worker may die in a turn: around each append to the journal, and before each other write."""

ANYWHERE = "anywhere"
SHARES = {"worker": 0.6, "nats": 0.13, "postgres": 0.12, "network": 0.15}
"""Of the kinds of faults."""

_NAMES = {
    "nats": "NATS killed",
    "postgres": "PostgreSQL killed",
    "network": "network of a worker cut",
}


class Fault(NamedTuple):
    """What is to happen.

    Attributes:
        kind: Of ``SHARES``.
        point: Of a turn, where a worker dies; ``ANYWHERE``: whatever it does.
        at: Turns begun before it.
        size: From 0 to 1: how long something is away, which worker.
    """

    kind: str
    point: str
    at: int
    size: float

    @property
    def name(self) -> str:
        """As the table calls it."""
        return f"worker killed {self.point}" if self.kind == "worker" else _NAMES[self.kind]


def planned(faults: int, turns: int, users: int, rng: np.random.Generator) -> list[Fault]:
    """Faults in order, evenly over the turns; each point of a turn is hit about as often."""
    kinds = [kind for kind, share in SHARES.items() for _ in range(round(share * faults))]
    kinds = [*kinds, *["worker"] * faults][:faults]
    points = [(*POINTS, ANYWHERE)[n % (len(POINTS) + 1)] for n in range(faults)]
    last = max(1, turns - 2 * users)
    places = np.sort(rng.integers(0, last, size=faults))
    return [
        Fault(kinds[one], points[other], int(at), float(size))
        for one, other, at, size in zip(
            rng.permutation(faults),
            rng.permutation(faults),
            places,
            rng.random(faults),
            strict=True,
        )
    ]


def every_point(turns: int) -> list[Fault]:
    """A worker dies at each point of a turn, once."""
    return [Fault("worker", p, n * turns // (len(POINTS) + 1), 0) for n, p in enumerate(POINTS)]
