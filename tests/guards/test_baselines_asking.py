"""Summary and reflection ask one question each; graph asks none. Nobody sees more than texts."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import BudgetExceeded, GuardFailed, ModelRefused
from assay.guards.baselines_asking import Reflection, Summary, chosen_of
from assay.guards.baselines_graph import Graph, closeness
from assay.guards.budget import Limits
from assay.guards.methods import guard_named
from assay.guards.protocols import Case, Decision, OnUndecided

from .support import TableModel, case, laboratory, say

TEXTS = ("Ann lives in Porto", "Ann has 2 dogs", "Bob likes tea")
THREE = case("Where does Ann live?", *TEXTS)


def admitted(decision: Decision) -> list[int]:
    return [i for i, judgement in enumerate(decision.judgements) if judgement.admitted]


async def test_a_summary_admits_all_in_a_summary_of_one_question() -> None:
    model = TableModel()

    decision = await Summary().review(THREE, laboratory(model))

    assert model.prompts == ["summarise:0 1 2"]
    assert (admitted(decision), decision.shown_as) == ([0, 1, 2], "summary")
    assert decision.spent.evaluations == 1


async def test_a_decision_holds_no_word_of_the_summary() -> None:
    model = TableModel(answer=lambda _: say("a secret summary"))

    decision = await Summary().review(THREE, laboratory(model))

    assert b"secret" not in msgspec.json.encode(decision)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("1, 3", [0, 2]),
        ("Notes 1 and 2.", [0, 1]),
        ("none", []),
        ("No notes are needed", []),
        ("3", [2]),
        ("9", None),
        ("3.5 or 12-1", None),
        ("...", None),
        ("", None),
        ("Ann has 2 dogs.", [1]),
        ("Keep: ann lives in Porto; it is 1 of 3", [0]),
    ],
)
def test_what_an_answer_names(answer: str, expected: list[int] | None) -> None:
    chosen = chosen_of(answer, TEXTS)

    assert (None if chosen is None else sorted(chosen)) == expected


@given(answer=st.text(), texts=st.lists(st.text(), max_size=4))
def test_any_answer_names_only_what_was_shown(answer: str, texts: list[str]) -> None:
    chosen = chosen_of(answer, texts)

    assert chosen is None or chosen <= set(range(len(texts)))


async def test_reflection_admits_what_the_model_names() -> None:
    model = TableModel(answer=lambda _: say("2"))

    decision = await Reflection().review(THREE, laboratory(model))

    assert model.prompts == ["reflect:0 1 2"]
    assert (admitted(decision), decision.shown_as) == ([1], "records")


@pytest.mark.parametrize(
    ("policy", "in_prompt", "asks"),
    [("withhold", [], False), ("ask", [], True), ("admit_flagged", [0, 1, 2], False)],
)
async def test_an_answer_that_names_nothing_follows_the_policy(
    *, policy: OnUndecided, in_prompt: list[int], asks: bool
) -> None:
    model = TableModel(answer=lambda _: say("I am not sure"))

    decision = await Reflection(on_undecided=policy).review(THREE, laboratory(model))

    assert admitted(decision) == in_prompt
    assert bool(decision.ask) == asks
    assert not any(judgement.decided for judgement in decision.judgements)


@pytest.mark.parametrize("name", ["summary", "reflection"])
async def test_without_an_answer_nothing_is_decided(name: str) -> None:
    model = TableModel(answer=lambda _: ModelRefused("no"))

    with pytest.raises(GuardFailed, match="refused"):
        await guard_named(name).review(THREE, laboratory(model))


async def test_an_empty_summary_is_no_summary() -> None:
    with pytest.raises(GuardFailed, match="is empty"):
        await Summary().review(THREE, laboratory(TableModel(answer=lambda _: say(" \n"))))


@pytest.mark.parametrize("name", ["summary", "reflection"])
async def test_a_budget_of_0_buys_no_question(name: str) -> None:
    model = TableModel()

    with pytest.raises(BudgetExceeded):
        await guard_named(name).review(THREE, laboratory(model, limits=Limits(calls=0)))

    assert model.calls == 0


@pytest.mark.parametrize("name", ["summary", "reflection", "graph"])
async def test_an_empty_bank_asks_nothing(name: str) -> None:
    model = TableModel()

    decision = await guard_named(name).review(case("Where?"), laboratory(model))

    assert (decision.judgements, model.calls) == ((), 0)


# ---- graph


async def test_graph_admits_the_nearest_by_shared_words_and_names() -> None:
    model = TableModel()

    decision = await Graph(limit=1).review(THREE, laboratory(model))

    assert admitted(decision) == [0]
    assert model.calls == 0


def test_a_record_is_reached_through_another_that_shares_a_name() -> None:
    texts = ["Later Ann's sister met Cleo", "Today Cleo paints boats", "Today Dov paints boats"]

    near = closeness("What does the sister of Ann paint?", texts)

    assert near[0] > near[1] > near[2] > 0


def test_nothing_shared_is_never_reached() -> None:
    assert closeness("Where?", ["tea", ""]) == [0.0, 0.0]
    assert closeness("", []) == []


@given(order=st.permutations(range(3)))
async def test_the_order_of_candidates_changes_nothing(order: list[int]) -> None:
    turned = msgspec.structs.replace(THREE, candidates=tuple(THREE.candidates[i] for i in order))

    decisions = [
        await Graph(limit=2).review(each, laboratory(TableModel())) for each in (THREE, turned)
    ]

    first, second = (texts_of(each, d) for each, d in zip((THREE, turned), decisions, strict=True))
    assert first == second


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="limit must be at least 0, got -1"):
        Graph(limit=-1)


def texts_of(each: Case, decision: Decision) -> set[str]:
    return {each.candidates[i].record.text for i in admitted(decision)}
