"""From evidence to one finding per candidate. Pure: no laboratory, no policy, no order."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, permutations
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from assay.guards.evidence.brief import Brief
from assay.guards.evidence.contest import Contest, contest
from assay.guards.evidence.grounding import Grounding, grounding
from assay.guards.evidence.subject import about_others
from assay.guards.evidence.trust import Trust
from assay.guards.evidence.tuning import Tuning
from assay.guards.evidence.updates import RETELLERS, Ruling, denial, denied, replaces, update

Standing: TypeAlias = Literal["stands", "aside", "refuted", "superseded", "outside", "undecided"]


class Finding(NamedTuple):
    """What evidence says about one candidate.

    Attributes:
        standing: ``stands`` bears on the question and nothing speaks against it; ``aside`` does not
            bear on it; ``refuted``, ``superseded``, ``outside`` speak against it; ``undecided``.
        method: Which mechanism decided.
        reason: A sentence, without the record's text.
        turns: Ids of the archived turns that bore on it.
    """

    standing: Standing
    method: str
    reason: str
    turns: tuple[str, ...] = ()


class Provenance(NamedTuple):
    """What origins add to evidence; ``None`` for the whole where origins are not looked at.

    Attributes:
        trust: Of each candidate.
        restates: For each candidate, the better trusted ones that say what it says.
        newer: Pairs ``(i, j)``: ``i`` is a later word of the same user on what ``j`` may be about.
    """

    trust: tuple[Trust, ...]
    restates: tuple[frozenset[int], ...]
    newer: frozenset[tuple[int, int]]


Weigh: TypeAlias = Callable[[Brief, int, int], Contest]
Ground: TypeAlias = Callable[[Brief, int], Grounding]


def settle(
    brief: Brief,
    tuning: Tuning,
    provenance: Provenance | None = None,
    *,
    weigh: Weigh = contest,
    ground: Ground = grounding,
) -> list[Finding]:
    """One finding per candidate, in order; a permutation of the candidates permutes the findings.

    Args:
        brief: The case.
        tuning: Thresholds.
        provenance: What origins add; ``None`` where they do not count.
        weigh: Weighs two candidates; a calibration passes one that remembers.
        ground: Grounds one candidate; the same.
    """
    n = len(brief.texts)
    if n == 0:
        return []
    court = _Court(brief, tuning, provenance or _no_provenance(n), weigh, ground)
    court.hear_contests()
    court.hear_outsiders()
    court.hear_ungrounded()
    return court.findings()


def _no_provenance(n: int) -> Provenance:
    nothing: frozenset[int] = frozenset()
    return Provenance((Trust.INSIDE,) * n, (nothing,) * n, frozenset())


class _Court:
    """Findings against candidates, collected; whoever has none at the end stands or is aside."""

    def __init__(
        self, brief: Brief, tuning: Tuning, provenance: Provenance, weigh: Weigh, ground: Ground
    ) -> None:
        self._weigh = weigh
        self._ground = ground
        self._brief = brief
        self._tuning = tuning
        self._provenance = provenance
        self._relevance = brief.likeness.relevance
        self._against: dict[int, Finding] = {}
        self._for: dict[int, tuple[str, ...]] = {}
        highest = max(provenance.trust)
        self._top = max(
            float(r)
            for r, trust in zip(self._relevance, provenance.trust, strict=True)
            if trust == highest
        )

    def hear_contests(self) -> None:
        """Whoever the turns speak against is refuted; where they are silent, both are undecided."""
        undecided: dict[int, Finding] = {}
        contested: set[frozenset[int]] = set()
        for i, j in self._contestants():
            heard = self._weigh(self._brief, i, j)
            if not heard.is_contested:
                continue
            contested.add(frozenset((i, j)))
            if not self._is_heard(i, j, heard):
                undecided[i] = undecided[j] = _undecided_contest(heard.turns)
        for i, j in permutations(self._heard(), 2):
            # A record and its denial need not be alike, and differ in no value.
            if frozenset((i, j)) not in contested and not self._is_denial_heard(i, j):
                undecided[i] = undecided[j] = _undecided_contest(())
        for i, finding in undecided.items():
            self._against.setdefault(i, finding)

    def _is_denial_heard(self, i: int, j: int) -> bool:
        """Whether something decides between ``i`` and what it denies of ``j``, if anything."""
        disputed = denial(self._brief, i, j)
        if disputed is None:
            return True
        said = denied(self._brief, i, j, disputed)
        if said is not None:
            self._rule(said)
            return True
        return self._hear_update(i, j) or self._hear_trust(i, j)

    def _rule(self, said: Ruling) -> None:
        self._against[said.loser] = (
            Finding("superseded", "evidence", _CHANGED, said.turns)
            if said.was_said
            else Finding("refuted", "evidence", _REFUTED, said.turns)
        )
        self._for[said.winner] = said.turns

    def _is_heard(self, i: int, j: int, heard: Contest) -> bool:
        """Whether something decides a contest: the user's own order, evidence, then origins."""
        if self._is_made_up(i, j, heard) or self._hear_update(i, j):
            return True
        said = update(self._brief, i, j)
        if said is not None and (said.is_change or not self._coexist(heard)):
            self._rule(said)
            return True
        score = self._score(heard, i, j, len(self._brief.pool(i, j)))
        if self._coexist(heard):
            return True
        if abs(score) > self._tuning.decisive:
            winner, loser, seen = (i, j, heard) if score > 0 else (j, i, heard.reversed())
            if seen.right <= self._tuning.supported or abs(seen.times) > self._tuning.decisive:
                self._refute(loser, winner, seen)
            return True
        return self._hear_trust(i, j)

    def _is_made_up(self, i: int, j: int, heard: Contest) -> bool:
        """Whether one was said and of the other nothing ever was; then its date counts for nothing."""
        if len(self._brief.pool(i, j)) < self._tuning.enough:
            return False
        for winner, loser, seen in ((i, j, heard), (j, i, heard.reversed())):
            if seen.left >= self._tuning.coexist and seen.right <= 0 and seen.times >= 0:
                self._refute(loser, winner, seen)
                return True
        return False

    def hear_outsiders(self) -> None:
        """What came from outside stands only on an insider's word or on what was said."""
        trust = self._provenance.trust
        insider_stands = any(
            t > Trust.OUTSIDE and i not in self._against and self._is_within(i)
            for i, t in enumerate(trust)
        )
        for i, t in enumerate(trust):
            if t > Trust.OUTSIDE or i in self._against or self._provenance.restates[i]:
                continue
            if self._was_said(self._ground(self._brief, i)) and self._has_witnesses(i):
                continue
            self._against[i] = _OUTSIDE if insider_stands else _UNCONFIRMED

    def _was_said(self, ground: Grounding) -> bool:
        """Whether past conversations confirm a record: most of its claims, and its times if any."""
        values = ground.score - (ground.times or 0.0)
        at_that_time = ground.times is None or ground.times > self._tuning.decisive
        return bool(ground.claims) and values >= self._tuning.coexist and at_that_time

    def _has_witnesses(self, i: int) -> bool:
        """Whether people said most of it: a tool or the assistant may have it from the record itself."""
        brief = self._brief
        pool = brief.pool(i)
        told = [brief.said[t] for t in pool if brief.turns[t].speaker not in RETELLERS]
        if len(told) == len(pool):
            return True
        claims = brief.claims[i].affirmed - brief.asked - brief.speakers
        words = frozenset(word for turn in told for word in turn.affirmed)
        return len(claims & words) >= self._tuning.coexist * len(claims)

    def hear_ungrounded(self) -> None:
        """Many claims of which nothing was ever said leave a candidate undecided."""
        for i in range(len(self._brief.texts)):
            if i in self._against or not self._is_within(i):
                continue
            if len(self._brief.pool(i)) < self._tuning.enough:
                continue
            ground = self._ground(self._brief, i)
            if ground.claims >= self._tuning.claims and ground.score < self._tuning.grounded:
                self._against[i] = _undecided_ground(ground.turns)

    def findings(self) -> list[Finding]:
        """The findings, once all has been heard."""
        self._follow()
        someone_else = about_others(self._brief)
        unopposed = [i for i in range(len(self._brief.texts)) if i not in self._against]
        standing = [i for i in unopposed if i not in someone_else]
        best = max((float(self._relevance[i]) for i in standing), default=self._top)
        anchor = best if best >= self._top - self._tuning.reach else self._top
        least = anchor - self._margin(anchor, unopposed)
        admitted = {i for i in standing if self._relevance[i] >= least}
        said_again = {j for i in admitted for j in self._provenance.restates[i]}
        admitted |= said_again & set(standing)
        admitted |= {i for i in standing if self._provenance.restates[i] & admitted}
        aside = {
            i: _SOMEBODY_ELSE if i in someone_else else _ASIDE
            for i in unopposed
            if i not in admitted
        }
        against = self._against | aside
        return [against.get(i) or self._standing(i) for i in range(len(self._brief.texts))]

    def _follow(self) -> None:
        """Who restates better trusted records stands while one of them does, and falls with all."""
        for i, restated in enumerate(self._provenance.restates):
            fallen = [self._against.get(j) for j in sorted(restated)]
            if restated and all(fallen):
                self._against[i] = min(f for f in fallen if f is not None)
            elif restated:
                self._against.pop(i, None)

    def _standing(self, i: int) -> Finding:
        if i in self._for:
            reason = "The past conversations support it against another memory."
            return Finding("stands", "evidence", reason, self._for[i])
        return _RELEVANT

    def _margin(self, anchor: float, unopposed: Sequence[int]) -> float:
        own = [i for i in unopposed if not self._provenance.restates[i]]
        if len(own) < _FEW:
            return self._tuning.reach
        rest = [float(r) for r in self._relevance if r < anchor]
        lead = anchor - float(np.mean(sorted(rest))) if rest else 0.0
        return max(self._tuning.near, min(self._tuning.nearest, lead / 3))

    def _is_within(self, i: int) -> bool:
        return bool(self._relevance[i] >= self._top - self._tuning.reach)

    def _contestants(self) -> Iterator[tuple[int, int]]:
        """Pairs that contest each other; who restates another shares its fate and contests nothing."""
        for i, j in combinations(self._heard(), 2):
            if self._are_twins(i, j) and not self._is_same(i, j):
                yield i, j

    def _heard(self) -> list[int]:
        everyone = range(len(self._brief.texts))
        return [i for i in everyone if self._is_within(i) and not self._provenance.restates[i]]

    def _are_twins(self, i: int, j: int) -> bool:
        others = sorted(float(r) for k, r in enumerate(self._relevance) if k not in {i, j})
        pair = float(self._relevance[i] + self._relevance[j]) / 2
        lead = min(pair - float(np.mean(others)), 0.15) if others else 0.1
        likeness = float(self._brief.likeness.between[i, j]) + self._tuning.lead * lead
        return likeness >= self._tuning.twin

    def _is_same(self, i: int, j: int) -> bool:
        return sorted(self._brief.texts[i].split()) == sorted(self._brief.texts[j].split())

    def _score(self, heard: Contest, i: int, j: int, turns: int) -> float:
        """Evidence for ``i`` against ``j``; relevance tilts it only between equals, among turns."""
        evidence = heard.left - heard.right + self._tuning.times * heard.times
        trust = self._provenance.trust
        if turns < self._tuning.enough or trust[i] != trust[j]:
            return evidence
        return evidence + self._tuning.prior * float(self._relevance[i] - self._relevance[j])

    def _coexist(self, heard: Contest) -> bool:
        both = min(heard.left, heard.right) >= self._tuning.coexist
        return both and abs(heard.times) <= self._tuning.decisive

    def _refute(self, loser: int, winner: int, heard: Contest) -> None:
        self._against[loser] = Finding("refuted", "evidence", _REFUTED, heard.turns)
        if max(heard.left, heard.times) > 0:
            self._for[winner] = heard.turns
        else:
            # Being less wrong than another is no evidence of being right.
            self._against.setdefault(winner, _undecided_ground(heard.turns))

    def _hear_update(self, i: int, j: int) -> bool:
        """Whether one user said both: the later words replace the earlier, or stand beside them."""
        for new, old in ((i, j), (j, i)):
            if (new, old) in self._provenance.newer:
                if replaces(self._brief, new, old):
                    self._against.setdefault(old, SUPERSEDED)
                return True
        return False

    def _hear_trust(self, i: int, j: int) -> bool:
        trust = self._provenance.trust
        if trust[i] == trust[j]:
            return False
        self._against.setdefault(i if trust[i] < trust[j] else j, _LESS_TRUSTED)
        return True


