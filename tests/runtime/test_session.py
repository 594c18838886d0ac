import anyio
import pytest

from assay.errors import TurnError, TurnFailed, TurnTimeout
from assay.guards.protocols import (
    Case,
    Completion,
    Decision,
    Experimenter,
    Message,
    Request,
    ToolCall,
)
from assay.runtime.commands import ToolResult
from assay.runtime.events import (
    AnyEvent,
    CandidatesRetrieved,
    CommandFailed,
    GuardDecided,
    MemoriesWritten,
    MessageReceived,
    ReplyProduced,
    TurnCancelled,
)
from assay.runtime.models.scripted import Rule, ScriptedModel
from assay.stores.records import Origin

from .rooms import SESSION, USER, WordGuard, fresh_bank, journal_of, over, runtime, with_settings

CALL = ToolCall(id="c1", name="weather", arguments='{"city": "Porto"}')
TOLD = Origin(writer="user", channel="import:test")
STRAIGHT_LINE = [
    MessageReceived,
    CandidatesRetrieved,
    GuardDecided,
    ReplyProduced,
    MemoriesWritten,
]


class AskingGuard(WordGuard):
    """Withholds all and has a question for the user."""

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        decision = await super().review(case, laboratory)
        return Decision(method="word", judgements=decision.judgements, ask="Is that so?")


class EndlessGuard(WordGuard):
    """Never decides."""

    async def review(self, case: Case, laboratory: Experimenter) -> Decision:
        await anyio.sleep_forever()
        raise AssertionError("unreachable")


class Endless(ScriptedModel):
    """Never answers."""

    async def complete(self, request: Request, *, sink: object = None) -> Completion:
        await anyio.sleep_forever()
        raise AssertionError("unreachable")


def weather_report(request: Request) -> Completion | str:
    """Calls the tool, then says what it gave."""
    last: Message = request.messages[-1]
    if last.role == "tool":
        return f"It will {last.content}."
    return Completion(text="", finish_reason="tool_calls", tool_calls=(CALL,))


def answered(output: str = "rain") -> ToolResult:
    return ToolResult(call=CALL, output=output)


async def test_what_was_told_is_answered_from_memory() -> None:
    async with runtime() as rt:
        await rt.session(user="u1").send("My cat is called Miso.")

        reply = await rt.session(user="u1").send("What is my cat called?")

    assert reply.text == "My cat is called Miso."
    assert [judgement.admitted for judgement in reply.decision.judgements] == [True]


async def test_what_the_guard_withholds_does_not_reach_the_model() -> None:
    model = ScriptedModel()
    async with runtime(model=model) as rt:
        await rt.session(user="u1").send("A rumour says my cat is called Tiger.")

        reply = await rt.session(user="u1").send("What is my cat called?")

    assert reply.text == "I do not know"
    assert [judgement.admitted for judgement in reply.decision.judgements] == [False]
    assert "rumour" not in model.asked[-1].messages[-1].content


async def test_withholding_leaves_the_bank_alone() -> None:
    async with runtime() as rt:
        await rt.session(user="u1").send("A rumour says my cat is called Tiger.")
        before = await rt.memories("u1")

        await rt.session(user="u1").send("What is my cat called?")

        assert await rt.memories("u1") == before


async def test_a_turn_journals_one_event_per_step() -> None:
    bank = fresh_bank()

    await over(bank).session(user=USER, session_id=SESSION).send("My cat is called Miso.")

    assert [type(event) for event in await journal_of(bank)] == STRAIGHT_LINE


async def test_subscribers_see_what_the_journal_has() -> None:
    bank, seen = fresh_bank(), list[AnyEvent]()
    session = over(bank).session(user=USER, session_id=SESSION)

    with session.subscribe(seen.append):
        await session.send("My cat is called Miso.")

    assert seen == await journal_of(bank)


async def test_an_observer_may_watch_some_kinds_only() -> None:
    session = over(fresh_bank()).session(user=USER)

    with session.observe(GuardDecided) as observer:
        reply = await session.send("My cat is called Miso.")
    seen = [event async for event in observer]

    assert [event.turn_id for event in seen] == [reply.turn_id]


async def test_a_failing_observer_fails_the_turn() -> None:
    bank = fresh_bank()
    session = over(bank).session(user=USER, session_id=SESSION)

    def break_down(event: AnyEvent) -> None:
        raise RuntimeError("disk full")

    with session.subscribe(break_down), pytest.raises(TurnFailed, match="disk full") as failure:
        await session.send("My cat is called Miso.")

    assert failure.value.kind == "RuntimeError"
    assert isinstance((await journal_of(bank))[-1], CommandFailed)


