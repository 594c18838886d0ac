"""Later words of one user replace earlier ones where both compete for one answer."""

from collections.abc import Sequence

from assay.guards.panel import Panel
from assay.guards.protocols import Decision
from assay.stores.records import MemoryRecord

from .support_panel import USER, WEB, EchoLaboratory, archive, case, record

ASKED = "Where do I live?"
OLD = record("I live in Bergen.", origin=USER)
NEW = record("Moved to Oslo last week.", origin=USER, hours=100)
RETOLD = record("A file states: I live in Bergen.", origin=WEB)


def last(texts: Sequence[str]) -> str:
    return max(texts, key=lambda text: "Oslo" in text, default="I do not know")


async def decided(
    *records: MemoryRecord, question: str = ASKED, limit: int = 1000, one: bool = True
) -> Decision:
    asked = case(question, records, archive())
    texts = [r.text for r in records]
    laboratory = EchoLaboratory(texts, limit=limit, answer=last if one else " ".join)
    return await Panel().review(asked, laboratory)


def admitted(decision: Decision) -> set[str]:
    return {str(j.record_id) for j in decision.admitted}


async def test_what_a_user_changed_is_withheld_as_stale() -> None:
    decision = await decided(OLD, NEW)

    assert admitted(decision) == {NEW.id}
    assert decision.judgements[0].reason == "The same user has said something newer about this."


async def test_whoever_repeats_what_is_stale_is_stale() -> None:
    assert admitted(await decided(OLD, NEW, RETOLD)) == {NEW.id}


async def test_later_words_that_an_outsider_repeats_bring_it_along() -> None:
    retold = record("A file states: moved to Oslo last week.", origin=WEB)

    assert admitted(await decided(OLD, NEW, retold)) == {NEW.id, retold.id}


async def test_two_statements_that_are_both_told_do_not_compete() -> None:
    assert OLD.id in admitted(await decided(OLD, NEW, one=False))


async def test_an_addition_replaces_nothing() -> None:
    added = record("Now in Oslo too.", origin=USER, hours=100)

    assert OLD.id in admitted(await decided(OLD, added))


async def test_without_words_of_change_nothing_is_asked() -> None:
    plain = record("Oslo pleases me.", origin=USER, hours=100)

    assert OLD.id in admitted(await decided(OLD, plain))


async def test_an_outsider_changes_nothing() -> None:
    planted = record("Moved to Oslo last week.", origin=WEB, hours=100)

    assert admitted(await decided(OLD, planted)) == {OLD.id}


async def test_without_budget_nothing_changes() -> None:
    assert OLD.id in admitted(await decided(OLD, NEW, limit=0))