_FEW = 3
"""With fewer candidates left there is no telling how relevant irrelevant ones are."""

_REFUTED = "The past conversations support another memory against it."
_CHANGED = "In the past conversations another memory was said later, in its place."
_RELEVANT = Finding(
    "stands", "relevance", "It bears on the question and nothing speaks against it."
)
_ASIDE = Finding("aside", "relevance", "It bears less on the question than another memory.")
_SOMEBODY_ELSE = Finding("aside", "relevance", "It is about somebody the question does not name.")
SUPERSEDED = Finding("superseded", "trust", "The same user has said something newer about this.")
_LESS_TRUSTED = Finding("outside", "trust", "It contradicts a memory from a better trusted origin.")
_OUTSIDE = Finding(
    "outside", "trust", "It came from outside, and nothing the user said or wrote confirms it."
)
_UNCONFIRMED = Finding(
    "undecided", "trust", "It came from outside, and there is nothing to confirm or contradict it"
)


def _undecided_contest(turns: Sequence[str]) -> Finding:
    reason = "Another memory contradicts it and the past conversations settle neither"
    return Finding("undecided", "evidence", reason, tuple(turns))


def _undecided_ground(turns: Sequence[str]) -> Finding:
    return Finding(
        "undecided", "evidence", "Nothing in the past conversations says so", tuple(turns)
    )
