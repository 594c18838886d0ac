"""The panel's decision on small cases, with a fake laboratory."""

from collections.abc import Sequence
from datetime import UTC, datetime

from assay.errors import BudgetExceeded
from assay.guards.panel import Panel
from assay.guards.protocols import Ask, Case, Ledger, Outcome
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

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class FakeLaboratory:
    """Answers everything with the same text until ``limit`` distinct asks are spent."""

    def __init__(self, limit: int = 100) -> None:
        self.limit = limit
        self.asked: set[Ask] = set()

    async def outcomes(self, asks: Sequence[Ask]) -> list[Outcome]:
        fresh = set(asks) - self.asked
        if len(self.asked) + len(fresh) > self.limit:
            raise BudgetExceeded(
                "evaluations", needed=len(fresh), left=self.limit - len(self.asked)
            )
        self.asked |= fresh
        return [Outcome(status="answered", text="an answer") for _ in asks]

    def ledger(self) -> Ledger:
        return Ledger(evaluations=len(self.asked))


def candidate(name: str, text: str) -> Candidate:
    record = MemoryRecord(
        id=RecordId(name),
        namespace=Namespace("u1"),
        text=text,
        origin=Origin(writer="user", channel="chat"),
        ingested_at=NOW,
    )
    return Candidate(record=record, score=0.5)


def case(question: str, memories: dict[str, str], said: Sequence[str]) -> Case:
    turns = [
        ArchiveTurn(
            id=TurnId(f"t{i}"),
            namespace=Namespace("u1"),
            session=SessionId("s1"),
            position=i,
            speaker="user",
            text=text,
            at=NOW,
        )
        for i, text in enumerate(said)
    ]

    async def evidence(text: str, *, limit: int) -> list[ArchiveTurn]:
        return turns[:limit]

    candidates = tuple(candidate(name, text) for name, text in memories.items())
    return Case(question=question, candidates=candidates, evidence=evidence)


CONFLICT = {
    "a": "Evan drives a Prius car.",
    "b": "Evan drives a Tesla car.",
    "c": "Sam likes to bake bread.",
}


async def test_the_archive_decides_which_of_two_conflicting_memories_enters() -> None:
    asked = case("What car does Evan drive?", CONFLICT, ["My new Prius is great to drive."])

    decision = await Panel().review(asked, FakeLaboratory())

    assert [j.record_id for j in decision.admitted] == ["a"]
    assert decision.judgements[1].evidence == ("t0",)


async def test_nothing_to_decide_by_withholds_both_sides() -> None:
    asked = case("What car does Evan drive?", CONFLICT, ["Nice weather today."])

    decision = await Panel().review(asked, FakeLaboratory())

    assert not decision.admitted
    assert [j.decided for j in decision.judgements] == [False, False, True]


async def test_a_spent_budget_leaves_the_decision_of_evidence() -> None:
    asked = case("What car does Evan drive?", CONFLICT, ["My new Prius is great to drive."])

    decision = await Panel().review(asked, FakeLaboratory(limit=0))

    assert [j.record_id for j in decision.admitted] == ["a"]
    assert decision.certificate == "unverified: the budget was spent"