async def test_an_observer_that_fails_on_the_last_event_is_heard() -> None:
    session = over(fresh_bank()).session(user=USER)

    def break_down(event: AnyEvent) -> None:
        raise RuntimeError("disk full")

    with (
        session.subscribe(break_down, MemoriesWritten),
        pytest.raises(TurnError, match="RuntimeError: disk full"),
    ):
        await session.send("My cat is called Miso.")


async def test_recent_turns_are_in_the_next_prompt() -> None:
    model = ScriptedModel([Rule(reply="Hello Ann.")])
    session = over(fresh_bank(), model=model).session(user=USER)
    await session.send("Hi, I am Ann.")

    await session.send("How are you?")

    contents = [message.content for message in model.asked[-1].messages]
    assert contents[1:3] == ["Hi, I am Ann.", "Hello Ann."]


async def test_messages_sent_at_once_are_answered_one_after_the_other() -> None:
    bank = fresh_bank()
    session = over(bank).session(user=USER, session_id=SESSION)

    async with anyio.create_task_group() as group:
        group.start_soon(session.send, "My cat is called Miso.")
        group.start_soon(session.send, "My dog is called Rex.")

    kinds = [type(event) for event in await journal_of(bank)]
    assert kinds == STRAIGHT_LINE * 2


async def test_one_session_id_is_one_session() -> None:
    rt = over(fresh_bank())

    first, second = (rt.session(user=USER, session_id=SESSION) for _ in range(2))

    assert first is second


async def test_one_session_id_of_two_users_is_two_sessions() -> None:
    rt = over(fresh_bank())
    await rt.session(user="ann", session_id="s").send("My cat is called Miso.")

    reply = await rt.session(user="ben", session_id="s").send("What is my cat called?")

    assert (reply.text, reply.decision.judgements) == ("I do not know", ())


async def test_a_model_that_is_down_fails_the_turn_and_not_the_session() -> None:
    model = ScriptedModel([Rule(question="cat", fails="unavailable"), Rule(reply="Hello.")])
    session = over(fresh_bank(), model=model).session(user=USER)

    with pytest.raises(TurnFailed, match="unavailable") as failure:
        await session.send("My cat is called Miso.")
    reply = await session.send("Hi there, nice to meet you")

    assert failure.value.kind == "ModelUnavailable"
    assert reply.text == "Hello."


async def test_what_was_said_is_kept_though_no_reply_came() -> None:
    rt = over(fresh_bank(), model=ScriptedModel([Rule(fails="unavailable")]))

    with pytest.raises(TurnFailed):
        await rt.session(user=USER).send("My cat is called Miso.")

    assert [record.text for record in await rt.memories(USER)] == ["My cat is called Miso."]


async def test_a_message_sent_again_after_a_failure_is_remembered_once() -> None:
    model = ScriptedModel([Rule(prompt="Notes:", reply="Noted."), Rule(fails="unavailable")])
    rt = over(fresh_bank(), model=model)
    session = rt.session(user=USER)
    with pytest.raises(TurnFailed):
        await session.send("My cat is called Miso.")

    await session.send("My cat is called Miso.")

    assert len(await rt.memories(USER)) == 1


async def test_a_turn_over_its_deadline_is_over() -> None:
    bank = fresh_bank()
    settings = with_settings(turn={"seconds": 0.05})
    async with runtime(model=Endless(), settings=settings) as rt:
        session = rt.session(user=USER, session_id=SESSION)

        with pytest.raises(TurnTimeout, match=r"no reply within 0.05 s \(turn.seconds\)"):
            await session.send("Hello there")
        last = (await journal_of(rt.bank))[-1]

        assert await session.resume() is None
    assert isinstance(last, TurnCancelled)
    assert last.reason == "deadline"
    assert await journal_of(bank) == []


async def test_a_cancelled_turn_is_not_resumed() -> None:
    bank = fresh_bank()
    session = over(bank, model=Endless()).session(user=USER, session_id=SESSION)

    with anyio.move_on_after(0.05):
        await session.send("Hello there")

    last = (await journal_of(bank))[-1]
    assert isinstance(last, TurnCancelled)
    assert last.reason == "cancelled"
    assert await over(bank).session(user=USER, session_id=SESSION).resume() is None


