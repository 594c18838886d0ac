"""One scenario tried: played, checked and, where it fails, told."""

from collections.abc import Sequence

import anyio

from assay.scenarios.cases.checking import Finding, findings
from assay.scenarios.cases.files import CaseFile
from assay.scenarios.cases.playing import Played, play
from assay.scenarios.cases.telling import told


class Unmet(AssertionError):
    """A scenario did not go as expected; the text says what was expected, what came, and the cost.

    Attributes:
        played: The scenario as it went.
        found: What was not met.
    """

    def __init__(self, played: Played, found: Sequence[Finding]) -> None:
        super().__init__(told(played, found))
        self.played = played
        self.found = tuple(found)


def tried(file: CaseFile, *, record: bool = False, budget: int | None = None) -> Played:
    """Play a scenario and check it; blocks, so not inside an event loop.

    Args:
        file: The scenario.
        record: Ask the real model and record its answers.
        budget: Evaluations all its turns may cost together.

    Raises:
        Unmet: If an expectation is not met.
        AssayError: If it cannot be played: a missing cassette, an unknown name.
    """

    async def one() -> Played:
        return await play(file, record=record, budget=budget)

    played = anyio.run(one)
    found = findings(played)
    if found:
        raise Unmet(played, found)
    return played
