"""After a decision: where what it admits leads to a wrong answer, the smallest verified withholding."""

import msgspec

from assay.errors import GuardFailed
from assay.guards.among import Among, part_of
from assay.guards.meclear import MeClear
from assay.guards.protocols import Case, Decision, Experimenter


async def to_recovered(
    decision: Decision, case: Case, laboratory: Experimenter, clearing: MeClear
) -> Decision:
    """The same decision with fewer records admitted, where only that is verified to help.

    Coalitions of the admitted records are valued; nothing is withheld that independent draws did
    not confirm, and where nothing is, or the model gives no answer, all that was admitted stays.
    What was not admitted is not asked about again. Answers of the same laboratory are shared, so
    that a context the decision has asked about already costs nothing.

    Args:
        decision: Whose admitted records are to be cleared.
        case: What it decided about.
        laboratory: Where coalitions become outcomes.
        clearing: Clears.
    """
    places = [place for place, judgement in enumerate(decision.judgements) if judgement.admitted]
    # Doubtful records are shown with a mark that experiments do not show.
    if not places or any(judgement.flagged for judgement in decision.admitted):
        return decision
    try:
        cleared = await clearing.review(part_of(case, places), Among(laboratory, places))
    except GuardFailed as failure:
        return decision.certified(f"not cleared: {failure}")
    judgements = list(decision.judgements)
    for place, judgement in zip(places, cleared.judgements, strict=True):
        if judgement.decided and not judgement.admitted:
            judgements[place] = judgement
    return msgspec.structs.replace(
        decision.certified(f"cleared: {cleared.certificate}"),
        judgements=tuple(judgements),
        spent=decision.spent + cleared.spent,
        trace=cleared.trace,
    )