async def test_a_guard_over_its_deadline_falls_back_visibly() -> None:
    settings = with_settings(guard={"seconds": 0.05, "on_guard_failure": "admit_flagged"})
    async with runtime(guard=EndlessGuard(), settings=settings) as rt:
        await rt.session(user="u1").send("My cat is called Miso.")

        reply = await rt.session(user="u1").send("What is my cat called?")

    assert reply.text == "My cat is called Miso."
    assert reply.decision.fallback == "admit_flagged"
    assert "not decided within 0.05 s" in reply.decision.failure
    assert reply.decision.judgements[0].flagged


async def test_a_guard_over_its_deadline_may_fail_the_turn() -> None:
    settings = with_settings(guard={"seconds": 0.05, "on_guard_failure": "fail_turn"})
    async with runtime(guard=EndlessGuard(), settings=settings) as rt:
        await rt.session(user="u1").send("My cat is called Miso.")

        with pytest.raises(TurnFailed, match="not decided within") as failure:
            await rt.session(user="u1").send("What is my cat called?")

    assert failure.value.kind == "GuardFailed"


async def test_a_budget_of_nothing_lets_the_declared_policy_act_visibly() -> None:
    settings = with_settings(budget={"calls": 0})
    async with runtime(settings=settings) as rt:
        await rt.session(user="u1").send("My cat is called Miso.")

        reply = await rt.session(user="u1").send("What is my cat called?")

    assert reply.decision.fallback == "withhold_all"
    assert "budget exceeded" in reply.decision.failure
    assert reply.decision.spent.live == 0
    assert reply.text == "I do not know"


async def test_a_guard_that_asks_is_the_reply() -> None:
    model, pieces = ScriptedModel(), list[str]()
    session = over(fresh_bank(), model=model, guard=AskingGuard()).session(user=USER)
    await session.send("My cat is called Miso.")

    reply = await session.send("What is my cat called?", sink=pieces.append)

    assert (reply.text, pieces) == ("Is that so?", ["Is that so?"])


async def test_the_reply_streams() -> None:
    pieces: list[str] = []
    session = over(fresh_bank()).session(user=USER)
    await session.send("My cat is called Miso.")

    reply = await session.send("What is my cat called?", sink=pieces.append)

    assert len(pieces) > 1
    assert "".join(pieces) == reply.text


async def test_the_ledger_counts_the_guard_and_the_reply() -> None:
    session = over(fresh_bank()).session(user=USER)
    await session.send("My cat is called Miso.")

    reply = await session.send("What is my cat called?")

    assert (reply.decision.spent.live, reply.ledger.live) == (1, 2)


async def test_candidates_the_context_has_no_room_for_are_withheld_visibly() -> None:
    rt = over(fresh_bank(), model=ScriptedModel(context_tokens=800))
    await rt.remember(USER, "My cat is called Miso. " + "Long ago. " * 15, origin=TOLD)
    await rt.remember(USER, "My dog is called Rex. " + "Long ago. " * 15, origin=TOLD)

    reply = await rt.session(user=USER).send("What is my cat called?")

    reasons = {judgement.method: judgement.reason for judgement in reply.decision.judgements}
    assert reasons == {
        "word": "by its words",
        "context": "the model's context has no room for it",
    }
    assert reply.text.startswith("My cat is called Miso.")


async def test_recent_turns_make_room_for_candidates() -> None:
    model = ScriptedModel(context_tokens=800)
    session = over(fresh_bank(), model=model).session(user=USER)
    await session.send("My cat is called Miso. " + "Long ago. " * 20)

    reply = await session.send("What is my cat called?")

    assert [judgement.method for judgement in reply.decision.judgements] == ["word"]
    assert "[cut]" in model.asked[-1].messages[1].content


