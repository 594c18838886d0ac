"""One allowance of evaluations for a whole scenario, over all its turns."""

from collections.abc import Sequence

from assay.errors import BudgetExceeded
from assay.guards.protocols import Ask, Case, Decision, Experimenter, Guard, Ledger, Outcome


class Allowance:
    """Evaluations that may still be spent.

    Args:
        limit: Evaluations of the whole scenario; ``None``: as many as wanted.
    """

    def __init__(self, limit: int | None) -> None:
        self._left = limit
        self._refused = ""

    def take(self, wanted: int) -> None:
        """Spend.

        Raises:
            BudgetExceeded: If it does not fit; nothing is spent then.
        """
        if self._left is None:
            return
        if wanted > self._left:
            error = BudgetExceeded("evaluations", needed=wanted, left=self._left)
            self._refused = self._refused or str(error)
            raise error
        self._left -= wanted

    def noticed(self) -> str:
        """The first question that did not fit since this was last asked; empty if all did."""
        refused, self._refused = self._refused, ""
        return refused


class WithinAllowance:
    """A guard whose questions come out of one allowance (``Guard``).

    Args:
        guard: Decides.
        allowance: Shared by all its reviews.
    """

    def __init__(self, guard: Guard, allowance: Allowance) -> None:
        self._guard = guard
        self._allowance = allowance

    @property
    def name(self) -> str:
        return self._guard.name

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        return await self._guard.review(case, _Metered(laboratory, self._allowance))


class _Metered:
    """A laboratory that takes each new question from the allowance (``Experimenter``)."""

    def __init__(self, laboratory: Experimenter, allowance: Allowance) -> None:
        self._laboratory = laboratory
        self._allowance = allowance
        self._asked: set[Ask] = set()

    async def outcomes(self, asks: Sequence[Ask]) -> list[Outcome]:
        new = set(asks) - self._asked
        self._allowance.take(len(new))
        self._asked |= new
        return await self._laboratory.outcomes(asks)

    def ledger(self) -> Ledger:
        return self._laboratory.ledger()
