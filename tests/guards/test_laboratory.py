"""What the laboratory asks, shares, keeps and counts."""

import anyio
import msgspec
import pytest
from anyio import wait_all_tasks_blocked

from assay.errors import BudgetExceeded, CassetteMiss, ModelUnavailable, StoreCorrupt
from assay.guards.budget import Budget, Limits, Price, Spend
from assay.guards.coalitions import EMPTY, Coalition, grand, singleton
from assay.guards.keys import decode_question
from assay.guards.protocols import Ask, Completion, Outcome
from assay.stores.records import RecordId

from .support import (
    ANN,
    ANSWER_TOKENS,
    PROMPT_TOKENS,
    DictCache,
    TableModel,
    echo,
    laboratory,
    prompt_of,
    render,
    say,
)

ASKS = [Ask(singleton(i)) for i in range(5)]


async def test_identical_asks_of_a_batch_are_paid_for_once() -> None:
    model = TableModel()
    lab = laboratory(model)

    outcomes = await lab.outcomes([Ask(Coalition(1)), Ask(Coalition(2)), Ask(Coalition(1))])

    assert [o.text for o in outcomes] == ["re plain:0", "re plain:1", "re plain:0"]
    assert model.calls == 2
    assert lab.ledger().evaluations == 2


async def test_an_empty_batch_costs_nothing() -> None:
    lab = laboratory(TableModel())

    assert await lab.outcomes([]) == []
    assert lab.ledger().rounds == 0


async def test_a_question_is_counted_once_however_often_it_is_put() -> None:
    model = TableModel()
    lab = laboratory(model, concurrency=2)

    await lab.outcomes(ASKS[:3])
    await lab.outcomes(ASKS[1:4])

    spent = lab.ledger()
    assert (spent.evaluations, spent.live, spent.cache_hits, spent.rounds) == (4, 4, 0, 3)
    assert spent.tokens == model.billed_tokens == 4 * (PROMPT_TOKENS + ANSWER_TOKENS)


async def test_another_laboratory_takes_answers_from_the_cache() -> None:
    cache = DictCache()
    model = TableModel()
    first = await laboratory(model, cache=cache).outcomes(ASKS)

    lab = laboratory(model, cache=cache, limits=Limits(calls=0), concurrency=2)
    second = await lab.outcomes(ASKS)

    spent = lab.ledger()
    assert second == first
    assert model.calls == len(ASKS)
    assert (spent.evaluations, spent.cache_hits, spent.live, spent.tokens) == (5, 5, 0, 0)
    assert spent.rounds == 3


async def test_a_question_once_sent_is_never_a_cache_hit() -> None:
    cache = DictCache()
    model = TableModel(answer=lambda _: ModelUnavailable("down"))
    lab = laboratory(model, cache=cache)
    await lab.outcome(Ask(EMPTY))
    await laboratory(TableModel(), cache=cache).outcome(Ask(EMPTY))

    outcome = await lab.outcome(Ask(EMPTY))

    spent = lab.ledger()
    assert outcome.status == "answered"
    assert (spent.evaluations, spent.live, spent.cache_hits) == (1, 1, 0)


async def test_a_redraw_and_a_rendering_are_other_questions() -> None:
    model = TableModel()
    lab = laboratory(model)
    asks = [Ask(EMPTY), Ask(EMPTY, draw=1), Ask(EMPTY, rendering="negation")]

    await lab.outcomes(asks)

    assert model.calls == 3


async def test_no_more_calls_run_at_once_than_allowed() -> None:
    model = TableModel(turns=lambda _: 3)
    lab = laboratory(model, concurrency=2)

    async with anyio.create_task_group() as group:
        group.start_soon(lab.outcomes, ASKS[:3])
        group.start_soon(lab.outcomes, ASKS[2:])

    assert model.most_running == 2
    assert model.calls == 5


def test_concurrency_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="concurrency must be at least 1, got 0"):
        laboratory(TableModel(), concurrency=0)


