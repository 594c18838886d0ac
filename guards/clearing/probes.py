"""How a search asks: it yields batches of probes and is sent utilities.

A search never awaits and never knows who answers, so a synthetic game (``drive``) and a laboratory
(``conduct``) run the same code. One yield is one dependent stage; its probes may run at once.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from assay.errors import BudgetExceeded
from assay.guards.attribution import Interactions
from assay.guards.coalitions import EMPTY, Attributions, Coalition, Utilities
from assay.guards.protocols import ValueFunction


class Probe(NamedTuple):
    """One question: the utility of a coalition. Another ``draw`` asks afresh on purpose, and pays."""

    coalition: Coalition
    draw: int = 0


Certificate: TypeAlias = Literal["clean", "recovered", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clearing:
    """What a search found.

    Attributes:
        flagged: Candidates held harmful.
        cleared: Candidates to withhold; verified to recover, else empty.
        order: All candidates, most harmful first.
        certificate: ``clean``: the task is done with every candidate; ``recovered``: it is done
            without ``cleared`` and was not done with every candidate; ``none``: nothing verified,
            the context stays as it was.
        stopped: The budget ended the search; this is the best verified by then.
        unmeasured: Contexts asked that gave no measurement.
        tested: The withholdings that were tried, in order.
        effects: Effect per candidate in units of utility, where the method measures one.
        pairs: Pair interactions, where the method has a full table.
    """

    flagged: Coalition = EMPTY
    cleared: Coalition = EMPTY
    order: tuple[int, ...] = ()
    certificate: Certificate = "none"
    stopped: bool = False
    unmeasured: int = 0
    tested: tuple[Coalition, ...] = ()
    effects: Attributions | None = None
    pairs: Interactions | None = None


Batch: TypeAlias = Sequence[Probe]
Search: TypeAlias = Generator[Batch, Utilities, Clearing]
"""Yields batches, is sent one utility per probe (NaN: no measurement), returns a ``Clearing``.

``BudgetExceeded`` may be thrown in instead of utilities; the search then returns its best so far.
"""

Ask: TypeAlias = Callable[[Batch], Utilities]


class ProbedValue(Protocol):
    """Utilities of probes; what a laboratory offers a search."""

    async def __call__(self, probes: Batch) -> Utilities:
        """Shape ``(m,)``, in order; NaN where there was no measurement.

        Raises:
            BudgetExceeded: If the new questions do not fit; none of them has run.
        """
        ...


@dataclass(slots=True)
class Spending:
    """What a driven search cost.

    Attributes:
        stages: New evaluations of each dependent stage.
    """

    stages: list[int] = field(default_factory=list[int])

    @property
    def evaluations(self) -> int:
        """Distinct questions asked, verification included."""
        return sum(self.stages)

    def rounds(self, concurrency: int) -> int:
        """Sequential depth when ``concurrency`` questions run at once."""
        return sum(-(-new // concurrency) for new in self.stages)


def drive(search: Search, ask: Ask, *, limit: int | None = None) -> tuple[Clearing, Spending]:
    """Run a search against a synchronous source of utilities.

    Args:
        search: A fresh search.
        ask: Asked only probes that are new; repeated ones are answered from memory at no cost.
        limit: Most evaluations; a batch that does not fit is not asked and ends the search.
    """
    known: dict[Probe, float] = {}
    spending = Spending()
    try:
        batch = next(search)
        while True:
            new = list(dict.fromkeys(probe for probe in batch if probe not in known))
            left = len(new) if limit is None else limit - spending.evaluations
            if len(new) > left:
                batch = search.throw(BudgetExceeded("evaluations", needed=len(new), left=left))
                continue
            if new:
                known.update(zip(new, map(float, ask(new)), strict=True))
                spending.stages.append(len(new))
            batch = search.send(np.array([known[probe] for probe in batch], dtype=np.float64))
    except StopIteration as end:
        found: Clearing = end.value
        return found, spending


async def conduct(search: Search, ask: ProbedValue) -> Clearing:
    """Run a search against a laboratory; caching, budget and accounting are the laboratory's.

    Cancelling closes the search; what the laboratory has answered stays in its cache.
    """
    try:
        batch = next(search)
        while True:
            try:
                utilities = await ask(batch)
            except BudgetExceeded as error:
                batch = search.throw(error)
            else:
                batch = search.send(utilities)
    except StopIteration as end:
        found: Clearing = end.value
        return found
    finally:
        search.close()


def undrawn(value: ValueFunction) -> ProbedValue:
    """A value function that answers the same every time, as a source for ``conduct``."""

    async def ask(probes: Batch) -> Utilities:
        return await value([probe.coalition for probe in probes])

    return ask


def anytime(body: Search, best: Callable[[], Clearing]) -> Search:
    """``body``, but when the budget ends it the result is ``best()``."""
    try:
        return (yield from body)
    except BudgetExceeded:
        return best()
