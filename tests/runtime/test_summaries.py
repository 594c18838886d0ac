"""A summary stands in a prompt for the records it was made from, live as in a benchmark."""

import pytest

from assay.errors import GuardFailed
from assay.guards.baselines_asking import Summary
from assay.guards.coalitions import coalition_of, grand
from assay.guards.protocols import Ask, Outcome, Parameters, Request
from assay.guards.tasks import REFLECT, SUMMARISE, TASKS
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.prompts import make_renderer
from assay.runtime.summaries import summary_candidate

from .rooms import USER, fresh_bank, over, runtime
from .support import NOW, candidate, renderer


def test_a_task_numbers_the_records_and_stands_before_the_question() -> None:
    two = [candidate("one", name="a"), candidate("two", name="b")]

    prompt = renderer(*two)(Ask(grand(2), REFLECT)).messages[-1].content

    first, second, _, task, question = prompt.splitlines()[1:]
    assert first.startswith("1. <") and ">one</" in first  # noqa: PT018  # one line of a prompt
    assert second.startswith("2. <") and ">two</" in second  # noqa: PT018
    assert (task, question) == (TASKS[REFLECT].words, "Question: Where to?")


def test_a_candidate_keeps_its_number_in_a_smaller_coalition() -> None:
    two = [candidate("one", name="a"), candidate("two", name="b")]

    prompt = renderer(*two)(Ask(coalition_of([1]), REFLECT)).messages[-1].content

    assert "2. <" in prompt
    assert "1. <" not in prompt


def test_a_task_has_room_for_its_answer_and_takes_none_away() -> None:
    def most(limit: int) -> int:
        render = make_renderer(
            model="m",
            question="q",
            candidates=[candidate("one")],
            now=NOW,
            seed=7,
            parameters=Parameters(max_tokens=limit),
            renderings={},
        )
        return render(Ask(grand(1), SUMMARISE)).parameters.max_tokens

    assert (most(8), most(1000)) == (TASKS[SUMMARISE].tokens, 1000)


def test_a_summary_names_what_it_was_made_from() -> None:
    found = summary_candidate(
        Outcome(status="truncated", text="one and"), [candidate("one", name="a")], now=NOW
    )

    assert (found.record.text, found.record.derived_from) == ("one and", ("a",))
    assert found.record.origin.channel == "summary"


@pytest.mark.parametrize(
    "outcome", [Outcome(status="refused", detail="no"), Outcome(status="answered", text=" ")]
)
def test_without_a_summary_there_is_nothing_to_show(outcome: Outcome) -> None:
    with pytest.raises(GuardFailed, match="no summary to show"):
        summary_candidate(outcome, [candidate("one")], now=NOW)


async def test_forgetting_a_record_drops_every_summary_of_it() -> None:
    bank = fresh_bank()
    rt = over(bank, guard=Summary())
    session = rt.session(user="u1")
    await session.send("My cat is called Miso.")
    await session.send("What is my cat called?")
    kept = [row async for row in bank.cache.rows(USER) if b"Notes:" in row.request]
    [record] = [r for r in await rt.memories("u1") if "Miso" in r.text]

    await rt.forget("u1", record.id)

    left = [row async for row in bank.cache.rows(USER) if b"Notes:" in row.request]
    assert len(kept) == 2  # the question for the summary, and the reply made from it
    assert left == []


async def test_a_live_reply_is_made_from_the_summary_and_asks_for_it_once() -> None:
    def script(request: Request) -> str:
        last = request.messages[-1].content
        if TASKS[SUMMARISE].words in last:
            return "The cat is Miso."
        return "from the summary" if ">The cat is Miso.</" in last else "no"

    model = ScriptedModel(script)
    async with runtime(model=model, guard="summary") as rt:
        session = rt.session(user="u1")
        await session.send("My cat is called Miso.")
        model.asked.clear()

        reply = await session.send("What is my cat called?")

    assert reply.text == "from the summary"
    tasks = [r for r in model.asked if TASKS[SUMMARISE].words in r.messages[-1].content]
    assert len(tasks) == 1