async def test_a_message_beyond_the_context_fails_the_turn() -> None:
    model = ScriptedModel(context_tokens=400)
    session = over(fresh_bank(), model=model).session(user=USER)

    with pytest.raises(TurnFailed, match="context") as failure:
        await session.send("word " * 200)

    assert failure.value.kind == "ContextOverflow"
    assert model.asked == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "message must not be empty"),
        (" \n", "message must not be empty"),
        ("a\0b", "must not contain NUL"),
        ("\ud800", "valid Unicode"),
        ("a" * 1_000_000, "message is 1,000,000 bytes, the limit is 65,536"),
    ],
    ids=["empty", "blank", "NUL", "surrogate", "1 MB"],
)
async def test_unusable_messages_are_refused_before_any_effect(text: str, message: str) -> None:
    bank = fresh_bank()

    with pytest.raises(ValueError, match=message):
        await over(bank).session(user=USER, session_id=SESSION).send(text)

    assert await bank.journal.sessions() == []


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 600], ids=["empty", "NUL", "long"])
def test_unusable_names_are_refused(name: str) -> None:
    rt = over(fresh_bank())

    with pytest.raises(ValueError, match="user"):
        rt.session(user=name)
    with pytest.raises(ValueError, match="session id"):
        rt.session(user="u", session_id=name)


async def test_tool_calls_pass_through_to_the_caller() -> None:
    session = over(fresh_bank(), model=ScriptedModel(weather_report)).session(user=USER)

    reply = await session.send("Will it rain?", tools='[{"type": "function"}]')
    after = await session.answer_tools([answered()])

    assert (reply.tool_calls, after.text) == ((CALL,), "It will rain.")
    assert after.turn_id == reply.turn_id


async def test_a_call_and_its_result_are_remembered_as_one_unit_of_the_tool() -> None:
    rt = over(fresh_bank(), model=ScriptedModel(weather_report))
    session = rt.session(user=USER)
    await session.send("Will it rain?")

    await session.answer_tools([answered()])

    [record] = await rt.memories(USER)
    assert record.text == 'weather({"city": "Porto"}) gave: rain'
    assert (record.origin.writer, record.origin.channel) == ("tool", "tool:weather")


async def test_a_call_without_a_result_is_never_stored() -> None:
    bank = fresh_bank()
    session = over(bank, model=ScriptedModel(weather_report)).session(user=USER)
    await session.send("Will it rain?")

    await session.send("Will it rain tomorrow?")

    turns = await bank.archive.all(USER)
    assert [turn.text for turn in turns] == ["Will it rain?", "Will it rain tomorrow?"]


async def test_the_tool_exchange_is_not_shown_twice() -> None:
    model = ScriptedModel(weather_report)
    session = over(fresh_bank(), model=model).session(user=USER)
    await session.send("Will it rain?")

    await session.answer_tools([answered()])

    roles = [message.role for message in model.asked[-1].messages]
    assert roles == ["system", "user", "assistant", "tool"]


async def test_results_of_other_calls_are_refused() -> None:
    session = over(fresh_bank(), model=ScriptedModel(weather_report)).session(user=USER)
    await session.send("Will it rain?")
    other = ToolResult(call=ToolCall(id="c9", name="x", arguments="{}"), output="")

    with pytest.raises(ValueError, match=r"expected one result for each of \['c1'\], got \['c9'\]"):
        await session.answer_tools([other])


async def test_results_nobody_asked_for_are_refused() -> None:
    session = over(fresh_bank()).session(user=USER)

    with pytest.raises(ValueError, match="no tool calls are awaited"):
        await session.answer_tools([answered()])


async def test_the_last_reply_is_known_after_a_restart() -> None:
    bank = fresh_bank()
    reply = await over(bank).session(user=USER, session_id=SESSION).send("My cat is Miso, ok.")

    again = await over(bank).session(user=USER, session_id=SESSION).last_reply()

    assert again == reply


async def test_an_agent_of_another_framework_answers_with_the_admitted_notes() -> None:
    asked: list[Request] = []

    async def agent(request: Request) -> Completion:
        asked.append(request)
        await anyio.lowlevel.checkpoint()
        return Completion(text="It is Miso.")

    async with runtime() as rt:
        session = rt.session(user="u1")
        await session.send("My cat is called Miso.")
        reply = await session.send("What is my cat called?", answerer=agent)

    [request] = asked
    assert [message.role for message in request.messages] == ["system", "user"]
    assert "My cat is called Miso." in request.messages[-1].content
    assert (reply.text, reply.ledger.live) == ("It is Miso.", reply.decision.spent.live + 1)


async def test_an_agent_that_fails_fails_the_turn_and_not_the_next() -> None:
    async def agent(request: Request) -> Completion:
        raise ZeroDivisionError("no tools left")

    async with runtime() as rt:
        session = rt.session(user="u1")
        with pytest.raises(TurnFailed, match="no tools left"):
            await session.send("My cat is called Miso.", answerer=agent)
        assert (await session.send("Hello!")).text
