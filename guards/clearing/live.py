"""Clearing on a laboratory: graded utilities, one bar, and independent draws before anything counts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from assay.guards.clearance import RIGHT
from assay.guards.clearing.probes import Batch
from assay.guards.coalitions import Coalition, Utilities, grand
from assay.guards.outcomes import has_answer
from assay.guards.protocols import Experimenter, Outcome
from assay.guards.values import OutcomeValue

Recovery: TypeAlias = Literal["threshold", "improvement"]

VERIFYING = 1_000
"""First draw number of a verification; no search gets there, so its draws are independent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """When the task counts as done, for utilities that need not be 0 or 1.

    Attributes:
        recovery: ``threshold``: at ``threshold`` or above, and better than with every candidate by
            ``least_gain``, so that a context just below the threshold is not "recovered" by a hair.
            ``improvement``: better than with every candidate by ``least_gain``, however low both
            are; a weaker claim, for values whose scale means little.
        threshold: In units of utility.
        least_gain: Likewise.
    """

    recovery: Recovery = "threshold"
    threshold: float = RIGHT
    least_gain: float = 0.05

    def __post_init__(self) -> None:
        if not self.least_gain > 0:
            raise ValueError(f"least_gain must be above 0, got {self.least_gain!r}")
        if not np.isfinite(self.threshold):
            raise ValueError(f"threshold must be finite, got {self.threshold!r}")

    def is_clean(self, before: float, high: float) -> bool:
        """Whether there is nothing to clear, given the utility with every candidate."""
        if self.recovery == "improvement":
            return before + self.least_gain > high
        return before >= self.threshold

    def height(self, before: float, high: float) -> float:
        """The utility a context has to reach: a cleared one, or the one there is if it does."""
        if self.is_clean(before, high):
            return min(before, self.threshold)
        improved = before + self.least_gain
        return improved if self.recovery == "improvement" else max(self.threshold, improved)


@dataclass(slots=True)
class LiveGame:
    """The game of one case: asks the laboratory and remembers what each context was worth.

    Attributes:
        value: Scores outcomes.
        laboratory: Gives them.
        n: Number of candidates.
        bar: When the task counts as done.
        known: Utility of each context's first draw; NaN: no measurement.
        height: The utility to reach, once the context with every candidate was measured.
    """

    value: OutcomeValue
    laboratory: Experimenter
    n: int
    bar: Bar
    known: dict[Coalition, float] = field(default_factory=dict[Coalition, float])
    height: float = RIGHT

    async def begin(self) -> Outcome:
        """Measure the context with every candidate and set the bar by it.

        Raises:
            BudgetExceeded: If even that does not fit.
        """
        everyone = grand(self.n)
        [outcome] = await self.laboratory.outcomes([self.value.ask(everyone)])
        self.known[everyone] = float((await self.value.worth([outcome]))[0])
        if has_answer(outcome) or outcome.log_likelihood is not None:
            self.height = self.bar.height(self.before, self.value.high)
        return outcome

    @property
    def before(self) -> float:
        """Utility with every candidate; NaN before ``begin``, or where nothing was measured."""
        return self.known.get(grand(self.n), float("nan"))

    @property
    def is_clean(self) -> bool:
        """Whether the task is done with every candidate."""
        return self.bar.is_clean(self.before, self.value.high)

    async def ask(self, probes: Batch) -> Utilities:
        """Graded utilities, as searches read them: at least one half where the task is done."""
        worth = await self._worth_of([(probe.coalition, probe.draw) for probe in probes])
        for probe, utility in zip(probes, worth, strict=True):
            self.known.setdefault(probe.coalition, float(utility))
        return self.graded(worth)

    async def measure(self, contexts: Sequence[Coalition]) -> None:
        """Learn what these contexts are worth, in one batch.

        Raises:
            BudgetExceeded: If they do not all fit; none has run then.
        """
        worth = await self._worth_of([(context, 0) for context in contexts])
        self.known.update(zip(contexts, worth.tolist(), strict=True))

    def graded(self, worth: Utilities) -> Utilities:
        """From the value's own scale to [0, 1] with the bar at one half."""
        return graded(worth, low=self.value.low, high=self.value.high, height=self.height)

    async def verify(self, context: Coalition, draws: int) -> bool:
        """Whether every one of so many draws, none of which led here, reaches the bar."""
        worth = await self._worth_of([(context, VERIFYING + draw) for draw in range(draws)])
        return bool((worth >= self.height).all())

    def reaches(self, context: Coalition) -> bool:
        """Whether the first draw of a context reached the bar."""
        return self.known.get(context, float("nan")) >= self.height

    async def _worth_of(self, draws: Sequence[tuple[Coalition, int]]) -> Utilities:
        asks = [msgspec.structs.replace(self.value.ask(c), draw=draw) for c, draw in draws]
        return await self.value.worth(await self.laboratory.outcomes(asks))


def graded(worth: Utilities, *, low: float, high: float, height: float) -> Utilities:
    """From a value's own scale to the one searches read: the bar at one half, straight beside it.

    Args:
        worth: Utilities from ``low`` to ``high``; NaN stays NaN.
        low: Worst there is; becomes 0.
        high: Best there is; becomes 1.
        height: The bar; becomes one half.
    """
    below = RIGHT * (worth - low) / max(height - low, 1e-9)
    above = RIGHT + RIGHT * (worth - height) / max(high - height, 1e-9)
    scaled = np.where(worth >= height, np.clip(above, RIGHT, 1), np.clip(below, 0, RIGHT))
    # A value a rounding below the bar must not round up to it.
    short = (worth < height) & (scaled >= RIGHT)
    scaled[short] = np.nextafter(RIGHT, 0)
    return np.where(np.isfinite(worth), scaled, np.nan)
