"""A request that comes again, after a crash or a lost answer, begins no second turn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import TurnFailed
from assay.guards.protocols import Completion, Request
from assay.runtime.commands import ToolResult
from assay.runtime.conversation import Conversation, Spoken
from assay.runtime.events import MessageReceived, encode
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.reply import Reply
from assay.runtime.session import Session
from assay.stores.protocols import Bank

from .crashing import EVENTS, MESSAGES, CrashingJournal, Killed
from .leavings import left_behind
from .rooms import SESSION, USER, fresh_bank, journal_of, over
from .test_session import CALL, answered, weather_report


def session_of(bank: Bank, model: ScriptedModel | None = None) -> Session:
    return over(bank, model=model).session(user=USER, session_id=SESSION)


async def deliver(bank: Bank, number: int) -> Reply:
    """One message of the conversation under its name, in a process of its own."""
    return await session_of(bank).send(MESSAGES[number], request=f"wish {number}")


async def deliver_all(bank: Bank) -> list[Reply]:
    session = session_of(bank)
    return [
        await session.send(message, request=f"wish {number}")
        for number, message in enumerate(MESSAGES)
    ]


async def whole_conversation() -> tuple[Bank, list[Reply]]:
    bank = fresh_bank()
    return bank, await deliver_all(bank)


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(EVENTS))
async def test_requests_sent_again_after_a_crash_leave_one_turn_each(
    at: int, *, written: bool
) -> None:
    whole, _ = await whole_conversation()
    bank = fresh_bank()
    broken = bank._replace(journal=CrashingJournal(bank.journal, at, written=written))

    with pytest.raises((Killed, BaseExceptionGroup)):
        await deliver_all(broken)
    await deliver_all(bank)

    assert await left_behind(bank) == await left_behind(whole)


@given(
    crashes=st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=4),
    repeated=st.lists(st.integers(0, 1), max_size=4),
)
async def test_however_often_requests_come_there_is_one_turn_each(
    crashes: list[tuple[int, bool]], repeated: list[int]
) -> None:
    whole, replies = await whole_conversation()
    bank, left = fresh_bank(), list(crashes)
    given_back: dict[int, Reply] = {}

    for number in (0, 1):
        while left and await _crashes(bank, number, *left.pop()):
            pass
        given_back[number] = await deliver(bank, number)
    for number in repeated:
        assert await deliver(bank, number) == given_back[number]

    assert await left_behind(bank) == await left_behind(whole)
    assert [reply.text for reply in given_back.values()] == [reply.text for reply in replies]


async def _crashes(bank: Bank, number: int, at: int, written: bool) -> bool:  # noqa: FBT001
    broken = bank._replace(journal=CrashingJournal(bank.journal, at, written=written))
    try:
        await deliver(broken, number)
    except (Killed, BaseExceptionGroup):
        return True
    return False


async def test_an_old_request_is_answered_as_it_was_then() -> None:
    bank, replies = await whole_conversation()

    again = await deliver(bank, 0)

    assert again == replies[0]
    assert len(await journal_of(bank)) == EVENTS


async def test_tool_results_that_come_again_are_answered_once() -> None:
    bank, model = fresh_bank(), ScriptedModel(weather_report)
    session = session_of(bank, model)
    await session.send("Will it rain?", request="asked")
    reply = await session.answer_tools([answered()], request="told")

    again = await session_of(bank, model).answer_tools([answered()], request="told")

    assert again == reply
    assert await session_of(bank, model).awaited_calls() == ()


async def test_the_call_that_was_asked_for_is_asked_for_again_and_no_message_taken() -> None:
    bank, model = fresh_bank(), ScriptedModel(weather_report)
    await session_of(bank, model).send("Will it rain?", request="asked")
    await session_of(bank, model).answer_tools(
        [ToolResult(call=CALL, output="rain")], request="told"
    )

    again = await session_of(bank, model).send("Will it rain?", request="asked")

    assert again.tool_calls == (CALL,)


async def test_a_turn_that_failed_fails_again_by_its_name_and_anew_without() -> None:
    bank = fresh_bank()
    answers = iter([True, False])

    def script(request: Request) -> Completion | str:
        if next(answers, False):
            raise RuntimeError("once")
        return "Fine."

    session = session_of(bank, ScriptedModel(script))
    with pytest.raises(TurnFailed):
        await session.send("Hello, how are you?", request="wish")

    with pytest.raises(TurnFailed, match="once"):
        await session.send("Hello, how are you?", request="wish")

    assert (await session.send("Hello, how are you?", request="another wish")).text == "Fine."


async def test_a_request_finished_after_a_crash_is_shown_what_came_before() -> None:
    """Redelivered, it brings its conversation along, which the journal does not keep."""
    bank, model = fresh_bank(), ScriptedModel()
    broken = bank._replace(journal=CrashingJournal(bank.journal, 2, written=True))
    before = Conversation(history=[Spoken("user", "I live in Porto by the sea.")])
    with pytest.raises((Killed, BaseExceptionGroup)):
        await session_of(broken).send("Where do I live?", conversation=before, request="wish")

    await session_of(bank, model).send("Where do I live?", conversation=before, request="wish")

    assert "Porto" in str(model.asked[-1])


async def test_a_message_without_a_name_is_another_message() -> None:
    bank = fresh_bank()

    await session_of(bank).send("Hello, how are you?")
    await session_of(bank).send("Hello, how are you?")

    assert sum(isinstance(event, MessageReceived) for event in await journal_of(bank)) == 2


async def test_the_journal_of_a_message_without_a_name_is_what_it_always_was() -> None:
    bank = fresh_bank()

    await session_of(bank).send("Hello, how are you?")

    [received, *_] = await journal_of(bank)
    assert b"request" not in encode(received)
