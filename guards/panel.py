"""The panel: relevance, conflict, archive evidence and origin decide; experiments verify."""

from collections.abc import Sequence
from typing import Final

from assay.guards.coalitions import EMPTY, coalition_of, contains
from assay.guards.evidence.brief import Brief, gather
from assay.guards.evidence.changes import hear_changes
from assay.guards.evidence.relevance import EmbeddedMeasure, Measure, WordMeasure
from assay.guards.evidence.settle import Finding, Provenance, settle
from assay.guards.evidence.text import content
from assay.guards.evidence.trust import (
    Trust,
    newer_words,
    preface,
    restated_by,
    trust_of,
)
from assay.guards.evidence.tuning import BY_WORDS, CALIBRATED, EMBEDDED, Tuning
from assay.guards.meclear import MeClear
from assay.guards.protocols import Case, Decision, Experimenter, Judgement, OnUndecided
from assay.guards.recovering import to_recovered
from assay.guards.reducing import to_core
from assay.guards.undecided import QUESTION, undecided
from assay.guards.verifying import Checked, Doubts, check
from assay.stores.protocols import Embedder
from assay.stores.records import MemoryRecord

_CARRIER: Final = Finding(
    "refuted", "clearance", "With it, the answer took a value that is withheld; without it, not."
)


class Panel:
    """Decides without labels and without expected answers.

    Which candidates bear on the question is read from their likeness to it; which of them contest
    each other, from their likeness to one another; who is right, from the archived turns; what an
    outside record is worth, from its origin. Experiments then measure effects and check that no
    withheld value is left in the answer.

    The decision does not depend on the order or the ids of the candidates.

    Args:
        on_undecided: What becomes of candidates that nothing decided.
        seed: Part of every guard's interface; nothing is drawn here.
        embedder: Measures likeness by meaning; by shared words where it is ``None``, or another than
            the thresholds are calibrated for and no ``tuning`` is given.
        trust: Whether origins count. Off, texts and archive decide alone.
        tuning: Thresholds; by default those that fit the measure.
        clear: Whether what is admitted is cleared further by coalition values where its answer does
            not agree with the archive.
        reduce: Whether what is admitted is reduced to a core with the same answer, last of all.
    """

    def __init__(  # noqa: PLR0913  # one name per lever
        self,
        *,
        on_undecided: OnUndecided = "withhold",
        seed: int = 7,
        embedder: Embedder | None = None,
        trust: bool = True,
        tuning: Tuning | None = None,
        clear: bool = False,
        reduce: bool = False,
    ) -> None:
        self._on_undecided: OnUndecided = on_undecided
        self._seed = seed
        # Cosines of another embedder spread differently: without thresholds for it, words decide.
        is_calibrated = embedder is not None and embedder.name.startswith(CALIBRATED)
        by_meaning = embedder is not None and (is_calibrated or tuning is not None)
        self._measure: Measure = (
            EmbeddedMeasure(embedder) if embedder is not None and by_meaning else WordMeasure()
        )
        self._tuning = tuning or (EMBEDDED if by_meaning else BY_WORDS)
        self._trust = trust
        self._clearing = MeClear(on_undecided=on_undecided, seed=seed) if clear else None
        self._reduce = reduce

    @property
    def name(self) -> str:
        """``panel``."""
        return "panel"

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        """Decide; a spent budget leaves the decision of evidence, and the certificate says so."""
        if not case.candidates:
            return Decision(method=self.name, judgements=(), spent=laboratory.ledger())
        records = [candidate.record for candidate in case.candidates]
        texts = [record.text for record in records]
        brief = await gather(
            case.question, texts, case.evidence, self._measure, limit=self._tuning.turns
        )
        provenance = _provenance(records) if self._trust else None
        findings = settle(brief, self._tuning, provenance)
        if provenance is not None:
            findings = await hear_changes(brief, findings, provenance, laboratory)
        checked = await self._check(brief, findings, provenance, laboratory)
        judgements = tuple(
            self._judge(records[i], finding, checked, i) for i, finding in enumerate(findings)
        )
        is_asking = self._on_undecided == "ask" and any(not j.decided for j in judgements)
        decision = Decision(
            method=self.name,
            judgements=judgements,
            spent=laboratory.ledger(),
            ask=QUESTION if is_asking else "",
            certificate=checked.certificate,
        )
        if self._clearing is not None:
            decision = await to_recovered(decision, case, laboratory, self._clearing)
        return await to_core(decision, case, laboratory) if self._reduce else decision

    async def _check(
        self,
        brief: Brief,
        findings: Sequence[Finding],
        provenance: Provenance | None,
        laboratory: Experimenter,
    ) -> Checked:
        admitted = [i for i, finding in enumerate(findings) if self._enters(finding)]
        relevance = brief.likeness.relevance
        contenders = sorted(
            (i for i, finding in enumerate(findings) if finding.standing != "aside"),
            key=lambda i: (-float(relevance[i]), brief.texts[i]),
        )
        return await check(
            brief,
            laboratory,
            coalition_of(admitted),
            contenders=contenders,
            doubts=_doubts(brief, findings, admitted, provenance),
        )

    def _enters(self, finding: Finding) -> bool:
        flagged = finding.standing == "undecided" and self._on_undecided == "admit_flagged"
        return flagged or finding.standing == "stands"

    def _judge(self, record: MemoryRecord, finding: Finding, checked: Checked, i: int) -> Judgement:
        if self._enters(finding) and not contains(checked.admitted, i):
            finding = _CARRIER
        if finding.standing == "undecided":
            return undecided(
                record.id,
                self._on_undecided,
                reason=finding.reason,
                method=finding.method,
                effect=checked.effects[i],
                evidence=finding.turns,
            )
        return Judgement(
            record_id=record.id,
            admitted=finding.standing == "stands",
            reason=finding.reason,
            method=finding.method,
            effect=checked.effects[i],
            evidence=finding.turns,
        )


def _doubts(
    brief: Brief,
    findings: Sequence[Finding],
    admitted: Sequence[int],
    provenance: Provenance | None,
) -> Doubts:
    """What to look for in the answer: what withheld records claim, and what only outsiders do.

    Whom the archive supports against another is no outsider to this question.
    """
    against = [i for i, f in enumerate(findings) if f.standing not in {"stands", "aside"}]
    claimed = content(brief.texts[i] for i in against)
    if provenance is None:
        return Doubts(outsiders=EMPTY, strangers=EMPTY, withheld_values=claimed, sources=())
    outsiders = [
        i
        for i in admitted
        if provenance.trust[i] < Trust.INSIDE and findings[i].method != "evidence"
    ]
    strangers = [i for i in outsiders if provenance.trust[i] == Trust.OUTSIDE]
    prefaces = (preface(brief.texts[i]) for i in outsiders if provenance.restates[i])
    return Doubts(
        outsiders=coalition_of(outsiders),
        strangers=coalition_of(strangers),
        withheld_values=claimed,
        sources=tuple(sorted(filter(None, prefaces))),
    )


def _provenance(records: Sequence[MemoryRecord]) -> Provenance:
    return Provenance(
        trust=tuple(trust_of(record) for record in records),
        restates=restated_by(records),
        newer=newer_words(records),
    )
