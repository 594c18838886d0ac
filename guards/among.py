"""A guard on some of the candidates: the laboratory and the case as if there were no others."""

from collections.abc import Sequence

import msgspec

from assay.guards.coalitions import Coalition, coalition_of, members
from assay.guards.protocols import Ask, Case, Experimenter, Ledger, Outcome


def part_of(case: Case, places: Sequence[int]) -> Case:
    """The case with only these of its candidates, in this order."""
    return msgspec.structs.replace(
        case, candidates=tuple(case.candidates[place] for place in places)
    )


class Among:
    """A laboratory in which candidate ``i`` is ``places[i]`` of another one; equal prompts are shared.

    Args:
        laboratory: The other one.
        places: Candidates of it, each once, rising: the order in the prompt stays.
    """

    def __init__(self, laboratory: Experimenter, places: Sequence[int]) -> None:
        self._laboratory = laboratory
        self._places = tuple(places)

    async def outcomes(self, asks: Sequence[Ask]) -> list[Outcome]:
        """One outcome per ask, in order."""
        return await self._laboratory.outcomes(
            [msgspec.structs.replace(ask, coalition=self._there(ask.coalition)) for ask in asks]
        )

    def ledger(self) -> Ledger:
        """What has been spent in the laboratory so far."""
        return self._laboratory.ledger()

    def _there(self, coalition: Coalition) -> Coalition:
        return coalition_of(self._places[i] for i in members(coalition))
