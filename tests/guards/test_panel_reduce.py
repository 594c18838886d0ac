"""The panel's option to keep only what the answer needs."""

from collections.abc import Sequence

from assay.guards.panel import Panel
from assay.guards.reduction.context import text_tokens

from .support_panel import EchoLaboratory, archive, case, record, texts_of

CAR = "Evan drives a Prius car."
AGAIN = "The car Evan drives to work is a Prius."
SAID = archive("My new Prius car is great to drive.", "I drive the Prius car to work.")
ASKED = case("What car does Evan drive?", [record(CAR), record(AGAIN)], SAID)


def names_the_car(shown: Sequence[str]) -> str:
    return "Prius" if any("Prius" in text for text in shown) else "no idea"


async def test_without_the_option_all_that_stands_is_admitted() -> None:
    laboratory = EchoLaboratory(texts_of(ASKED), answer=names_the_car)

    decision = await Panel().review(ASKED, laboratory)

    assert [j.admitted for j in decision.judgements] == [True, True]
    assert decision.tokens_saved == 0


async def test_with_it_one_of_two_that_say_the_same_is_left_out() -> None:
    laboratory = EchoLaboratory(texts_of(ASKED), answer=names_the_car)

    decision = await Panel(reduce=True).review(ASKED, laboratory)

    kept, spare = sorted(decision.judgements, key=lambda j: not j.admitted)
    assert (kept.admitted, spare.admitted, spare.method) == (True, False, "reduction")
    assert decision.tokens_saved == text_tokens(str(spare.record_id))
    assert decision.certificate.startswith("recovered: no withheld value in the answer; reduced: ")
