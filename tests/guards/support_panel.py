"""Cases for the panel, and a laboratory with a reader that repeats what it is shown."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import anyio.lowlevel
import numpy as np

from assay.errors import BudgetExceeded
from assay.guards.coalitions import members
from assay.guards.evidence.brief import Brief, gather
from assay.guards.evidence.relevance import Likenesses, WordMeasure
from assay.guards.protocols import Ask, Case, EvidenceSource, Ledger, Outcome
from assay.stores.records import (
    ArchiveTurn,
    Candidate,
    MemoryRecord,
    Namespace,
    Origin,
    RecordId,
    SessionId,
    TurnId,
)

ANN = Namespace("ann")
NOON = datetime(2023, 5, 25, 12, tzinfo=UTC)
USER = Origin(writer="user", channel="chat")
IMPORT = Origin(writer="user", channel="import:notes")
WEB = Origin(writer="external", channel="web")


class EchoLaboratory:
    """Answers with the texts it is shown, until ``limit`` distinct asks are spent."""

    def __init__(
        self,
        texts: Sequence[str] = (),
        *,
        limit: int = 1000,
        answer: Callable[[Sequence[str]], str] = " ".join,
        status: str = "answered",
    ) -> None:
        self.texts = texts
        self.limit = limit
        self.answer = answer
        self.status = status
        self.asked: set[Ask] = set()

    async def outcomes(self, asks: Sequence[Ask]) -> list[Outcome]:
        await anyio.lowlevel.checkpoint()
        fresh = set(asks) - self.asked
        left = self.limit - len(self.asked)
        if len(fresh) > left:
            raise BudgetExceeded("evaluations", needed=len(fresh), left=left)
        self.asked |= fresh
        return [self.outcome(ask) for ask in asks]

    def outcome(self, ask: Ask) -> Outcome:
        if self.status != "answered":
            return Outcome(status="unavailable", detail="down")
        shown = [self.texts[i] for i in members(ask.coalition) if i < len(self.texts)]
        return Outcome(status="answered", text=self.answer(shown))

    def ledger(self) -> Ledger:
        return Ledger(evaluations=len(self.asked))


def record(
    text: str,
    *,
    name: str = "",
    origin: Origin = IMPORT,
    hours: float = 0,
    claims: float | None = None,
) -> MemoryRecord:
    """A record; ``hours`` and ``claims`` after noon."""
    return MemoryRecord(
        id=RecordId(name or text),
        namespace=ANN,
        text=text,
        origin=origin,
        ingested_at=NOON + timedelta(hours=hours),
        claimed_at=None if claims is None else NOON + timedelta(hours=claims),
    )


def turn(text: str, *, speaker: str = "Ann", position: int = 0, at: datetime = NOON) -> ArchiveTurn:
    return ArchiveTurn(
        id=TurnId(f"t{position}"),
        namespace=ANN,
        session=SessionId("s1"),
        position=position,
        speaker=speaker,
        text=text,
        at=at,
    )


def archive(*said: str | ArchiveTurn) -> EvidenceSource:
    """Every turn, in the order given, for every text."""
    turns = [turn(s, position=i) if isinstance(s, str) else s for i, s in enumerate(said)]

    async def search(texts: Sequence[str], *, limit: int) -> list[list[ArchiveTurn]]:
        await anyio.lowlevel.checkpoint()
        return [turns[:limit] for _ in texts]

    return search


def case(question: str, records: Sequence[MemoryRecord], evidence: EvidenceSource) -> Case:
    candidates = tuple(Candidate(record=r, score=0.5) for r in records)
    return Case(question=question, candidates=candidates, evidence=evidence)


def texts_of(asked: Case) -> list[str]:
    return [candidate.record.text for candidate in asked.candidates]


class GivenMeasure:
    """Relevance as given per text; records are alike as given; every turn bears alike."""

    def __init__(self, relevance: Mapping[str, float], between: float = 0.95) -> None:
        self.relevance = relevance
        self.between = between

    async def __call__(
        self, question: str, records: Sequence[str], turns: Sequence[str]
    ) -> Likenesses:
        await anyio.lowlevel.checkpoint()
        n = len(records)
        between = np.full((n, n), self.between)
        return Likenesses(
            np.array([self.relevance[text] for text in records]),
            between,
            np.full((1 + n, len(turns)), 0.8),
        )


async def brief(question: str, texts: Sequence[str], *said: str | ArchiveTurn) -> Brief:
    """A brief measured by words."""
    return await gather(question, texts, archive(*said), WordMeasure(), limit=8)