async def test_a_cached_row_names_its_records_and_its_question() -> None:
    cache = DictCache()
    lab = laboratory(TableModel(), cache=cache, records=3)

    await lab.outcome(Ask(Coalition(0b101)))

    [row] = [row async for row in cache.rows(ANN)]
    assert row.record_ids == (RecordId("r0"), RecordId("r2"))
    assert decode_question(row.request).request == render(Ask(Coalition(0b101)))
    assert msgspec.json.decode(row.value, type=Completion).text == "re plain:0 2"


async def test_a_coalition_beyond_the_records_is_refused_before_anything_runs() -> None:
    model = TableModel()
    lab = laboratory(model, records=2)

    with pytest.raises(ValueError, match="candidate 2 was asked about; there are 2"):
        await lab.outcomes([Ask(singleton(0)), Ask(singleton(2))])

    assert model.calls == 0


async def test_an_unreadable_cached_answer_is_an_error() -> None:
    cache = DictCache()
    await laboratory(TableModel(), cache=cache).outcome(Ask(EMPTY))
    cache.kept = {key: row._replace(value=b"{") for key, row in cache.kept.items()}

    with pytest.raises(StoreCorrupt, match="a cached answer cannot be read"):
        await laboratory(TableModel(), cache=cache).outcome(Ask(EMPTY))


# ---- the budget


async def test_a_batch_that_does_not_fit_does_not_begin() -> None:
    model = TableModel()
    budget = Budget(Limits(calls=3))
    lab = laboratory(model, budget=budget)

    with pytest.raises(BudgetExceeded, match="5 calls needed, 3 left"):
        await lab.outcomes(ASKS)

    assert model.calls == 0
    assert budget.left().calls == 3
    assert lab.ledger().evaluations == lab.ledger().rounds == 0


async def test_after_a_refused_batch_a_smaller_one_runs() -> None:
    lab = laboratory(TableModel(), limits=Limits(calls=3))
    with pytest.raises(BudgetExceeded):
        await lab.outcomes(ASKS)

    outcomes = await lab.outcomes(ASKS[:3])

    assert {o.status for o in outcomes} == {"answered"}


async def test_tokens_are_reserved_from_above_and_settled_as_billed() -> None:
    model = TableModel(answer=say_short)
    budget = Budget(Limits(tokens=2 * (PROMPT_TOKENS + ANSWER_TOKENS)))
    lab = laboratory(model, budget=budget)

    await lab.outcomes(ASKS[:2])

    assert budget.spent() == Spend(calls=2, tokens=2 * (PROMPT_TOKENS + 1))


async def test_money_is_counted_at_the_given_price() -> None:
    price = Price(prompt=1e5, completion=2e5)
    budget = Budget(Limits(money=10.0))
    lab = laboratory(TableModel(), budget=budget, price=price)

    await lab.outcomes(ASKS[:2])

    cost = 2 * (PROMPT_TOKENS * 0.1 + ANSWER_TOKENS * 0.2)
    assert lab.ledger().money == pytest.approx(cost)
    assert budget.spent().money == pytest.approx(cost)


async def test_a_call_still_running_at_the_deadline_is_cut() -> None:
    model = TableModel(gate=anyio.Event())
    lab = laboratory(model, limits=Limits(seconds=0.02), concurrency=1)

    outcomes = await lab.outcomes(ASKS[:2])

    assert [o.status for o in outcomes] == ["unavailable"] * 2
    assert "time of the budget ran out" in outcomes[0].detail
    spent = lab.ledger()
    assert (spent.evaluations, spent.live, model.calls) == (2, 1, 1)


def say_short(prompt: str) -> Completion:
    short = say(prompt)
    usage = msgspec.structs.replace(short.usage, completion_tokens=1)
    return msgspec.structs.replace(short, usage=usage)


# ---- concurrent callers


async def test_concurrent_callers_wait_for_one_answer() -> None:
    model = TableModel(gate=anyio.Event())
    lab = laboratory(model)
    answers: list[Outcome] = []

    async def ask() -> None:
        answers.append(await lab.outcome(Ask(EMPTY)))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        group.start_soon(ask)
        await wait_all_tasks_blocked()
        assert model.gate
        model.gate.set()

    assert [a.text for a in answers] == ["re plain:"] * 2
    assert model.calls == lab.ledger().live == 1


