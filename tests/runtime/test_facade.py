import pytest

from assay.errors import ConfigError, RecordNotFound
from assay.runtime.models.scripted import Rule, ScriptedModel
from assay.runtime.standing import Standing
from assay.runtime.wiring import open_runtime
from assay.stores.records import Origin

from .rooms import SESSION, USER, fresh_bank, over, runtime

IMPORTED = Origin(writer="external", channel="web")


async def test_a_correction_supersedes_and_keeps_the_history() -> None:
    rt = over(fresh_bank())
    await rt.session(user=USER).send("My cat is called Miso.")
    [old] = await rt.memories(USER)

    new = await rt.correct(USER, old.id, "My cat is called Mochi.")

    assert await rt.memories(USER) == [new]
    assert new.supersedes == old.id
    assert await rt.bank.store.get(USER, [old.id]) == [old]


async def test_a_correction_is_what_the_next_reply_stands_on() -> None:
    rt = over(fresh_bank())
    session = rt.session(user=USER)
    await session.send("My cat is called Miso.")
    [old] = await rt.memories(USER)
    await rt.correct(USER, old.id, "My cat is called Mochi.")

    reply = await session.send("What is my cat called?")

    assert reply.text == "My cat is called Mochi."


async def test_a_correction_is_evidence_and_what_it_corrects_is_not() -> None:
    bank = fresh_bank()
    rt = over(bank)
    await rt.session(user=USER).send("My cat is called Miso.")
    [old] = await rt.memories(USER)

    standing = Standing(bank, USER)

    await rt.correct(USER, old.id, "My cat is called Mochi.")
    await standing.recent(SESSION, ())

    [turns] = await standing.evidence(["What is my cat called?"], limit=5)
    assert [(turn.speaker, turn.text) for turn in turns] == [("user", "My cat is called Mochi.")]


async def test_a_record_that_was_corrected_is_not_corrected_again() -> None:
    rt = over(fresh_bank())
    await rt.session(user=USER).send("My cat is called Miso.")
    [old] = await rt.memories(USER)
    await rt.correct(USER, old.id, "My cat is called Mochi.")

    with pytest.raises(ValueError, match="does not hold any more"):
        await rt.correct(USER, old.id, "My cat is called Max.")


@pytest.mark.parametrize("text", ["", "a\0b", "x" * 10_000], ids=["empty", "NUL", "long"])
async def test_an_unusable_correction_changes_nothing(text: str) -> None:
    rt = over(fresh_bank())
    await rt.session(user=USER).send("My cat is called Miso.")
    before = await rt.memories(USER)

    with pytest.raises(ValueError, match="record text"):
        await rt.correct(USER, before[0].id, text)

    assert await rt.memories(USER) == before


async def test_what_was_forgotten_is_gone_from_every_place_a_prompt_is_made_of() -> None:
    model = ScriptedModel([Rule(prompt="Miso", reply="Miso it is.")])
    rt = over(fresh_bank(), model=model)
    session = rt.session(user=USER)
    await session.send("My cat is called Miso.")
    await session.send("What is my cat called?")
    [record] = await rt.memories(USER)

    receipt = await rt.forget(USER, record.id)
    reply = await session.send("And what is my cat called now?")

    assert receipt.record_ids == (record.id,)
    assert receipt.cache_rows > 0
    assert reply.text == "I do not know"
    assert not any("Miso" in message.content for message in model.asked[-1].messages)


async def test_forgetting_a_correction_does_not_bring_the_mistake_back() -> None:
    rt = over(fresh_bank())
    await rt.session(user=USER).send("My cat is called Miso.")
    [old] = await rt.memories(USER)
    new = await rt.correct(USER, old.id, "My cat is called Mochi.")

    receipt = await rt.forget(USER, new.id)

    assert set(receipt.record_ids) == {old.id, new.id}
    assert await rt.memories(USER) == []


async def test_nothing_of_another_user_is_forgotten() -> None:
    rt = over(fresh_bank())
    await rt.session(user="ann").send("My cat is called Miso.")
    await rt.session(user="ben").send("My cat is called Miso.")
    [record] = await rt.memories("ann")

    with pytest.raises(RecordNotFound):
        await rt.forget("ben", record.id)

    assert len(await rt.memories("ann")) == 1


async def test_one_statement_of_one_origin_is_one_record() -> None:
    rt = over(fresh_bank())

    first = await rt.remember(USER, "The shop opens at nine.", origin=IMPORTED)
    again = await rt.remember(USER, "The shop opens at nine.", origin=IMPORTED)

    assert first == again
    assert len(await rt.memories(USER)) == 1


async def test_decisions_are_told_with_their_question_and_reply() -> None:
    bank = fresh_bank()
    session = over(bank).session(user=USER, session_id=SESSION)
    await session.send("My cat is called Miso.")
    reply = await session.send("What is my cat called?")

    past = (await over(bank).decisions(USER))[-1]

    assert (past.id, past.session) == (reply.turn_id, SESSION)
    assert (past.question, past.reply) == ("What is my cat called?", reply.text)
    assert past.decision == reply.decision


async def test_decisions_of_others_are_not_told() -> None:
    rt = over(fresh_bank())
    await rt.session(user="a", session_id="b/c").send("My cat is called Miso.")
    await rt.session(user="a/b", session_id="c").send("My dog is called Rex.")

    assert [past.question for past in await rt.decisions("a")] == ["My cat is called Miso."]


async def test_an_unknown_guard_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(ConfigError, match="vector"):
        async with runtime(guard="vectr"):
            pass


async def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="scripted"):
        async with open_runtime(model="scriptd", embedder="hashing", guard="vector"):
            pass


async def test_names_become_a_runtime() -> None:
    async with open_runtime(model="scripted", embedder="hashing", guard="vector") as rt:
        await rt.session(user=USER).send("My cat is called Miso.")

        reply = await rt.session(user=USER).send("What is my cat called?")

    assert reply.text == "My cat is called Miso."
