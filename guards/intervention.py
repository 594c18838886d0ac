"""CMI: admit a record iff answering with it is better than without, and survives a perturbation.

Source: "Causal Intervention-Based Memory Selection for Long-Horizon LLM Agents": for each candidate,
``utility = s_with - s_no`` and ``stability = s_with - s_pert``; selected iff utility > 0 and
stability >= 0. There ``s`` compares with the expected answer; here it is any value function, by
default one that knows no expected answer.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias, assert_never

from assay.errors import GuardFailed
from assay.guards.accounting import spent_between
from assay.guards.coalitions import EMPTY, singleton
from assay.guards.outcomes import has_answer
from assay.guards.perturb import perturbations_for
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
    """What was measured about one candidate, in units of the value function; NaN: not measured.

    Attributes:
        utility: With it minus without any.
        stability: With it minus perturbed, the mean over its perturbations.
        least: The least of them.
        most: The most of them. Another perturbation would fall between the two with probability
            ``(n - 1) / (n + 1)`` over ``n`` exchangeable ones, whatever their distribution.
    """

    utility: float
    stability: float
    least: float = math.nan
    most: float = math.nan


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

    With concurrency of at least ``2K + 1`` that is one round, with ``K + 1`` two. Judging by utility
    alone without perturbation spends ``K + 1``, by stability alone ``2K``; each perturbation more
    than one costs ``K``.

    Args:
        on_undecided: What becomes of a candidate that could not be measured.
        seed: Draws the perturbation of each candidate, with its text.
        criterion: Which conditions count.
        perturb: Whether perturbed records are shown at all; without, stability does not count.
        perturbations: How many different ones to show of each candidate, where so many fit its text.
        tolerance: A stability down to ``-tolerance`` still counts as stable, in units of utility.
        most_records: Admit at most so many, the most useful ones; ``None``: no limit.
        value: Makes the value function of a case.

    Raises:
        ValueError: If stability is to decide and nothing is to be perturbed, or on a negative
            tolerance or limit, or a number of perturbations below 1.
    """

    def __init__(  # noqa: PLR0913  # the published variants, one field each
        self,
        *,
        on_undecided: OnUndecided = "withhold",
        seed: int = 7,
        criterion: Criterion = "utility_and_stability",
        perturb: bool = True,
        perturbations: int = 1,
        tolerance: float = 0.0,
        most_records: int | None = None,
        value: ValueFactory = archive_agreement,
    ) -> None:
        if criterion == "stability" and not perturb:
            raise ValueError("stability needs perturbed records; use another criterion")
        if perturbations < 1:
            raise ValueError(f"perturbations must be at least 1, got {perturbations!r}")
        if not tolerance >= 0:
            raise ValueError(f"tolerance must be at least 0, got {tolerance!r}")
        if most_records is not None and most_records < 0:
            raise ValueError(f"most_records must be at least 0, got {most_records!r}")
        self._on_undecided: OnUndecided = on_undecided
        self._seed = seed
        self._criterion: Criterion = criterion if perturb else "utility"
        self._perturb = perturb
        self._perturbations = perturbations
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
        effects = await self.measure(case, laboratory, self._value(case, laboratory))
        judgements = self._judge(case, effects)
        unsure = any(not judgement.decided for judgement in judgements)
        return Decision(
            method=self.name,
            judgements=judgements,
            spent=spent_between(before, laboratory.ledger()),
            ask=QUESTION if unsure and self._on_undecided == "ask" else "",
        )

    async def measure(
        self, case: Case, laboratory: Experimenter, value: OutcomeValue
    ) -> list[Effect]:
        """What each candidate does, all asked for in one batch."""
        about = [self.asks_about(i, case, value) for i in range(len(case.candidates))]
        asks = [] if self._criterion == "stability" else [value.ask(EMPTY)]
        asks += [with_it for with_it, *_ in about]
        asks += [perturbed for _, *rest in about for perturbed in rest]
        scores = await scores_of(asks, laboratory, value)
        s_no = scores.get(value.ask(EMPTY), math.nan)
        return [self.effect_of(i, case, value, scores, s_no) for i in range(len(about))]

    def asks_about(self, i: int, case: Case, value: OutcomeValue) -> list[Ask]:
        """The asks that show candidate ``i`` alone: as it is, then perturbed."""
        names = self._perturbations_of(case.candidates[i].record.text)
        return [value.ask(singleton(i), rendering=name) for name in ("plain", *names)]

    def effect_of(
        self, i: int, case: Case, value: OutcomeValue, scores: Mapping[Ask, float], s_no: float
    ) -> Effect:
        """What candidate ``i`` does, from the scores of its asks and of the empty prompt."""
        with_it, *perturbed = self.asks_about(i, case, value)
        s_with = scores[with_it]
        differences = [s_with - scores[ask] for ask in perturbed if not math.isnan(scores[ask])]
        if not differences:
            return Effect(utility=s_with - s_no, stability=math.nan)
        return Effect(
            utility=s_with - s_no,
            stability=fmean(differences),
            least=min(differences),
            most=max(differences),
        )

    def _perturbations_of(self, text: str) -> tuple[str, ...]:
        if not self._perturb:
            return ()
        return perturbations_for(text, seed=self._seed, count=self._perturbations)

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
        return f"a perturbed wording of it serves better{_ranged(effect)}"

    def _reason_to_admit(self, effect: Effect) -> str:
        better = f"the answer is better with it{_shown(effect.utility)}"
        match self._criterion:
            case "utility":
                return better
            case "stability":
                return f"no perturbed wording of it serves better{_ranged(effect)}"
            case "utility_and_stability":
                return f"{better}, and no perturbed wording of it serves better"
            case _ as never:
                assert_never(never)


async def scores_of(
    asks: Sequence[Ask], laboratory: Experimenter, value: OutcomeValue
) -> dict[Ask, float]:
    """The worth of each ask, asked in one batch; NaN where nothing was measured.

    Raises:
        BudgetExceeded: If not all of them fit; none has run then.
        GuardFailed: If none gave an answer.
    """
    outcomes = await laboratory.outcomes(asks)
    _require_an_answer(outcomes)
    return dict(zip(asks, (await value.worth(outcomes)).tolist(), strict=True))


def _require_an_answer(outcomes: Sequence[Outcome]) -> None:
    if not any(has_answer(outcome) for outcome in outcomes):
        first = outcomes[0]
        raise GuardFailed(
            f"none of {len(outcomes)} interventions gave an answer; the first was "
            f"{first.status}: {first.detail}"
        )


def _ranged(effect: Effect) -> str:
    """The stability, with its range where more than one perturbation was shown."""
    if math.isnan(effect.least) or effect.least == effect.most:
        return _shown(effect.stability)
    return f" ({effect.stability:+.2f}, from {effect.least:+.2f} to {effect.most:+.2f})"


def _shown(effect: float) -> str:
    return "" if math.isnan(effect) else f" ({effect:+.2f})"
