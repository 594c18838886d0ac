"""Clearing searches against contexts with known faults: what they find, ask and promise."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import BudgetExceeded
from assay.guards.clearing.adaptive import Policy, adaptive
from assay.guards.clearing.answers import Answers
from assay.guards.clearing.core_grow import core_grow
from assay.guards.clearing.levelwise import levelwise
from assay.guards.clearing.pivot import pivot
from assay.guards.clearing.probes import Batch, Probe, Search, conduct, drive, undrawn
from assay.guards.clearing.published import (
    by_banzhaf,
    by_context_cite,
    by_exact_deletion,
    by_exact_shapley,
    by_leave_one_out,
    meclear,
)
from assay.guards.coalitions import Coalition, Utilities, coalition_of, grand, is_subset, without

Make = Callable[[int], Search]

EXACT = Answers()
NOISY = Answers(kind="bernoulli")


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


OURS: dict[str, Make] = {
    "pivot": lambda n: pivot(n, EXACT, rng()),
    "core_grow": lambda n: core_grow(n, EXACT, rng()),
    "adaptive": lambda n: adaptive(n, EXACT, rng(), Policy(confidence=0.999)),
}
SMALL: dict[str, Make] = {
    **OURS,
    "levelwise": lambda n: levelwise(n, EXACT),
    "exact_deletion": by_exact_deletion,
}
EVERY: dict[str, Make] = {
    **SMALL,
    "meclear": lambda n: meclear(n, rng()),
    "leave_one_out": by_leave_one_out,
    "shapley_exact": by_exact_shapley,
    "contextcite": lambda n: by_context_cite(n, rng()),
    "banzhaf": lambda n: by_banzhaf(n, rng()),
}

every_search = pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)
our_search = pytest.mark.parametrize("make", OURS.values(), ids=OURS)
small_search = pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)


class Veto:
    """A context is right iff a gold record is there and no harm is active."""

    def __init__(
        self, gold: Sequence[int], alone: Sequence[int], joint: Sequence[int] = ()
    ) -> None:
        self.gold, self.alone = coalition_of(gold), coalition_of(alone)
        self.joint = coalition_of(joint)
        self.asked: list[Probe] = []

    def is_right(self, context: Coalition) -> bool:
        joint = bool(self.joint) and is_subset(self.joint, context)
        return is_subset(self.gold, context) and not context & self.alone and not joint

    def __call__(self, probes: Batch) -> Utilities:
        self.asked += probes
        return np.array([0.9 if self.is_right(p.coalition) else 0.1 for p in probes])


@small_search
@pytest.mark.parametrize(
    ("alone", "joint"), [([2], []), ([1, 4], []), ([1, 2, 4], []), ([], [1, 3])]
)
def test_a_search_flags_exactly_the_harmful_records_and_verifies(
    make: Make, alone: list[int], joint: list[int]
) -> None:
    game = Veto([0], alone, joint)

    found, _ = drive(make(5), game)

    assert found.flagged == coalition_of([*alone, *joint])
    assert found.certificate == "recovered"
    assert game.is_right(without(grand(5), found.cleared))


@settings(max_examples=40, deadline=None)
@given(
    seats=st.permutations(range(7)),
    golds=st.integers(min_value=1, max_value=2),
    copies=st.integers(min_value=1, max_value=3),
    name=st.sampled_from(sorted(OURS)),
)
def test_whatever_a_search_clears_was_asked_and_recovers(
    seats: list[int], golds: int, copies: int, name: str
) -> None:
    game = Veto(seats[:golds], seats[golds : golds + copies])

    found, spending = drive(OURS[name](7), game)

    kept = without(grand(7), found.cleared)
    assert found.certificate == "recovered"
    assert kept in {probe.coalition for probe in game.asked}
    assert game.is_right(kept)
    assert spending.evaluations == len(game.asked) == len(set(game.asked))


@every_search
def test_a_context_that_is_right_is_left_alone(make: Make) -> None:
    found, _ = drive(make(5), lambda probes: np.full(len(probes), 0.9))

    assert found.certificate == "clean"
    assert found.cleared == 0


@every_search
@pytest.mark.parametrize("n", [0, 1, 5])
def test_nothing_is_cleared_where_no_context_is_right(make: Make, n: int) -> None:
    found, _ = drive(make(n), lambda probes: np.full(len(probes), 0.1))

    assert found.certificate == "none"
    assert found.cleared == 0
    assert sorted(found.order) == list(range(n))


@every_search
def test_one_harmful_record_alone_is_cleared_when_the_task_needs_no_memory(make: Make) -> None:
    found, _ = drive(make(1), Veto([], [0]))

    assert found.cleared == coalition_of([0])


@every_search
def test_unmeasured_contexts_are_never_read_as_recovered(make: Make) -> None:
    found, _ = drive(make(4), lambda probes: np.full(len(probes), math.nan))

    assert found.certificate == "none"
    assert found.cleared == 0
    assert found.unmeasured > 0


@our_search
def test_all_records_harmful_leaves_the_empty_context_if_that_is_right(make: Make) -> None:
    found, _ = drive(make(4), Veto([], range(4)))

    assert found.flagged == grand(4)
    assert found.certificate == "recovered"


@our_search
def test_seventy_candidates_are_searched(make: Make) -> None:
    game = Veto([3], [65, 68])

    found, spending = drive(make(70), game)

    assert found.flagged == coalition_of([65, 68])
    assert spending.evaluations < 400


@every_search
def test_a_budget_below_the_screen_changes_nothing_and_is_marked(make: Make) -> None:
    found, spending = drive(make(5), Veto([0], [1, 2]), limit=1)

    assert found.stopped
    assert found.cleared == 0
    assert spending.evaluations <= 1


@small_search
def test_a_budget_that_ends_late_keeps_the_best_verified_so_far(make: Make) -> None:
    game = Veto([0], [1, 2])
    full, spending = drive(make(5), game)

    found, spent = drive(make(5), Veto([0], [1, 2]), limit=spending.evaluations - 1)

    assert full.certificate == "recovered"
    assert spent.evaluations < spending.evaluations
    assert found.cleared == 0 or game.is_right(without(grand(5), found.cleared))


def test_a_redraw_is_paid_for_and_a_repeat_is_not() -> None:
    def search() -> Search:
        yield [Probe(Coalition(1)), Probe(Coalition(1)), Probe(Coalition(1), 1)]
        yield [Probe(Coalition(1))]
        return (yield from levelwise(0, EXACT))

    _, spending = drive(search(), Veto([], []))

    assert spending.stages == [2, 1]


def test_rounds_are_counted_per_dependent_stage() -> None:
    _, spending = drive(by_leave_one_out(5), Veto([0], [1]))

    assert spending.stages == [6]
    assert [spending.rounds(c) for c in (1, 4, 8)] == [6, 2, 1]


def test_noisy_answers_are_redrawn_and_verified_by_fresh_draws() -> None:
    game = Veto([0], [2])

    found, _ = drive(pivot(4, NOISY, rng()), game)

    kept = without(grand(4), found.cleared)
    draws = [probe.draw for probe in game.asked if probe.coalition == kept]
    assert found.flagged == coalition_of([2])
    assert len(draws) == len(set(draws)) == 4


@our_search
def test_evaluations_of_a_known_game_do_not_creep_up(make: Make) -> None:
    _, spending = drive(make(5), Veto([0], [1, 2]))

    assert spending.evaluations <= 20


async def test_a_laboratory_and_a_game_are_searched_by_the_same_code() -> None:
    class Value:
        low, high = 0.0, 1.0

        async def __call__(self, coalitions: Sequence[Coalition]) -> Utilities:
            return Veto([0], [1, 2])([Probe(c) for c in coalitions])

    found = await conduct(OURS["pivot"](5), undrawn(Value()))

    assert found.cleared == coalition_of([1, 2])


async def test_a_laboratory_without_budget_ends_the_search_marked() -> None:
    async def refuse(probes: Batch) -> Utilities:
        raise BudgetExceeded("calls", needed=len(probes), left=0)

    found = await conduct(OURS["adaptive"](5), refuse)

    assert found.stopped
    assert found.certificate == "none"
