import pytest

from assay.errors import TurnFailed
from assay.runtime.models.scripted import Rule, ScriptedModel
from assay.stores.records import Origin

from .rooms import USER, fresh_bank, over

WEB = Origin(writer="external", channel="web")


async def test_a_past_turn_tells_what_was_said_proposed_decided_answered_and_kept() -> None:
    rt = over(fresh_bank())
    session = rt.session(user=USER, session_id="s1")
    await session.send("My cat is called Miso.")
    reply = await session.send("What is my cat called?")

    first, second = await rt.turns(USER)

    [record] = await rt.memories(USER)
    assert (first.text, first.written) == ("My cat is called Miso.", (record.id,))
    assert [found.record_id for found in second.found] == [record.id]
    assert second.decided is not None
    assert second.decided.decision == reply.decision
    assert second.replies[-1].text == reply.text
    assert second.spent == reply.ledger


async def test_turns_of_one_conversation_only() -> None:
    rt = over(fresh_bank())
    await rt.session(user=USER, session_id="s1").send("One.")
    await rt.session(user=USER, session_id="s2").send("Two.")

    assert [turn.text for turn in await rt.turns(USER, "s2")] == ["Two."]
    assert [turn.text for turn in await rt.turns(USER, "s3")] == []
    assert len(await rt.turns(USER)) == 2


async def test_a_turn_that_failed_tells_why_and_what_it_had_spent() -> None:
    rt = over(fresh_bank(), model=ScriptedModel([Rule(fails="refused")]))
    await rt.remember(USER, "The shop opens at eight.", origin=WEB)

    with pytest.raises(TurnFailed):
        await rt.session(user=USER).send("When does the shop open?")

    [turn] = await rt.turns(USER)
    assert turn.replies == ()
    assert turn.failure is not None
    assert turn.spent.evaluations == 1


async def test_a_session_that_cannot_be_named_is_refused() -> None:
    with pytest.raises(ValueError, match="session id"):
        await over(fresh_bank()).turns(USER, "")
