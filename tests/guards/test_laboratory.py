"""What the laboratory asks, shares, keeps and counts."""

from assay.guards.coalitions import Coalition
from assay.guards.protocols import Ask

from .support import DictCache, TableModel, laboratory


async def test_identical_asks_of_a_batch_are_paid_for_once() -> None:
    model = TableModel()
    lab = laboratory(model)

    outcomes = await lab.outcomes([Ask(Coalition(1)), Ask(Coalition(2)), Ask(Coalition(1))])

    assert [o.text for o in outcomes] == ["re plain:0", "re plain:1", "re plain:0"]
    assert model.calls == 2
    assert lab.ledger().evaluations == 2


async def test_another_laboratory_takes_answers_from_the_cache() -> None:
    cache = DictCache()
    model = TableModel()
    first = await laboratory(model, cache=cache).outcome(Ask(Coalition(3)))

    lab = laboratory(model, cache=cache)
    second = await lab.outcome(Ask(Coalition(3)))

    assert second == first
    assert model.calls == 1
    assert (lab.ledger().cache_hits, lab.ledger().live, lab.ledger().rounds) == (1, 0, 1)
