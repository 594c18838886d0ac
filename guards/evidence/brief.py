"""Everything evidence is weighed from, gathered once: question, records, turns, their likeness."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from itertools import chain

import numpy as np

from assay.guards.evidence.dates import mentions, undated
from assay.guards.evidence.denial import Polarity, polarity
from assay.guards.evidence.relevance import Likeness, Likenesses, Measure
from assay.guards.evidence.spans import Span
from assay.guards.evidence.text import stem, stems, words
from assay.guards.protocols import EvidenceSource
from assay.stores.records import ArchiveTurn


@dataclass(frozen=True, kw_only=True)
class Brief:
    """What is known about one case before anything is decided; candidate ``i`` is ``texts[i]``.

    Attributes:
        question: What was asked.
        texts: The candidates' texts.
        turns: Archived turns found for the question or any text, each once, ordered by id.
        found: For the question, then each text: indices into ``turns``, best first.
        likeness: How alike they are.
    """

    question: str
    texts: tuple[str, ...]
    turns: tuple[ArchiveTurn, ...]
    found: tuple[tuple[int, ...], ...]
    likeness: Likenesses
    _times: dict[tuple[str, date], tuple[Span, ...]] = field(
        default_factory=dict[tuple[str, date], tuple[Span, ...]], repr=False
    )

    @cached_property
    def speakers(self) -> frozenset[str]:
        """Stems of the names of whoever speaks in the turns; being named is no evidence."""
        return frozenset(stem(w) for turn in self.turns for w in words(turn.speaker))

    @cached_property
    def asked(self) -> frozenset[str]:
        """Content stems of the question; repeating them is no claim."""
        return frozenset(stems(self.question))

    @cached_property
    def claims(self) -> tuple[Polarity, ...]:
        """What each text affirms and denies, its times apart."""
        return tuple(polarity(undated(text)) for text in self.texts)

    @cached_property
    def said(self) -> tuple[Polarity, ...]:
        """What each turn affirms and denies."""
        return tuple(polarity(turn.text) for turn in self.turns)

    def times(self, text: str, day: date) -> tuple[Span, ...]:
        """Every reading of every time ``text`` speaks of, relative ones as said on ``day``."""
        key = (text, day)
        if key not in self._times:
            found = mentions(text, day)
            self._times[key] = tuple(span for mention in found for span in mention.readings)
        return self._times[key]

    def pool(self, *candidates: int) -> list[int]:
        """Turns found for the question or for any of these candidates, ascending."""
        lists = (self.found[0], *(self.found[1 + i] for i in candidates))
        return sorted(set(chain.from_iterable(lists)))

    def weights(self, pool: Sequence[int], *candidates: int) -> Likeness:
        """How close each turn of a pool is to the matter, in (0, 1], 1 for the closest.

        Half by the question, half by the candidates; falls off within half the lead that the
        closest turn has over the mean, so that the scale of the likeness does not matter.
        """
        bearing = self.likeness.bearing[:, pool]
        if not pool:
            return np.zeros(0)
        rows = [1 + i for i in candidates]
        scores = (bearing[0] + bearing[rows].mean(axis=0)) / 2
        behind: Likeness = scores.max() - scores
        lead = float(behind.mean())
        if lead <= 0:
            return np.ones_like(scores)
        return np.asarray(np.exp(-2 * behind / lead), float)


async def gather(
    question: str,
    texts: Sequence[str],
    evidence: EvidenceSource,
    measure: Measure,
    *,
    limit: int,
) -> Brief:
    """Look everything up: one search for all texts and one measurement.

    Args:
        question: What was asked.
        texts: The candidates' texts.
        evidence: The archive.
        measure: Likeness of texts.
        limit: Turns to look at per search.
    """
    asked = list(dict.fromkeys([question, *texts]))
    hits = dict(zip(asked, await evidence(asked, limit=limit), strict=True))
    by_id = {str(turn.id): turn for turns in hits.values() for turn in turns}
    turns = tuple(by_id[turn_id] for turn_id in sorted(by_id))
    place = {str(turn.id): i for i, turn in enumerate(turns)}
    spoken = [f"{turn.speaker}: {turn.text}" for turn in turns]
    return Brief(
        question=question,
        texts=tuple(texts),
        turns=turns,
        found=tuple(tuple(place[str(t.id)] for t in hits[text]) for text in (question, *texts)),
        likeness=await measure(question, texts, spoken),
    )
