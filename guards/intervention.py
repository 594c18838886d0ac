"""CMI: admit a record iff answering with it is better than without, and survives a perturbation.

Source: "Causal Intervention-Based Memory Selection for Long-Horizon LLM Agents": for each candidate,
``utility = s_with - s_no`` and ``stability = s_with - s_pert``; selected iff utility > 0 and
stability >= 0. There ``s`` compares with the expected answer; here it is any value function, by
default one that knows no expected answer.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias, assert_never

from assay.errors import GuardFailed
from assay.guards.accounting import spent_between
from assay.guards.coalitions import EMPTY, singleton
from assay.guards.outcomes import has_answer
from assay.guards.perturb import perturbation_for
from assay.guards.protocols import (
    Ask,
    Case,
    Decision,
    Experimenter,
    Judgement,
    OnUndecided,
    Outcome,
)
from assay.guards.undecided import QUESTION, undecided
from assay.guards.values import ArchiveAgreement, OutcomeValue

Criterion: TypeAlias = Literal["utility_and_stability", "utility", "stability"]
ValueFactory: TypeAlias = Callable[[Case, Experimenter], OutcomeValue]
"""Makes the value function of one case."""

_NAMES: Mapping[Criterion, str] = MappingProxyType(
    {"utility_and_stability": "cmi", "utility": "cmi_utility", "stability": "cmi_stability"}
)


class Effect(NamedTuple):
    """What was measured about one candidate, in units of the value function; NaN: not measured."""

    utility: float
    stability: float


def archive_agreement(case: Case, laboratory: Experimenter) -> OutcomeValue:
    """The blind value function."""
    return ArchiveAgreement(laboratory, question=case.question, evidence=case.evidence)


def passes(effect: Effect, criterion: Criterion, *, tolerance: float = 0.0) -> bool | None:
    """Whether a candidate is selected; ``None`` when what was measured does not decide it.

    Args:
        effect: What was measured.
        criterion: Which conditions count.
        tolerance: A stability down to ``-tolerance`` still counts as stable.
    """
    conditions: list[bool | None] = []
    if criterion != "stability":
        conditions.append(None if math.isnan(effect.utility) else effect.utility > 0)
    if criterion != "utility":
        stable = effect.stability >= -tolerance
        conditions.append(None if math.isnan(effect.stability) else stable)
    if False in conditions:
        return False
    return None if None in conditions else True


class CMI:
    """Causal memory intervention, as published; spends ``2K + 1`` evaluations in one batch.

    With concurrency of at least ``2K + 1`` that is one round. Judging by utility alone without
    perturbation spends ``K + 1``, by stability alone ``2K``.

    Args:
        on_undecided: What becomes of a candidate that could not be measured.
        seed: Draws the perturbation of each candidate, with its text.
        criterion: Which conditions count.
        perturb: Whether perturbed records are shown at all; without, stability does not count.
        tolerance: A stability down to ``-tolerance`` still counts as stable, in units of utility.
        most_records: Admit at most so many, the most useful ones; ``None``: no limit.
        value: Makes the value function of a case.

    Raises:
        ValueError: If stability is to decide and nothing is to be perturbed, or on a negative
            tolerance or limit.
    """

    def __init__(  # noqa: PLR0913  # the published variants, one field each
        self,
        *,
        on_undecided: OnUndecided = "withhold",
        seed: int = 7,
        criterion: Criterion = "utility_and_stability",
        perturb: bool = True,
        tolerance: float = 0.0,
        most_records: int | None = None,
        value: ValueFactory = archive_agreement,
    ) -> None:
        if criterion == "stability" and not perturb:
            raise ValueError("stability needs perturbed records; use another criterion")
        if not tolerance >= 0:
            raise ValueError(f"tolerance must be at least 0, got {tolerance!r}")
        if most_records is not None and most_records < 0:
            raise ValueError(f"most_records must be at least 0, got {most_records!r}")
        self._on_undecided: OnUndecided = on_undecided
        self._seed = seed
        self._criterion: Criterion = criterion if perturb else "utility"
        self._perturb = perturb
        self._tolerance = tolerance
        self._most_records = most_records
        self._value = value

    @property
    def name(self) -> str:
        """``cmi``, or the name of the published variant."""
        if not self._perturb:
            return "cmi_no_perturbation"
        return _NAMES[self._criterion]

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        """Decide.

        Raises:
            BudgetExceeded: If not all interventions fit; none has run then.
            GuardFailed: If no intervention gave an answer.
        """
        if not case.candidates:
            return Decision(method=self.name, judgements=())
        before = laboratory.ledger()
        effects = await self._measure(case, laboratory)
        judgements = self._judge(case, effects)
        unsure = any(not judgement.decided for judgement in judgements)
        return Decision(
            method=self.name,
            judgements=judgements,
            spent=spent_between(before, laboratory.ledger()),
            ask=QUESTION if unsure and self._on_undecided == "ask" else "",
        )

    async def _measure(self, case: Case, laboratory: Experimenter) -> list[Effect]:
        value = self._value(case, laboratory)
        asks = self._asks(case, value)
        outcomes = await laboratory.outcomes(asks)
        _require_an_answer(outcomes)
        scores = dict(zip(asks, (await value.worth(outcomes)).tolist(), strict=True))
        s_no = scores.get(value.ask(EMPTY), math.nan)
        effects: list[Effect] = []
        for i, candidate in enumerate(case.candidates):
            s_with = scores[value.ask(singleton(i))]
            s_pert = scores.get(self._perturbed(i, candidate.record.text, value), math.nan)
            effects.append(Effect(utility=s_with - s_no, stability=s_with - s_pert))
        return effects

    def _asks(self, case: Case, value: OutcomeValue) -> list[Ask]:
        n = len(case.candidates)
        asks = [] if self._criterion == "stability" else [value.ask(EMPTY)]
        asks += [value.ask(singleton(i)) for i in range(n)]
        if self._perturb:
            asks += [
                self._perturbed(i, candidate.record.text, value)
                for i, candidate in enumerate(case.candidates)
            ]
        return asks

    def _perturbed(self, i: int, text: str, value: OutcomeValue) -> Ask:
        return value.ask(singleton(i), rendering=perturbation_for(text, seed=self._seed))

    def _judge(self, case: Case, effects: Sequence[Effect]) -> tuple[Judgement, ...]:
        verdicts = [passes(e, self._criterion, tolerance=self._tolerance) for e in effects]
        kept = self._best([i for i, verdict in enumerate(verdicts) if verdict], effects)
        judgements: list[Judgement] = []
        for i, (candidate, effect) in enumerate(zip(case.candidates, effects, strict=True)):
            record_id = candidate.record.id
            measured = None if math.isnan(effect.utility) else effect.utility
            if verdicts[i] is None:
                judgement = undecided(
                    record_id,
                    self._on_undecided,
                    reason="its effect on the answer could not be measured",
                    method=self.name,
                    effect=measured,
                )
            else:
                judgement = Judgement(
                    record_id=record_id,
                    admitted=i in kept,
                    reason=self._reason(effect, passed=bool(verdicts[i]), kept=i in kept),
                    method=self.name,
                    effect=measured,
                )
            judgements.append(judgement)
        return tuple(judgements)

    def _best(self, passed: Sequence[int], effects: Sequence[Effect]) -> frozenset[int]:
        if self._most_records is None:
            return frozenset(passed)
        # An unmeasured utility (stability alone decides) ranks last.
        ranked = sorted(passed, key=lambda i: (math.isnan(effects[i].utility), -effects[i].utility))
        return frozenset(ranked[: self._most_records])

    def _reason(self, effect: Effect, *, passed: bool, kept: bool) -> str:
        if kept:
            return self._reason_to_admit(effect)
        if passed:
            return (
                f"it helps{_shown(effect.utility)}, but others help more and the limit is reached"
            )
        if effect.utility <= 0 and self._criterion != "stability":
            return f"the answer is no better with it{_shown(effect.utility)}"
        return f"a perturbed wording of it serves better{_shown(effect.stability)}"

    def _reason_to_admit(self, effect: Effect) -> str:
        better = f"the answer is better with it{_shown(effect.utility)}"
        match self._criterion:
            case "utility":
                return better
            case "stability":
                return f"no perturbed wording of it serves better{_shown(effect.stability)}"
            case "utility_and_stability":
                return f"{better}, and no perturbed wording of it serves better"
            case _ as never:
                assert_never(never)


def _require_an_answer(outcomes: Sequence[Outcome]) -> None:
    if not any(has_answer(outcome) for outcome in outcomes):
        first = outcomes[0]
        raise GuardFailed(
            f"none of {len(outcomes)} interventions gave an answer; the first was "
            f"{first.status}: {first.detail}"
        )


def _shown(effect: float) -> str:
    return "" if math.isnan(effect) else f" ({effect:+.2f})"
