"""Less in the prompt after a decision: what it admits, reduced to a core with the same answer."""

from collections.abc import Sequence
from typing import Final

import msgspec

from assay.errors import BudgetExceeded
from assay.guards.accounting import spent_between
from assay.guards.coalitions import Coalition, coalition_of, contains
from assay.guards.protocols import Ask, Case, Decision, Experimenter, Judgement, Outcome
from assay.guards.reduction.context import SPARE, Reduced, reduce_context
from assay.guards.values import normalised

OTHER_WORDS: Final = "paraphrase"
"""The rendering in which a core has to hold too; every renderer of the runtime knows it."""

_METHOD: Final = "reduction"


async def to_core(decision: Decision, case: Case, laboratory: Experimenter) -> Decision:
    """The same decision with fewer records admitted, where fewer lead to the same answer.

    What is left out stays in the bank and is a candidate of the next prompt. Archive fallback:
    where the core and all that was admitted lead to different answers once both are shown in other
    words, everything stays and the certificate says so. Doubtful records are shown with a mark that
    experiments do not show, so a decision that admits some is not reduced. Anytime: what the budget
    does not allow is left out.

    Args:
        decision: Whose admitted records are to be reduced.
        case: What it decided about.
        laboratory: Where coalitions become outcomes.
    """
    if any(judgement.flagged for judgement in decision.admitted):
        return decision.certified("not reduced: doubtful records are shown with a mark")
    before = laboratory.ledger()
    context = coalition_of(i for i, j in enumerate(decision.judgements) if j.admitted)
    reduced = await reduce_context(laboratory, case.candidates, context)
    holds = await _holds_otherwise(laboratory, context, reduced)
    if holds is False:
        reduced = Reduced(context, "unreduced", note="in other words the core answers differently")
    return msgspec.structs.replace(
        decision.certified(_verdict(reduced, holds=holds)),
        judgements=tuple(
            _judge(judgement, reduced, i) for i, judgement in enumerate(decision.judgements)
        ),
        spent=decision.spent + spent_between(before, laboratory.ledger()),
        tokens_saved=reduced.tokens_saved,
    )


async def _holds_otherwise(
    laboratory: Experimenter, context: Coalition, reduced: Reduced
) -> bool | None:
    """Whether core and context agree in other words; ``None`` where that was not measured."""
    if reduced.kept == context:
        return None
    asks = [Ask(context, OTHER_WORDS), Ask(reduced.kept, OTHER_WORDS)]
    try:
        outcomes: Sequence[Outcome] = await laboratory.outcomes(asks)
    except BudgetExceeded:
        return None
    if any(outcome.status != "answered" for outcome in outcomes):
        return None
    return len({normalised(outcome.text) for outcome in outcomes}) == 1


def _verdict(reduced: Reduced, *, holds: bool | None) -> str:
    if reduced.note:
        return f"not reduced: {reduced.note}"
    return f"reduced: {reduced.certificate}{', also in other words' if holds else ''}"


def _judge(judgement: Judgement, reduced: Reduced, i: int) -> Judgement:
    if not judgement.admitted or contains(reduced.kept, i):
        return judgement
    return msgspec.structs.replace(judgement, admitted=False, reason=SPARE, method=_METHOD)
