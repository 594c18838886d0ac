"""What one answer says about whether a context is right, when answers may be noisy."""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from assay.guards.clearance import RIGHT
from assay.guards.clearing.probes import Batch, Probe
from assay.guards.coalitions import Coalition, Utilities

AnswerKind: TypeAlias = Literal["deterministic", "gaussian", "bernoulli"]

SURE = 14.0
"""Log-odds of an answer that is the same every time; finite, so that a wrong model can be told."""

Questions: TypeAlias = Generator[Batch, Utilities, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """How utilities scatter around a context's value, and when that is certain enough.

    Attributes:
        kind: ``deterministic``: the same every time; ``gaussian``: a graded utility with noise;
            ``bernoulli``: 0 or 1.
        sd: Standard deviation of the noise of graded utilities, in units of utility.
        right: Assumed chance that a right context is answered right (bernoulli).
        wrong: Assumed chance that a wrong context is answered right (bernoulli).
        margin: Assumed distance between right and wrong values (gaussian), in units of utility.
        enough: Log-odds at which a context is called right or wrong. With the defaults two more
            wins than losses, or the other way round.
        most: Most draws of one context for one call; undecided after that counts as not right.
    """

    kind: AnswerKind = "deterministic"
    sd: float = 0.1
    right: float = 0.88
    wrong: float = 0.08
    margin: float = 0.4
    enough: float = 3.5
    most: int = 9

    def log_odds(self, utilities: Utilities) -> npt.NDArray[np.float64]:
        """Evidence of each answer that its context is right, natural log; 0 for no measurement."""
        if self.kind == "gaussian":
            evidence = (utilities - RIGHT) * self.margin / max(self.sd, 1e-3) ** 2
        elif self.kind == "deterministic":
            return np.where(np.isfinite(utilities), np.where(utilities >= RIGHT, SURE, -SURE), 0.0)
        else:
            win = math.log(self.right / self.wrong)
            loss = math.log((1 - self.wrong) / (1 - self.right))
            evidence = np.where(utilities >= RIGHT, win, -loss)
        bounded = np.clip(evidence, -2 * self.enough, 2 * self.enough)
        return np.where(np.isfinite(utilities), bounded, 0.0)

    @property
    def chances(self) -> tuple[float, float]:
        """Chance that an answer is right on a right and on a wrong context."""
        return (self.right, self.wrong) if self.kind == "bernoulli" else (0.99, 0.01)

    @property
    def fewest(self) -> int:
        """Draws that a call takes at least, so that they can be asked at once."""
        return 2 if self.kind == "bernoulli" else 1


@dataclass(slots=True)
class Notebook:
    """Evidence about contexts, as a search gathers it.

    Attributes:
        answers: How to read an answer.
        evidence: Log-odds that a context is right, from all its draws.
        first: First utility of each context asked.
        draws: Draws asked of each context.
        enough: Log-odds at which a context is called; a search may raise it.
        unmeasured: Probes that gave no measurement.
        verified: Contexts that ``verify`` found right.
    """

    answers: Answers
    evidence: dict[Coalition, float] = field(default_factory=dict[Coalition, float])
    first: dict[Coalition, float] = field(default_factory=dict[Coalition, float])
    draws: dict[Coalition, int] = field(default_factory=dict[Coalition, int])
    enough: float = 0.0
    unmeasured: int = 0
    verified: list[Coalition] = field(default_factory=list[Coalition])

    def __post_init__(self) -> None:
        self.enough = self.enough or self.answers.enough

    def is_right(self, context: Coalition) -> bool:
        """Whether the evidence so far is that the task is done on this context."""
        return self.evidence.get(context, 0.0) > 0

    def is_settled(self, context: Coalition) -> bool:
        """Whether more draws would be a waste."""
        if self.answers.kind == "deterministic":
            return context in self.draws
        return abs(self.evidence.get(context, 0.0)) >= self.enough

    def ask(self, contexts: Sequence[Coalition]) -> Questions:
        """One fresh draw per listed context, in one stage; a context listed twice is drawn twice.

        Deterministic contexts that were asked before are not asked again.
        """
        if self.answers.kind == "deterministic":
            contexts = list(dict.fromkeys(c for c in contexts if c not in self.draws))
        probes: list[Probe] = []
        for context in contexts:
            draw = self.draws.get(context, 0)
            probes.append(Probe(context, draw))
            self.draws[context] = draw + 1
        if probes:
            utilities = yield probes
            self._note(probes, utilities)

    def settle(self, contexts: Sequence[Coalition]) -> Questions:
        """Draw the contexts until each is settled or has had its most draws."""
        end = {context: self.draws.get(context, 0) + self.answers.most for context in contexts}
        while True:
            unsettled = [c for c in end if not self.is_settled(c) and self.draws.get(c, 0) < end[c]]
            if not unsettled:
                return
            yield from self.ask([c for c in unsettled for _ in range(self._at_once(c))])

    def _at_once(self, context: Coalition) -> int:
        return 1 if self.draws.get(context, 0) else self.answers.fewest

    def verify(self, context: Coalition) -> Generator[Batch, Utilities, bool]:
        """Whether fresh draws alone, none of which led here, say the context is right.

        A deterministic context needs no second answer: it is asked only if it was not before.
        """
        if self.answers.kind == "deterministic":
            yield from self.ask([context])
            passed = self.is_right(context)
        else:
            passed = yield from self._draw_afresh(context)
        if passed:
            self.verified.append(context)
        return passed

    def right_contexts(self) -> list[Coalition]:
        """Contexts verified to be right; deterministic ones need only have been asked."""
        if self.answers.kind == "deterministic":
            return [context for context in self.draws if self.is_right(context)]
        return self.verified

    def _draw_afresh(self, context: Coalition) -> Generator[Batch, Utilities, bool]:
        before = self.evidence.get(context, 0.0)
        for draw in range(self.answers.most):
            yield from self.ask([context] * (self.answers.fewest if draw == 0 else 1))
            fresh = self.evidence[context] - before
            if abs(fresh) >= self.answers.enough:
                return fresh > 0
        return False

    def _note(self, probes: Batch, utilities: Utilities) -> None:
        for probe, utility, log_odds in zip(
            probes, utilities, self.answers.log_odds(utilities), strict=True
        ):
            context = probe.coalition
            self.first.setdefault(context, float(utility))
            self.evidence[context] = self.evidence.get(context, 0.0) + float(log_odds)
            self.unmeasured += int(not np.isfinite(utility))
