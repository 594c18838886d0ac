"""What experiments add to the panel: effects, and a check that no withheld value still answers."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from assay.errors import BudgetExceeded
from assay.guards.coalitions import (
    EMPTY,
    Coalition,
    coalition_of,
    grand,
    members,
    singleton,
    without,
)
from assay.guards.evidence.brief import Brief
from assay.guards.evidence.contest import support
from assay.guards.evidence.denial import polarity
from assay.guards.evidence.text import content
from assay.guards.outcomes import has_answer
from assay.guards.protocols import Ask, Experimenter, Outcome

_MOST_ALONE: Final = 8
_MOST_ABLATED: Final = 6


class Checked(NamedTuple):
    """What the experiments gave.

    Attributes:
        admitted: The coalition to admit: the one given, or less.
        effects: For each candidate, how much better supported the answer is with it alone than
            with none, in [-1, 1]; ``None`` where not measured.
        certificate: What was verified about ``admitted``.
    """

    admitted: Coalition
    effects: tuple[float | None, ...]
    certificate: str


class Doubts(NamedTuple):
    """What the answer with the admitted records is searched for.

    Attributes:
        outsiders: Members of the admitted coalition that are withheld if the answer takes a withheld
            value from them.
        strangers: Those of them that are also withheld if it takes a value of their own from them
            that nobody ever said; a tool may well tell what nobody said.
        withheld_values: Terms that withheld records claim.
        sources: What outsiders that repeat others say first, to name a source; harmless where an
            answer quotes it.
    """

    outsiders: Coalition
    strangers: Coalition
    withheld_values: frozenset[str]
    sources: tuple[str, ...]


async def check(
    brief: Brief,
    laboratory: Experimenter,
    admitted: Coalition,
    *,
    contenders: Sequence[int],
    doubts: Doubts,
) -> Checked:
    """Ask with nothing, with all, with each contender alone and with ``admitted``; then clear.

    At most 18 distinct evaluations; anytime: what the budget does not allow is left out, and the
    certificate says so.

    Args:
        brief: The case.
        laboratory: Where coalitions become outcomes.
        admitted: What evidence would admit.
        contenders: Candidates whose effect is worth knowing, most relevant first.
        doubts: What to look for in the answer, and in whom.
    """
    alone = [singleton(i) for i in contenders[:_MOST_ALONE]]
    n = len(brief.texts)
    answers = await _answers(laboratory, [admitted, EMPTY, grand(n), *alone])
    effects = tuple(_effect(brief, answers, i) for i in range(n))
    if admitted not in answers:
        return Checked(admitted, effects, "unverified: the budget was spent")
    cleared, certificate = await _clear(brief, laboratory, answers, admitted, doubts)
    return Checked(cleared, effects, certificate)


async def _answers(
    laboratory: Experimenter, coalitions: Sequence[Coalition]
) -> dict[Coalition, Outcome]:
    """Outcomes of as many of the coalitions as the budget allows, the first ones first."""
    wanted = list(dict.fromkeys(coalitions))
    while wanted:
        try:
            outcomes = await laboratory.outcomes([Ask(coalition) for coalition in wanted])
        except BudgetExceeded:
            wanted = wanted[: len(wanted) // 2]
        else:
            return dict(zip(wanted, outcomes, strict=True))
    return {}


async def _clear(
    brief: Brief,
    laboratory: Experimenter,
    answers: Mapping[Coalition, Outcome],
    admitted: Coalition,
    doubts: Doubts,
) -> tuple[Coalition, str]:
    outcome = answers[admitted]
    if not has_answer(outcome):
        return admitted, f"unverified: {outcome.status}"
    suspects = members(doubts.outsiders)[:_MOST_ABLATED]
    sound = _values_of(brief, without(admitted, doubts.outsiders))
    # What was really said is no stranger's word, whoever repeats it.
    strange = _values_of(brief, doubts.strangers) - _said(brief)
    foreign = (doubts.withheld_values | strange) - sound - brief.asked
    leaked = _told(outcome, doubts) & foreign
    if not leaked:
        return admitted, "recovered: no withheld value in the answer"
    if not suspects:
        return admitted, "not recovered: a withheld value is in the answer"
    smaller = [without(admitted, singleton(i)) for i in suspects]
    ablated = await _answers(laboratory, smaller)
    carriers = [
        i
        for i, coalition in zip(suspects, smaller, strict=True)
        if coalition in ablated and leaked - _told(ablated[coalition], doubts)
    ]
    if not carriers:
        return admitted, "not recovered: a withheld value is in the answer"
    return without(admitted, coalition_of(carriers)), "recovered: by withholding what carried it"


def _told(outcome: Outcome, doubts: Doubts) -> frozenset[str]:
    """Terms of an answer, quoted sources apart."""
    text = outcome.text
    for source in doubts.sources:
        text = text.replace(source, " ")
    return content([text])


def _said(brief: Brief) -> frozenset[str]:
    return frozenset(term for turn in brief.said for term in turn.affirmed)


def _values_of(brief: Brief, coalition: Coalition) -> frozenset[str]:
    return content(brief.texts[i] for i in members(coalition))


def _effect(brief: Brief, answers: Mapping[Coalition, Outcome], i: int) -> float | None:
    alone, nothing = answers.get(singleton(i)), answers.get(EMPTY)
    if alone is None or nothing is None or not has_answer(alone) or not has_answer(nothing):
        return None
    return _supported(brief, alone.text) - _supported(brief, nothing.text)


def _supported(brief: Brief, answer: str) -> float:
    """How much of an answer the turns found for the question and all candidates affirm."""
    pool = brief.pool(*range(len(brief.texts)))
    said = polarity(answer)
    claims = said._replace(affirmed=said.affirmed - brief.asked - brief.speakers)
    weights = brief.weights(pool, *range(len(brief.texts)))
    return support(claims, [brief.said[t] for t in pool], weights, brief.speakers)
