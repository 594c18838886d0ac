"""Methods to compare with: they ask nothing and spend nothing."""

from collections.abc import Iterable

from assay.guards.protocols import Case, Decision, Experimenter, Judgement


class NoMemory:
    """Withholds every candidate."""

    @property
    def name(self) -> str:
        """``no_memory``."""
        return "no_memory"

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        return decision_of(self.name, case, (), kept="", left="no memory is used")


class Vector:
    """Admits the best by retrieval score, as published: the first three.

    Args:
        limit: How many.

    Raises:
        ValueError: If the limit is negative.
    """

    def __init__(self, *, limit: int = 3) -> None:
        if limit < 0:
            raise ValueError(f"limit must be at least 0, got {limit!r}")
        self._limit = limit

    @property
    def name(self) -> str:
        """``vector``."""
        return "vector"

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        scores = [candidate.score for candidate in case.candidates]
        best = sorted(range(len(scores)), key=lambda i: -scores[i])[: self._limit]
        return decision_of(
            self.name,
            case,
            best,
            kept=f"among the {self._limit} most similar to the question",
            left=f"{self._limit} others are more similar to the question",
        )


class FullHistory:
    """Admits every candidate; whoever wants the whole history proposes the whole bank."""

    @property
    def name(self) -> str:
        """``full_history``."""
        return "full_history"

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        everyone = range(len(case.candidates))
        return decision_of(self.name, case, everyone, kept="every memory is used", left="")


def decision_of(
    method: str, case: Case, admitted: Iterable[int], *, kept: str, left: str
) -> Decision:
    """A decision that admits these candidates: ``kept`` and ``left`` are the two reasons."""
    chosen = frozenset(admitted)
    return Decision(
        method=method,
        judgements=tuple(
            Judgement(
                record_id=candidate.record.id,
                admitted=i in chosen,
                reason=kept if i in chosen else left,
                method=method,
            )
            for i, candidate in enumerate(case.candidates)
        ),
    )
