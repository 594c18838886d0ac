"""From what a search has learned to a ``Clearing``; shared by the searches of our own."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from assay.guards.clearing.answers import Notebook
from assay.guards.clearing.probes import Batch, Clearing
from assay.guards.coalitions import (
    EMPTY,
    Coalition,
    Utilities,
    coalition_of,
    contains,
    grand,
    is_subset,
    size,
    without,
)


@dataclass(slots=True)
class Findings:
    """What one search knows so far.

    Attributes:
        n: Number of candidates.
        book: Evidence about contexts.
        flagged: Candidates held harmful, the first found first.
        tested: Withholdings verified or refuted, in order.
    """

    n: int
    book: Notebook
    flagged: list[int] = field(default_factory=list[int])
    tested: list[Coalition] = field(default_factory=list[Coalition])

    def flag(self, candidates: Sequence[int]) -> None:
        """Hold these harmful, too."""
        self.flagged.extend(i for i in candidates if i not in self.flagged)

    def grand_is_right(self) -> Generator[Batch, Utilities, bool]:
        """Whether there is nothing to clear; settled by redraws where answers are noisy."""
        everyone = grand(self.n)
        yield from self.book.settle([everyone])
        return self.book.is_right(everyone)

    def try_clearing(self, cleared: Coalition) -> Generator[Batch, Utilities, bool]:
        """Verify the context without ``cleared`` by independent draws."""
        self.tested.append(cleared)
        return (yield from self.book.verify(without(grand(self.n), cleared)))

    def clean(self) -> Clearing:
        """The result when the task is done with every candidate."""
        return Clearing(
            certificate="clean", order=tuple(range(self.n)), unmeasured=self.book.unmeasured
        )

    def recovered(self, cleared: Coalition, *, stopped: bool = False) -> Clearing:
        """The result when withholding ``cleared`` was verified to recover the task."""
        return self._clearing(cleared, certificate_recovered=True, stopped=stopped)

    def unrecovered(self) -> Clearing:
        """The result when nothing was verified: an unchanged context."""
        return self._clearing(EMPTY, certificate_recovered=False, stopped=False)

    def best(self) -> Clearing:
        """The result when the budget ends now: the smallest verified withholding, marked."""
        everyone = grand(self.n)
        right = [without(everyone, context) for context in self.book.right_contexts()]
        if EMPTY in right:
            return self.clean()
        if not right:
            return self._clearing(EMPTY, certificate_recovered=False, stopped=True)
        cleared = min(right, key=lambda deleted: (size(deleted), deleted))
        if not is_subset(cleared, coalition_of(self.flagged)):
            self.flag([i for i in range(self.n) if contains(cleared, i)])
        return self.recovered(cleared, stopped=True)

    def _clearing(
        self, cleared: Coalition, *, certificate_recovered: bool, stopped: bool
    ) -> Clearing:
        rest = [i for i in range(self.n) if i not in self.flagged]
        return Clearing(
            flagged=coalition_of(self.flagged),
            cleared=cleared,
            order=(*self.flagged, *rest),
            certificate="recovered" if certificate_recovered else "none",
            stopped=stopped,
            unmeasured=self.book.unmeasured,
            tested=tuple(self.tested),
        )
