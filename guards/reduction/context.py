"""Reducing what would enter a prompt to a core that leads to the same answer."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from assay.errors import BudgetExceeded
from assay.guards.coalitions import Coalition, coalition_of, members
from assay.guards.protocols import Ask, Experimenter, Ledger, Outcome
from assay.guards.reduction.live import reduce_live
from assay.guards.reduction.search import Certificate, Problem
from assay.guards.reduction.verification import verified_deletion
from assay.guards.values import normalised
from assay.stores.records import Candidate

SPARE: Final = "The answer is the same without it."
"""Why a record is left out by reduction."""

_BYTES_PER_TOKEN: Final = 4


class Reduced(NamedTuple):
    """What a context was reduced to.

    Attributes:
        kept: The core; the whole context where nothing could be left out.
        certificate: What is known about the core; ``unreduced`` where it is the whole context.
        note: Why nothing was measured; empty where it was.
        tokens_saved: Estimated prompt tokens of the texts left out.
        failed: The model gave no answer with the whole context, not even a cut one.
    """

    kept: Coalition
    certificate: Certificate
    note: str = ""
    tokens_saved: int = 0
    failed: bool = False


def text_tokens(text: str) -> int:
    """Estimated tokens of a text, at least 1: its UTF-8 bytes by four, rounded up."""
    return max(1, -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN))


async def reduce_context(
    laboratory: Experimenter,
    candidates: Sequence[Candidate],
    context: Coalition,
    *,
    concurrency: int = 1,
) -> Reduced:
    """The core of a context: the same answer, and with any one record fewer another one.

    Groups are deleted in the published order, then the core is verified by direct questions and
    repaired. Answers are the same when their normalised texts are; a cut or failed one equals
    nothing. Anytime: where the budget ends, the cheapest confirmed set is returned, or all of it.

    Args:
        laboratory: Where coalitions become outcomes.
        candidates: Bit ``i`` of a coalition is candidate ``i``.
        context: What would enter the prompt.
        concurrency: Most questions in a batch; those asked ahead are spent too.
    """
    inside = members(context)
    if not inside:
        return Reduced(context, "unreduced", note="there is nothing to leave out")
    try:
        [reference] = await laboratory.outcomes([Ask(context)])
    except BudgetExceeded:
        return Reduced(context, "unreduced", note="the budget was spent")
    if reference.status != "answered":
        note = f"the answer with the whole context was {reference.status}"
        return Reduced(context, "unreduced", note=note, failed=reference.status != "truncated")
    costs = [float(text_tokens(candidates[i].record.text)) for i in inside]
    problem = Problem(costs, [candidates[i].score for i in inside])
    decision = normalised(reference.text)

    def same(outcome: Outcome) -> bool:
        return normalised(outcome.text) == decision

    found = await reduce_live(
        lambda told: verified_deletion(problem, told=told),
        Inside(laboratory, inside),
        same,
        problem=problem,
        concurrency=concurrency,
    )
    kept = found.reduction.kept
    return Reduced(
        coalition_of(inside[at] for at in members(kept)),
        found.reduction.certificate,
        tokens_saved=int(problem.cost(problem.everything) - problem.cost(kept)),
    )


class Inside:
    """The laboratory as the members of one context see it: they are numbered from 0.

    Args:
        laboratory: Where all candidates are numbered.
        inside: The members, ascending.
    """

    def __init__(self, laboratory: Experimenter, inside: Sequence[int]) -> None:
        self._laboratory = laboratory
        self._inside = inside

    async def outcomes(self, asks: Sequence[Ask]) -> list[Outcome]:
        return await self._laboratory.outcomes([self._outside(ask) for ask in asks])

    def ledger(self) -> Ledger:
        return self._laboratory.ledger()

    def _outside(self, ask: Ask) -> Ask:
        coalition = coalition_of(self._inside[at] for at in members(ask.coalition))
        return msgspec.structs.replace(ask, coalition=coalition)
