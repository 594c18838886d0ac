"""The panel with verified clearing and reduction on the same laboratory."""

from collections.abc import Sequence

from assay.guards.among import Among
from assay.guards.coalitions import coalition_of
from assay.guards.panel import Panel
from assay.guards.panel_variants import FullPanel
from assay.guards.protocols import Ask

from .support_panel import EchoLaboratory, archive, case, record, texts_of

CAR = "Evan drives a Prius car."
AGAIN = "The car Evan drives to work is a Prius."
SAID = archive("My new Prius car is great to drive.", "I drive the Prius car to work.")
ASKED = case("What car does Evan drive?", [record(CAR), record(AGAIN)], SAID)


def misled(shown: Sequence[str]) -> str:
    """Right only without the second record, whose text says nothing wrong."""
    if any("work" in text for text in shown):
        return "a bicycle"
    return "a Prius" if shown else "no idea"


async def test_what_only_behaviour_shows_is_cleared_and_verified() -> None:
    plain = await Panel().review(ASKED, EchoLaboratory(texts_of(ASKED), answer=misled))
    assert [j.admitted for j in plain.judgements] == [True, True]

    cleared = await Panel(clear=True).review(ASKED, EchoLaboratory(texts_of(ASKED), answer=misled))

    assert {j.record_id: j.admitted for j in cleared.judgements} == {CAR: True, AGAIN: False}
    assert cleared.certificate.endswith("cleared: recovered")
    assert cleared.trace is not None
    assert any(tested.verified for tested in cleared.trace.tested)


async def test_where_the_answer_agrees_nothing_more_is_asked() -> None:
    laboratory = EchoLaboratory(texts_of(ASKED), answer=lambda _: "a Prius")
    await Panel().review(ASKED, laboratory)
    spent = len(laboratory.asked)

    decision = await Panel(clear=True).review(ASKED, laboratory)

    assert len(laboratory.asked) == spent
    assert decision.certificate.endswith("cleared: clean")


async def test_a_spent_budget_leaves_what_was_decided() -> None:
    laboratory = EchoLaboratory(texts_of(ASKED), answer=misled, limit=0)

    decision = await Panel(clear=True).review(ASKED, laboratory)

    assert [j.admitted for j in decision.judgements] == [True, True]
    assert decision.certificate.endswith("stopped by the budget")


async def test_all_three_share_one_laboratory() -> None:
    laboratory = EchoLaboratory(texts_of(ASKED), answer=misled)

    decision = await FullPanel().review(ASKED, laboratory)

    assert "cleared: recovered" in decision.certificate
    assert decision.spent.evaluations >= len(laboratory.asked) > 0


async def test_a_part_of_the_candidates_is_asked_about_by_their_own_places() -> None:
    laboratory = EchoLaboratory(["a", "b", "c"])

    [outcome] = await Among(laboratory, [0, 2]).outcomes([Ask(coalition_of([1]))])

    assert outcome.text == "c"
