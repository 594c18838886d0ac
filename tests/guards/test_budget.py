"""Reservations never exceed a limit, in any scope."""

import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import BudgetExceeded
from assay.guards.budget import Budget, Hold, Limits, Price, Spend


@dataclass
class Watch:
    """A monotonic clock that stands still."""

    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.mark.parametrize("limit", [-1, -0.5, math.nan])
def test_a_limit_below_zero_is_refused(limit: float) -> None:
    with pytest.raises(ValueError, match="the limit of money must be at least 0"):
        Limits(money=limit)


async def test_without_limits_everything_fits() -> None:
    budget = Budget(Limits())

    async with budget.reserve(calls=10**9, tokens=10**12, money=1e9) as hold:
        hold.settle()

    assert budget.left() == Limits()
    assert not budget.counts_tokens


async def test_settling_gives_back_what_was_not_used() -> None:
    budget = Budget(Limits(calls=3, tokens=100, money=1.0))

    async with budget.reserve(calls=2, tokens=80, money=0.5) as hold:
        in_flight = budget.left()
        hold.settle(calls=1, tokens=30, money=0.1)

    assert in_flight == Limits(calls=1, tokens=20, money=0.5)
    assert budget.left() == Limits(calls=2, tokens=70, money=0.9)
    assert budget.spent() == Spend(calls=1, tokens=30, money=0.1)


@pytest.mark.parametrize(
    ("limits", "spend", "message"),
    [
        (Limits(calls=3), Spend(calls=4), "4 calls needed, 3 left"),
        (Limits(tokens=9), Spend(calls=1, tokens=10), "10 tokens needed, 9 left"),
        (Limits(money=0.5), Spend(calls=1, money=0.75), "0.75 money needed, 0.5 left"),
        (Limits(seconds=0), Spend(calls=1), "0.001 seconds needed, 0 left"),
    ],
)
def test_what_does_not_fit_is_named_and_nothing_is_held(
    limits: Limits, spend: Spend, message: str
) -> None:
    budget = Budget(limits)

    with pytest.raises(BudgetExceeded, match=message):
        budget.hold(spend)

    assert budget.left() == limits


def test_several_reservations_hold_all_or_none() -> None:
    budget = Budget(Limits(calls=2))

    with pytest.raises(BudgetExceeded, match="3 calls needed, 2 left"):
        budget.hold_all([Spend(calls=1)] * 3)

    assert budget.left().calls == 2
    assert budget.hold_all([]) == []


def test_spending_more_than_was_reserved_leaves_nothing_for_others() -> None:
    budget = Budget(Limits(tokens=10))

    budget.hold(Spend(tokens=8)).settle(tokens=12)

    assert budget.spent().tokens == 12
    assert budget.left().tokens == 0


async def test_an_unsettled_reservation_counts_as_spent() -> None:
    budget = Budget(Limits(calls=5, tokens=50))

    with pytest.raises(ZeroDivisionError):
        async with budget.reserve(calls=1, tokens=20):
            raise ZeroDivisionError

    assert budget.left() == Limits(calls=4, tokens=30)


async def test_a_released_reservation_costs_nothing() -> None:
    budget = Budget(Limits(calls=5))

    async with budget.reserve(calls=2) as hold:
        hold.release()
        hold.release()

    assert budget.left().calls == 5


def test_a_reservation_is_settled_once() -> None:
    hold = Budget(Limits()).hold(Spend(calls=1))
    hold.settle()

    with pytest.raises(ValueError, match="settled before"):
        hold.settle()

    assert not hold.is_open


def test_a_child_spends_from_its_parent() -> None:
    parent = Budget(Limits(calls=10, tokens=100))
    child = parent.child(Limits(calls=4))

    child.hold(Spend(calls=3, tokens=60)).settle()

    assert parent.left() == Limits(calls=7, tokens=40)
    assert child.left() == Limits(calls=1, tokens=40)
    assert child.limits == Limits(calls=4)
    assert child.counts_tokens


def test_a_parent_limits_its_grandchildren() -> None:
    parent = Budget(Limits(calls=2))
    grandchild = parent.child(Limits()).child(Limits(calls=9))

    with pytest.raises(BudgetExceeded, match="3 calls needed, 2 left"):
        grandchild.hold(Spend(calls=3))


def test_time_runs_from_the_first_reservation_on() -> None:
    watch = Watch()
    budget = Budget(Limits(seconds=5.0), monotonic=watch)
    watch.seconds = 100.0
    before = budget.seconds_left()

    hold = budget.hold(Spend(calls=1))
    watch.seconds = 103.0
    during = budget.seconds_left()
    hold.settle()
    watch.seconds = 109.0

    assert (before, during, budget.seconds_left()) == (5.0, 2.0, 0.0)
    with pytest.raises(BudgetExceeded, match="seconds needed, 0 left"):
        budget.hold(Spend(calls=1))


def test_a_call_that_takes_longer_than_is_left_does_not_fit() -> None:
    budget = Budget(Limits(seconds=5.0), monotonic=Watch())

    with pytest.raises(BudgetExceeded, match="8 seconds needed, 5 left"):
        budget.hold(Spend(calls=1), seconds=8.0)


def test_ten_dimes_fit_a_dollar() -> None:
    budget = Budget(Limits(money=1.0))

    for hold in [budget.hold(Spend(money=0.1)) for _ in range(10)]:
        hold.settle()

    assert budget.left().money == 0.0


def test_a_price_is_per_million_tokens() -> None:
    assert Price(prompt=2.0, completion=10.0).of(500_000, 100_000) == 2.0


@given(
    limit=st.integers(0, 12),
    amounts=st.lists(st.tuples(st.integers(0, 5), st.sampled_from([None, 0, 1]))),
)
def test_spent_and_held_together_never_exceed_the_limit(
    limit: int, amounts: list[tuple[int, int | None]]
) -> None:
    budget = Budget(Limits(calls=limit))
    child = budget.child(Limits())

    holds = [(h, used) for n, used in amounts for h in held_or_refused(child, n)]
    held = limit - left_calls(budget)
    for hold, used in holds:
        hold.settle(calls=used)

    assert 0 <= held <= limit
    assert budget.spent() == child.spent()
    assert left_calls(budget) == limit - budget.spent().calls


def held_or_refused(budget: Budget, calls: int) -> list[Hold]:
    """A hold, or none where it does not fit."""
    try:
        return [budget.hold(Spend(calls=calls))] if calls else []
    except BudgetExceeded:
        return []


def left_calls(budget: Budget) -> int:
    left = budget.left().calls
    assert left is not None
    return left
