"""What an outcome is worth. Every value function states its range and gives NaN for no measurement."""

import math
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from assay.guards.coalitions import Coalition, Utilities, grand
from assay.guards.evidence.text import content
from assay.guards.outcomes import has_answer
from assay.guards.protocols import Ask, EvidenceSource, Experimenter, Outcome
from assay.stores.records import ArchiveTurn

_ABOUT_ANSWERING: Final = content(
    [
        "know known sure certain unsure sorry unable answer question information context provide "
        "provided available memory memories conversation conversations enough specify specified "
        "don't doesn't didn't can't cannot couldn't isn't wasn't haven't hasn't won't"
    ]
)
_ARTICLES: Final = frozenset({"a", "an", "the"})


class OutcomeValue(ABC):
    """A value function that asks a laboratory and scores what comes back.

    Args:
        laboratory: Where coalitions become outcomes.
    """

    low: float = 0.0
    high: float = 1.0

    def __init__(self, laboratory: Experimenter) -> None:
        self.laboratory = laboratory

    def ask(self, coalition: Coalition, *, rendering: str = "plain") -> Ask:
        """The ask whose outcome this function can score."""
        return Ask(coalition, rendering)

    @abstractmethod
    async def worth(self, outcomes: Sequence[Outcome]) -> Utilities:
        """Utilities of outcomes to its own asks, shape ``(m,)``; NaN where nothing was measured."""
        ...

    async def __call__(self, coalitions: Sequence[Coalition]) -> Utilities:
        """Utilities of a batch of coalitions, shown plainly, shape ``(m,)``."""
        return await self.worth(await self.laboratory.outcomes([self.ask(c) for c in coalitions]))


class AgainstReference(OutcomeValue):
    """A score against what is known to be right; for benchmarks, where it is known.

    A truncated answer is scored as it stands, for that is what the user would read; a failure gives
    NaN.

    Args:
        laboratory: Where coalitions become outcomes.
        scorer: From an answer's text to its score; NaN when it cannot tell.
        low: Least the scorer gives.
        high: Most the scorer gives.
    """

    def __init__(
        self,
        laboratory: Experimenter,
        scorer: Callable[[str], float],
        *,
        low: float = 0.0,
        high: float = 1.0,
    ) -> None:
        super().__init__(laboratory)
        self._scorer = scorer
        self.low = low
        self.high = high

    async def worth(self, outcomes: Sequence[Outcome]) -> Utilities:
        return np.array([self._scorer(o.text) if has_answer(o) else math.nan for o in outcomes])


class SameAsGrand(OutcomeValue):
    """1 where the answer is the same as with all candidates, else 0 (JointCore's question).

    The same up to ``normalise``. A truncated answer gives NaN, and a truncated or failed answer with
    all candidates gives NaN everywhere: what was cut off cannot be compared.

    Args:
        laboratory: Where coalitions become outcomes.
        n: Number of candidates.
        normalise: Brings equal decisions to one form.
    """

    def __init__(
        self,
        laboratory: Experimenter,
        n: int,
        *,
        normalise: Callable[[str], str] | None = None,
    ) -> None:
        super().__init__(laboratory)
        self._all = self.ask(grand(n))
        self._normalise = normalise or normalised

    async def worth(self, outcomes: Sequence[Outcome]) -> Utilities:
        return self._same(outcomes, await self.laboratory.outcomes([self._all]))

    async def __call__(self, coalitions: Sequence[Coalition]) -> Utilities:
        asks = [self._all, *(self.ask(c) for c in coalitions)]
        grand_outcome, *outcomes = await self.laboratory.outcomes(asks)
        return self._same(outcomes, [grand_outcome])

    def _same(self, outcomes: Sequence[Outcome], of_all: Sequence[Outcome]) -> Utilities:
        reference = self._decision(of_all[0])
        decisions = [self._decision(outcome) for outcome in outcomes]
        return np.array(
            [math.nan if None in (d, reference) else float(d == reference) for d in decisions]
        )

    def _decision(self, outcome: Outcome) -> str | None:
        return self._normalise(outcome.text) if outcome.status == "answered" else None


class LikelihoodOf(OutcomeValue):
    """How likely a given answer is: the geometric mean of its tokens' probabilities, in (0, 1].

    That is ``exp`` of the mean log-probability per token, so answers of different length compare.

    Args:
        laboratory: Where coalitions become outcomes; it needs a likelihood model.
        answer: The answer, not empty.

    Raises:
        ValueError: If the answer is empty.
    """

    def __init__(self, laboratory: Experimenter, answer: str) -> None:
        if not answer:
            raise ValueError("the likelihood of an empty answer was asked for; give an answer")
        super().__init__(laboratory)
        self._answer = answer

    def ask(self, coalition: Coalition, *, rendering: str = "plain") -> Ask:
        return Ask(coalition, rendering, answer=self._answer)

    async def worth(self, outcomes: Sequence[Outcome]) -> Utilities:
        logs = [o.log_likelihood for o in outcomes]
        return np.array([math.nan if log is None else math.exp(log) for log in logs])


class ArchiveAgreement(OutcomeValue):
    """Blind: the share of the answer's own words that past turns about it contain, in [0, 1].

    The answer's own words are its content stems without those of the question and without those
    that only speak of answering ("I am not sure"). The turns are those retrieved for question and
    answer together. An answer with no words of its own claims nothing and is worth 0. A truncated
    answer is measured by the words it has, since the measure is a share; a failure gives NaN, and
    so does an archive with no turn to compare with.

    Args:
        laboratory: Where coalitions become outcomes.
        question: What the user asked.
        evidence: Finds past turns.
        limit: Turns to compare with.
    """

    def __init__(
        self,
        laboratory: Experimenter,
        *,
        question: str,
        evidence: EvidenceSource,
        limit: int = 6,
    ) -> None:
        super().__init__(laboratory)
        self._question = question
        self._evidence = evidence
        self._limit = limit

    async def worth(self, outcomes: Sequence[Outcome]) -> Utilities:
        answers = list(dict.fromkeys(o.text for o in outcomes if has_answer(o)))
        asked = [f"{self._question} {answer}" for answer in answers]
        found = await self._evidence(asked, limit=self._limit)
        pairs = zip(answers, found, strict=True)
        worth = {answer: self._agreement(answer, turns) for answer, turns in pairs}
        return np.array([worth[o.text] if has_answer(o) else math.nan for o in outcomes])

    def _agreement(self, answer: str, turns: Sequence[ArchiveTurn]) -> float:
        if not turns:
            return math.nan
        own = own_words(answer, self._question)
        if not own:
            return 0.0
        return len(own & content(turn.text for turn in turns)) / len(own)


def own_words(answer: str, question: str) -> frozenset[str]:
    """Content stems an answer adds to its question, without those that only speak of answering.

    Empty for an answer that claims nothing: "I am not sure", "...", the question again.
    """
    return content([answer]) - content([question]) - _ABOUT_ANSWERING


def normalised(answer: str) -> str:
    """One form for answers that differ only in case, punctuation, articles and spacing."""
    folded = unicodedata.normalize("NFKC", answer).casefold()
    words = re.findall(r"\w+", folded)
    return " ".join(word for word in words if word not in _ARTICLES)
