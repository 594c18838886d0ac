"""What an answer is worth where the benchmark knows the right one and the wrong one.

Every function here knows the reference answer: it judges models and methods, and no blind method
may be given it.
"""

import math
from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

import numpy as np

from assay.errors import ModelUnavailable
from assay.guards.coalitions import EMPTY, Coalition, Utilities
from assay.guards.outcomes import has_answer
from assay.guards.protocols import Ask, Experimenter, Outcome
from assay.scenarios.normalise import holds, words

UtilityName: TypeAlias = Literal["contrast", "likelihood", "answer"]

LEAST_GAIN = 0.5
"""What the clean context must add to the answer's log-probability to be needed, nats per token."""


class ReferenceUtility(Protocol):
    """Utilities in [0, 1] against the reference; at least one half: the task is done."""

    async def __call__(self, coalitions: Sequence[Coalition]) -> Utilities:
        """Shape ``(m,)``; NaN where there was no measurement.

        Raises:
            ModelUnavailable: If the model does not answer; the run stops there and can go on.
        """
        ...


class LikelihoodUtility:
    """From the log-probability of the reference answer, and with ``contrast`` of the wrong one.

    *Progress* is where the answer's mean log-probability per token stands between the empty context
    (0) and the clean one (1). *Share* is ``p / (p + q)`` for the geometric mean probabilities of
    the right and the wrong answer. With contrast the utility is the smaller of the two: the context
    supports the answer, and supports it more than the wrong one; without it is progress alone. So
    the empty context is never right, and where the clean one adds less than half a nat per token,
    nothing is: the model does not need, or does not use, the evidence.

    Args:
        laboratory: With a likelihood model.
        answer: The right answer.
        foil: The wrong one; ``None`` leaves share out.
        clean: The coalition of everything but the faults.
    """

    def __init__(
        self, laboratory: Experimenter, *, answer: str, foil: str | None, clean: Coalition
    ) -> None:
        self._laboratory = laboratory
        self._answers = (answer,) if foil is None else (answer, foil)
        self._clean = clean

    async def __call__(self, coalitions: Sequence[Coalition]) -> Utilities:
        every = [EMPTY, self._clean, *coalitions]
        asks = [Ask(c, answer=answer) for c in every for answer in self._answers]
        outcomes = await self._laboratory.outcomes(asks)
        logs = np.array([_log(o) for o in outcomes]).reshape(len(every), len(self._answers))
        empty, clean = logs[0, 0], logs[1, 0]
        if not clean - empty >= LEAST_GAIN:
            return np.where(np.isfinite(logs[2:, 0] + clean - empty), 0.0, math.nan)
        progress = np.clip((logs[2:, 0] - empty) / (clean - empty), 0.0, 1.0)
        if len(self._answers) == 1:
            return np.asarray(progress, dtype=np.float64)
        share = 1.0 / (1.0 + np.exp(logs[2:, 1] - logs[2:, 0]))
        return np.asarray(np.minimum(progress, share), dtype=np.float64)


class AnswerUtility:
    """1 where the model's answer holds the reference answer's words and not the foil, else 0."""

    def __init__(self, laboratory: Experimenter, *, answer: str, foil: str) -> None:
        self._laboratory = laboratory
        self._answer = words(answer)
        self._foil = words(foil)

    async def __call__(self, coalitions: Sequence[Coalition]) -> Utilities:
        outcomes = await self._laboratory.outcomes([Ask(c) for c in coalitions])
        return np.array([self._worth(outcome) for outcome in outcomes], dtype=np.float64)

    def _worth(self, outcome: Outcome) -> float:
        _require_available(outcome)
        if not has_answer(outcome):
            return math.nan
        said = words(outcome.text)
        return float(holds(said, self._answer) and not holds(said, self._foil))


def reference_utility(
    name: UtilityName, laboratory: Experimenter, *, answer: str, foil: str, clean: Coalition
) -> ReferenceUtility:
    """The utility of this name for one case."""
    if name == "answer":
        return AnswerUtility(laboratory, answer=answer, foil=foil)
    return LikelihoodUtility(
        laboratory, answer=answer, foil=foil if name == "contrast" else None, clean=clean
    )


def _log(outcome: Outcome) -> float:
    _require_available(outcome)
    return math.nan if outcome.log_likelihood is None else outcome.log_likelihood


def _require_available(outcome: Outcome) -> None:
    if outcome.status == "unavailable":
        raise ModelUnavailable(outcome.detail)