async def test_concurrent_callers_share_a_failure() -> None:
    model = TableModel(answer=lambda _: ModelUnavailable("down"), gate=anyio.Event())
    lab = laboratory(model)
    answers: list[Outcome] = []

    async def ask() -> None:
        answers.append(await lab.outcome(Ask(EMPTY)))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        group.start_soon(ask)
        await wait_all_tasks_blocked()
        assert model.gate
        model.gate.set()

    assert [a.status for a in answers] == ["unavailable"] * 2
    assert model.calls == 1


async def test_a_cancelled_leader_leaves_its_followers_to_ask_themselves() -> None:
    model = TableModel(gate=anyio.Event())
    budget = Budget(Limits(calls=10))
    lab = laboratory(model, budget=budget)
    answers: list[Outcome] = []

    async def ask(scope: anyio.CancelScope) -> None:
        with scope:
            answers.append(await lab.outcome(Ask(EMPTY)))

    leader, follower = anyio.CancelScope(), anyio.CancelScope()
    async with anyio.create_task_group() as group:
        group.start_soon(ask, leader)
        await wait_all_tasks_blocked()
        group.start_soon(ask, follower)
        await wait_all_tasks_blocked()
        leader.cancel()
        await wait_all_tasks_blocked()
        assert model.gate
        model.gate.set()

    assert [a.text for a in answers] == ["re plain:"]
    assert model.calls == 2
    assert lab.ledger().live == budget.spent().calls == 2
    assert lab.ledger().evaluations == 1


async def test_a_cancelled_follower_does_not_disturb_the_leader() -> None:
    model = TableModel(gate=anyio.Event())
    lab = laboratory(model)
    answers: list[Outcome] = []

    async def ask(scope: anyio.CancelScope) -> None:
        with scope:
            answers.append(await lab.outcome(Ask(EMPTY)))

    leader, follower = anyio.CancelScope(), anyio.CancelScope()
    async with anyio.create_task_group() as group:
        group.start_soon(ask, leader)
        await wait_all_tasks_blocked()
        group.start_soon(ask, follower)
        await wait_all_tasks_blocked()
        follower.cancel()
        assert model.gate
        model.gate.set()

    assert [a.text for a in answers] == ["re plain:"]
    assert model.calls == 1


async def test_cancelling_counts_calls_in_flight_whole_and_waiting_ones_not_at_all() -> None:
    model = TableModel(gate=anyio.Event())
    limits = Limits(calls=5, tokens=1000)
    budget = Budget(limits)
    lab = laboratory(model, budget=budget, concurrency=2)

    async with anyio.create_task_group() as group:
        group.start_soon(lab.outcomes, ASKS)
        await wait_all_tasks_blocked()
        group.cancel_scope.cancel()

    spent = lab.ledger()
    assert model.calls == spent.live == spent.evaluations == budget.spent().calls == 2
    assert spent.rounds == 1
    assert budget.left().calls == 3
    assert budget.left().tokens == 1000 - 2 * (PROMPT_TOKENS + ANSWER_TOKENS)


async def test_after_a_cancellation_the_same_batch_runs() -> None:
    model = TableModel(gate=anyio.Event())
    lab = laboratory(model)
    async with anyio.create_task_group() as group:
        group.start_soon(lab.outcomes, ASKS)
        await wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    model.gate = None

    outcomes = await lab.outcomes(ASKS)

    assert [o.text for o in outcomes] == [f"re {prompt_of(ask)}" for ask in ASKS]
    assert lab.ledger().evaluations == len(ASKS)


