"""CMI in batches: candidates are tried together first, and alone only where a batch helps."""

import math
from collections.abc import Mapping

from assay.guards.coalitions import EMPTY, Coalition, coalition_of, contains
from assay.guards.intervention import CMI, Effect, ValueFactory, archive_agreement, scores_of
from assay.guards.protocols import Case, Experimenter, OnUndecided
from assay.guards.values import OutcomeValue


class BatchedCMI(CMI):
    """CMI that asks about batches of candidates before single ones; at most two batches of asks.

    First the prompt without records and with each batch. A batch that does not raise the value is
    withheld as a whole, its members never tried alone: their effect is the batch's. The members of
    the others are then measured as CMI does. That saves ``2 * size - 1`` evaluations per batch withheld
    and costs one per batch kept; a useful record beside a harmful one may be missed.

    Args:
        on_undecided: What becomes of a candidate that could not be measured.
        seed: Draws the perturbation of each candidate, with its text.
        size: Candidates tried together; neighbours in the case's order.
        value: Makes the value function of a case.

    Raises:
        ValueError: If ``size`` is below 1.
    """

    def __init__(
        self,
        *,
        on_undecided: OnUndecided = "withhold",
        seed: int = 7,
        size: int = 2,
        value: ValueFactory = archive_agreement,
    ) -> None:
        if size < 1:
            raise ValueError(f"size must be at least 1, got {size!r}")
        super().__init__(on_undecided=on_undecided, seed=seed, value=value)
        self._size = size

    @property
    def name(self) -> str:
        """``cmi_batch``."""
        return "cmi_batch"

    async def measure(
        self, case: Case, laboratory: Experimenter, value: OutcomeValue
    ) -> list[Effect]:
        batches = self._batches(len(case.candidates))
        joint = await scores_of([value.ask(c) for c in (EMPTY, *batches)], laboratory, value)
        s_no = joint[value.ask(EMPTY)]
        gains = {batch: joint[value.ask(batch)] - s_no for batch in batches}
        # A batch without a measurement says nothing against its members.
        tried = [
            i
            for batch, gain in gains.items()
            for i in range(len(case.candidates))
            if contains(batch, i) and not gain <= 0
        ]
        asks = [ask for i in tried for ask in self.asks_about(i, case, value)]
        alone = await scores_of(asks, laboratory, value) if asks else {}
        return [
            self.effect_of(i, case, value, alone, s_no)
            if i in tried
            else Effect(utility=_gain_of(i, gains), stability=math.nan)
            for i in range(len(case.candidates))
        ]

    def _batches(self, n: int) -> list[Coalition]:
        return [coalition_of(range(i, min(i + self._size, n))) for i in range(0, n, self._size)]


def _gain_of(i: int, gains: Mapping[Coalition, float]) -> float:
    return next(gain for batch, gain in gains.items() if contains(batch, i))
