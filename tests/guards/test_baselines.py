"""Baselines admit what their name says and spend nothing."""

import msgspec
import pytest

from assay.errors import ConfigError
from assay.guards.baselines import Vector
from assay.guards.methods import CMI_VARIANTS, METHODS, guard_named
from assay.guards.protocols import Ledger

from .support import TableModel, candidate, case, laboratory

FOUR = msgspec.structs.replace(
    case("Where?"),
    candidates=tuple(candidate(f"text {i}", score=s) for i, s in enumerate([0.2, 0.9, 0.5, 0.5])),
)


@pytest.mark.parametrize(
    ("name", "admitted"),
    [("no_memory", []), ("vector", [1, 2, 3]), ("full_history", [0, 1, 2, 3])],
)
async def test_a_baseline_admits_what_its_name_says(name: str, admitted: list[int]) -> None:
    model = TableModel()

    decision = await guard_named(name).review(FOUR, laboratory(model))

    assert [i for i, j in enumerate(decision.judgements) if j.admitted] == admitted
    assert all(j.decided and j.reason and j.method == name for j in decision.judgements)
    assert decision.spent == Ledger()
    assert model.calls == 0


async def test_equal_scores_keep_the_order_of_the_case() -> None:
    decision = await Vector(limit=2).review(FOUR, laboratory(TableModel()))

    assert [i for i, j in enumerate(decision.judgements) if j.admitted] == [1, 2]


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="limit must be at least 0, got -1"):
        Vector(limit=-1)


@pytest.mark.parametrize("name", [*METHODS, *CMI_VARIANTS])
def test_a_guard_answers_to_its_name(name: str) -> None:
    assert guard_named(name, on_undecided="ask", seed=3).name == name


def test_an_unknown_name_shows_the_nearest() -> None:
    with pytest.raises(ConfigError, match="no method 'vectr'; did you mean vector"):
        guard_named("vectr")


def test_a_name_like_no_other_shows_them_all() -> None:
    with pytest.raises(ConfigError, match="known: no_memory, vector, full_history, summary"):
        guard_named("?")
