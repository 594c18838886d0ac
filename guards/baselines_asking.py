"""Baselines that ask a model about the records: one that has them summed up, one that lets it choose."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from assay.errors import GuardFailed
from assay.guards.accounting import spent_between
from assay.guards.coalitions import grand
from assay.guards.outcomes import has_answer
from assay.guards.protocols import Ask, Case, Decision, Experimenter, Judgement, OnUndecided
from assay.guards.tasks import REFLECT, SUMMARISE
from assay.guards.undecided import QUESTION, undecided
from assay.guards.values import normalised

_NUMBER: Final = re.compile(r"(?<![\w.,-])\d+(?![\w-]|[.,]\d)")
_NONE: Final = re.compile(r"\bnone\b|\bno (?:notes?|numbers?)\b", re.IGNORECASE)


class Summary:
    """Admits every candidate, not in its own words but in a model's summary of them all.

    One question. The decision says ``shown_as="summary"``; whoever makes the final prompt asks the
    same question again, which is cached, and shows its answer instead of the records: so the text
    of a record stands in no decision, and erasing the record reaches the summary.
    """

    @property
    def name(self) -> str:
        """``summary``."""
        return "summary"

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        """Have the candidates summed up.

        Raises:
            BudgetExceeded: If the question does not fit; it has not run then.
            GuardFailed: If it gave no answer, or an empty one.
        """
        if not case.candidates:
            return Decision(method=self.name, judgements=())
        before = laboratory.ledger()
        if not (await _asked(case, laboratory, SUMMARISE)).strip():
            raise GuardFailed("the model's summary of the records is empty")
        judgements = tuple(
            Judgement(
                record_id=candidate.record.id,
                admitted=True,
                reason="it is part of the summary of all that was found",
                method=self.name,
            )
            for candidate in case.candidates
        )
        return Decision(
            method=self.name,
            judgements=judgements,
            spent=spent_between(before, laboratory.ledger()),
            shown_as="summary",
        )


class Reflection:
    """Admits what a model names when asked which records are true and needed; one question.

    Args:
        on_undecided: What becomes of the candidates when the answer names none of them and does not
            say that none is needed.
    """

    def __init__(self, *, on_undecided: OnUndecided = "withhold") -> None:
        self._on_undecided: OnUndecided = on_undecided

    @property
    def name(self) -> str:
        """``reflection``."""
        return "reflection"

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        """Let the model choose.

        Raises:
            BudgetExceeded: If the question does not fit; it has not run then.
            GuardFailed: If it gave no answer.
        """
        if not case.candidates:
            return Decision(method=self.name, judgements=())
        before = laboratory.ledger()
        answer = await _asked(case, laboratory, REFLECT)
        chosen = chosen_of(answer, [candidate.record.text for candidate in case.candidates])
        decision = Decision(
            method=self.name,
            judgements=tuple(self._judge(case, i, chosen) for i in range(len(case.candidates))),
            spent=spent_between(before, laboratory.ledger()),
        )
        if chosen is None and self._on_undecided == "ask":
            return msgspec.structs.replace(decision, ask=QUESTION)
        return decision

    def _judge(self, case: Case, i: int, chosen: frozenset[int] | None) -> Judgement:
        record_id = case.candidates[i].record.id
        if chosen is None:
            return undecided(
                record_id,
                self._on_undecided,
                reason="the model did not say which records it needs",
                method=self.name,
            )
        named = i in chosen
        return Judgement(
            record_id=record_id,
            admitted=named,
            reason=f"the model {'asked' if named else 'did not ask'} for it",
            method=self.name,
        )


def chosen_of(answer: str, texts: Sequence[str]) -> frozenset[int] | None:
    """Which texts an answer names, from 0: by repeating them, or by number from 1.

    Repeated texts count before numbers, for a text may hold numbers. ``None`` when it names none
    and does not say ``none`` either.
    """
    said = f" {normalised(answer)} "
    repeated = frozenset(
        i for i, text in enumerate(texts) if (plain := normalised(text)) and f" {plain} " in said
    )
    if repeated:
        return repeated
    numbers = (int(number) - 1 for number in _NUMBER.findall(answer[:_MOST_CHARACTERS]))
    named = frozenset(i for i in numbers if 0 <= i < len(texts))
    if named:
        return named
    return frozenset() if _NONE.search(answer) else None


_MOST_CHARACTERS: Final = 2000


async def _asked(case: Case, laboratory: Experimenter, task: str) -> str:
    [outcome] = await laboratory.outcomes([Ask(grand(len(case.candidates)), rendering=task)])
    if not has_answer(outcome):
        raise GuardFailed(
            f"the question about the records failed: {outcome.status}: {outcome.detail}"
        )
    return outcome.text