async def test_time_of_overlapping_callers_counts_once() -> None:
    model = TableModel(gate=anyio.Event())
    lab = laboratory(model)

    running = 0.0
    started = anyio.current_time()
    async with anyio.create_task_group() as group:
        group.start_soon(lab.outcome, ASKS[0])
        group.start_soon(lab.outcome, ASKS[1])
        await wait_all_tasks_blocked()
        running = lab.ledger().seconds
        assert model.gate
        model.gate.set()
    elapsed = anyio.current_time() - started

    assert 0 < running <= lab.ledger().seconds <= elapsed


# ---- replays


async def test_a_question_the_cassette_does_not_know_is_no_outcome() -> None:
    model = TableModel(answer=lambda prompt: known_but(prompt, "plain:3"))
    budget = Budget(Limits(calls=9))
    lab = laboratory(model, budget=budget)

    with pytest.raises(CassetteMiss, match="plain:3"):
        await lab.outcomes(ASKS)

    assert lab.ledger().live == budget.spent().calls < len(ASKS)


async def test_a_single_miss_is_counted_nowhere() -> None:
    model = TableModel(answer=lambda prompt: known_but(prompt, "plain:3"))
    budget = Budget(Limits(calls=9))
    lab = laboratory(model, budget=budget)

    with pytest.raises(CassetteMiss):
        await lab.outcome(Ask(singleton(3)))

    assert budget.left().calls == 9
    assert lab.ledger().evaluations == lab.ledger().live == 0


def known_but(prompt: str, unknown: str) -> Completion | Exception:
    return CassetteMiss(f"no {prompt}") if prompt == unknown else echo(prompt)


# ---- final answers


async def test_an_answer_is_shared_with_the_experiment_that_asked_the_same() -> None:
    model = TableModel()
    lab = laboratory(model)
    outcome = await lab.outcome(Ask(grand(2)))

    completion = await lab.answer(render(Ask(grand(2))))

    assert completion.text == outcome.text
    assert model.calls == lab.ledger().evaluations == 1


async def test_an_answer_streams_as_the_model_gives_it() -> None:
    pieces: list[str] = []
    lab = laboratory(TableModel())

    completion = await lab.answer(render(Ask(EMPTY)), sink=pieces.append)

    assert pieces == [completion.text]
    assert lab.ledger().live == 1


async def test_a_known_answer_comes_in_one_piece() -> None:
    pieces: list[str] = []
    lab = laboratory(TableModel())
    await lab.answer(render(Ask(EMPTY)))

    await lab.answer(render(Ask(EMPTY)), sink=pieces.append)

    assert pieces == ["re plain:"]
    assert lab.ledger().live == 1


async def test_an_empty_answer_gives_the_sink_nothing() -> None:
    pieces: list[str] = []
    lab = laboratory(TableModel(answer=lambda _: say("")))
    await lab.answer(render(Ask(EMPTY)))

    await lab.answer(render(Ask(EMPTY)), sink=pieces.append)

    assert pieces == []


async def test_an_answer_keeps_the_records_it_was_given() -> None:
    cache = DictCache()
    lab = laboratory(TableModel(), cache=cache)

    await lab.answer(render(Ask(EMPTY)), record_ids=[RecordId("r9")])

    [row] = [row async for row in cache.rows(ANN)]
    assert row.record_ids == (RecordId("r9"),)


async def test_an_answer_that_fails_raises_as_the_model_did() -> None:
    cache = DictCache()
    lab = laboratory(TableModel(answer=lambda _: ModelUnavailable("down")), cache=cache)

    with pytest.raises(ModelUnavailable, match="down"):
        await lab.answer(render(Ask(EMPTY)))

    assert not cache.kept
    assert lab.ledger().live == 1


async def test_a_batch_is_sent_in_the_order_of_its_prompts() -> None:
    model = TableModel()
    lab = laboratory(model, concurrency=1)
    members = [Coalition(0b110), Coalition(0b001), Coalition(0b010), Coalition(0b011)]

    outcomes = await lab.outcomes([Ask(coalition) for coalition in members])

    assert model.prompts == ["plain:0 1", "plain:0", "plain:1 2", "plain:1"]
    assert [o.text for o in outcomes] == [f"re {prompt_of(Ask(c))}" for c in members]
