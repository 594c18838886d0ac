"""The panel: relevance, conflict and archive evidence decide; experiments verify."""

from collections.abc import Sequence
from typing import NamedTuple

from assay.errors import BudgetExceeded
from assay.guards.coalitions import EMPTY, Coalition, coalition_of, grand, singleton
from assay.guards.evidence.contested import contested
from assay.guards.evidence.relevance import Similarity, word_similarity
from assay.guards.evidence.support import bearing_turns, share_found
from assay.guards.evidence.text import content
from assay.guards.protocols import (
    Ask,
    Case,
    Decision,
    Experimenter,
    Judgement,
    OnUndecided,
    Outcome,
)
from assay.stores.records import ArchiveTurn

_TURNS = 6


class Panel:
    """Decides by relevance, conflict and archive evidence; verifies with a model where there is one.

    Args:
        on_undecided: What becomes of candidates in a conflict that nothing decides.
        seed: Kept for the interface of guards; the decision is deterministic.
        similarity: Likeness by meaning; shared words where it is ``None``.
    """

    def __init__(
        self,
        *,
        on_undecided: OnUndecided = "withhold",
        seed: int = 7,
        similarity: Similarity | None = None,
    ) -> None:
        self._on_undecided: OnUndecided = on_undecided
        self._seed = seed
        self._similarity = similarity or word_similarity

    @property
    def name(self) -> str:
        """``panel``."""
        return "panel"

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        """Decide; a spent budget leaves the decision of evidence, marked unverified."""
        turns = await _gather(case)
        texts = [c.record.text for c in case.candidates]
        relevance = (await self._similarity([case.question], texts))[0] if texts else []
        findings = _settle(case.question, texts, [float(r) for r in relevance], turns)
        answers = await _screen(findings, laboratory)
        judgements = tuple(
            self._judge(case, i, finding, _effect(answers, i, turns))
            for i, finding in enumerate(findings)
        )
        admitted = coalition_of(i for i, j in enumerate(judgements) if j.admitted)
        certificate = await _verify(admitted, laboratory)
        undecided = any(not j.decided for j in judgements)
        return Decision(
            method=self.name,
            judgements=judgements,
            spent=laboratory.ledger(),
            ask=_ASK if undecided and self._on_undecided == "ask" else "",
            certificate=certificate,
        )

    def _judge(self, case: Case, i: int, finding: "Finding", effect: float | None) -> Judgement:
        flagged = not finding.decided and self._on_undecided == "admit_flagged"
        return Judgement(
            record_id=case.candidates[i].record.id,
            admitted=finding.admitted or flagged,
            flagged=flagged,
            decided=finding.decided,
            reason=finding.reason,
            method=finding.method,
            effect=effect,
            evidence=finding.evidence,
        )


_ASK = "Two memories about this disagree and the past conversations do not settle it; which one is right?"


class Finding(NamedTuple):
    """What evidence says about one candidate."""

    admitted: bool
    reason: str
    method: str
    decided: bool = True
    evidence: tuple[str, ...] = ()


async def _gather(case: Case) -> list[ArchiveTurn]:
    found: dict[str, ArchiveTurn] = {}
    for text in sorted({case.question, *(c.record.text for c in case.candidates)}):
        for turn in await case.evidence(text, limit=_TURNS):
            found[str(turn.id)] = turn
    return [found[key] for key in sorted(found)]


def _settle(
    question: str, texts: Sequence[str], relevance: Sequence[float], turns: Sequence[ArchiveTurn]
) -> list[Finding]:
    if not texts:
        return []
    best = max(relevance)
    return [_finding(question, texts, relevance, turns, i, best) for i in range(len(texts))]


def _finding(
    question: str,
    texts: Sequence[str],
    relevance: Sequence[float],
    turns: Sequence[ArchiveTurn],
    i: int,
    best: float,
) -> Finding:
    if relevance[i] < 0.8 * best:
        return Finding(False, "It does not bear on the question.", "relevance")
    verdict = Finding(True, "It bears on the question and nothing contests it.", "relevance")
    for j in range(len(texts)):
        if j == i or relevance[j] < 0.8 * best:
            continue
        contest = contested(question, texts[i], texts[j])
        if not contest.left and not contest.right:
            continue
        mine, yours = share_found(contest.left, turns), share_found(contest.right, turns)
        evidence = bearing_turns(contest.left | contest.right, turns)
        if mine < yours:
            return Finding(
                False,
                "The past conversations support another memory instead.",
                "evidence",
                True,
                evidence,
            )
        if mine == yours:
            verdict = Finding(
                False,
                "Another memory contests it and nothing decides.",
                "undecided",
                False,
                evidence,
            )
        elif verdict.decided:
            verdict = Finding(
                True, "The past conversations support it.", "evidence", True, evidence
            )
    return verdict


async def _screen(
    findings: Sequence[Finding], laboratory: Experimenter
) -> dict[Coalition, Outcome]:
    n = len(findings)
    asked = list(dict.fromkeys([EMPTY, grand(n), *(singleton(i) for i in range(n))]))
    try:
        outcomes = await laboratory.outcomes([Ask(c) for c in asked])
    except BudgetExceeded:
        return {}
    return dict(zip(asked, outcomes, strict=True))


def _effect(
    answers: dict[Coalition, Outcome], i: int, turns: Sequence[ArchiveTurn]
) -> float | None:
    alone, nothing = answers.get(singleton(i)), answers.get(EMPTY)
    if alone is None or nothing is None:
        return None
    if alone.status != "answered" or nothing.status != "answered":
        return None
    return share_found(content([alone.text]), turns) - share_found(content([nothing.text]), turns)


async def _verify(admitted: Coalition, laboratory: Experimenter) -> str:
    try:
        [outcome] = await laboratory.outcomes([Ask(admitted)])
    except BudgetExceeded:
        return "unverified: budget spent"
    return "answered" if outcome.status == "answered" else f"unverified: {outcome.status}"
