"""A user is erased while a turn or a recall of theirs is under way: nothing of it stays behind."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from assay.errors import ErasedInput, RecordNotFound
from assay.guards.protocols import Completion, DeltaSink, Request
from assay.runtime.conversation import Conversation
from assay.runtime.facade import Runtime
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.session import Session
from assay.stores.protocols import Bank

from .rooms import SESSION, USER, fresh_bank, journal_of, over, runtime

LAST = 60
"""Rounds of the loop that a turn takes, and more."""


class ErasingModel(ScriptedModel):
    """Before its answer of a given number, something happens."""

    def __init__(self) -> None:
        super().__init__()
        self.left = -1
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        completion = await super().complete(request, sink=sink)
        self.left -= 1
        if self.left == 0 and self.meanwhile is not None:
            await self.meanwhile()
        return completion


async def left_in(bank: Bank) -> tuple[int, int, int]:
    """Records, archived turns and cached answers of the user."""
    records = (await bank.store.changes(USER, after=0)).records
    answers = [row async for row in bank.cache.rows(USER)]
    return len(records), len(await bank.archive.all(USER)), len(answers)


async def said(one: Runtime, message: str, ended: list[bool]) -> None:
    with suppress(ErasedInput):
        await one.session(user=USER, session_id=SESSION).send(message)
    ended.append(True)


async def begun(bank: Bank, model: ErasingModel) -> tuple[Runtime, Session]:
    """A runtime over the bank, and a session of the user that has had a turn."""
    one = over(bank, model=model)
    session = one.session(user=USER, session_id=SESSION)
    await session.send("My cat is called Miso.")
    return one, session


async def test_at_whatever_step_nothing_of_the_turn_is_left() -> None:
    overtaken = 0
    for steps in range(1, LAST):
        bank = fresh_bank()
        one, ended = over(bank), list[bool]()
        await one.session(user=USER, session_id=SESSION).send("My cat is called Miso.")

        async with anyio.create_task_group() as group:
            group.start_soon(said, one, "My dog is Rex.", ended)
            for _ in range(steps):
                await checkpoint()
            overtaken += not ended
            await over(bank).erase_user(USER)

        assert await left_in(bank) == (0, 0, 0), f"erased after {steps} rounds of the loop"
    assert LAST // 4 < overtaken < LAST - 1  # some turns had ended, some not


@pytest.mark.parametrize("number", [1, 2], ids=["the guard's question", "the reply"])
async def test_of_a_bank_on_disk_while_the_model_answers(tmp_path: Path, number: int) -> None:
    model = ErasingModel()
    async with runtime(model=model, bank=tmp_path) as one:
        session = one.session(user=USER, session_id=SESSION)
        await session.send("My cat is called Miso.")
        model.left, model.meanwhile = number, lambda: one.erase_user(USER)

        with pytest.raises(ErasedInput):
            await session.send("What is my cat called?")

        assert await left_in(one.bank) == (0, 0, 0)


async def test_a_turn_cancelled_after_its_user_was_erased_leaves_nothing() -> None:
    model, bank = ErasingModel(), fresh_bank()
    one, session = await begun(bank, model)

    async def erase_and_hang() -> None:
        await one.erase_user(USER)
        scope.cancel()

    model.left, model.meanwhile = 1, erase_and_hang
    with anyio.CancelScope() as scope:
        await session.send("What is my cat called?")

    assert scope.cancelled_caught
    assert await left_in(bank) == (0, 0, 0)


async def test_who_comes_back_meanwhile_loses_nothing() -> None:
    model, bank = ErasingModel(), fresh_bank()
    one, session = await begun(bank, model)

    async def erase_and_come_back() -> None:
        await one.erase_user(USER)
        await one.session(user=USER, session_id="s2").send("My dog is called Rex.")

    model.left, model.meanwhile = 1, erase_and_come_back
    with pytest.raises(ErasedInput):
        await session.send("What is my cat called?")

    assert [record.text for record in await one.memories(USER)] == ["My dog is called Rex."]
    assert {turn.session for turn in await bank.archive.all(USER)} == {"s2"}
    rows = [row async for row in bank.cache.rows(USER)]
    assert not any(b"Miso" in row.request + row.value for row in rows)


async def test_a_recall_whose_candidates_are_erased_keeps_no_answer() -> None:
    model, bank = ErasingModel(), fresh_bank()
    one, _ = await begun(bank, model)
    model.left, model.meanwhile = 1, lambda: one.erase_user(USER)

    with pytest.raises(RecordNotFound):
        await one.recall(USER, "What is my cat called?")

    assert await left_in(bank) == (0, 0, 0)


@pytest.mark.parametrize("number", [1, 2], ids=["the guard's question", "the reply"])
async def test_a_record_forgotten_while_a_turn_shows_it_is_in_nothing_that_stays(
    tmp_path: Path, number: int
) -> None:
    model = ErasingModel()
    async with runtime(model=model, bank=tmp_path) as one:
        session = one.session(user=USER, session_id=SESSION)
        await session.send("My cat is called Miso.")
        await session.send("My dog is called Rex.")
        cat = next(r.id for r in await one.memories(USER) if "Miso" in r.text)
        model.left, model.meanwhile = number, lambda: one.forget(USER, cat)

        await session.send("What is my cat called?")

        turns = await one.bank.archive.all(USER)
        rows = [row async for row in one.bank.cache.rows(USER)]
        assert "Miso" not in str(turns)
        assert not any(b"Miso" in row.request + row.value for row in rows)
        assert "Miso" not in str(await journal_of(one.bank))
        assert [record.text for record in await one.memories(USER)] == ["My dog is called Rex."]
        assert "My dog is called Rex." in [turn.text for turn in turns]
        assert (await session.send("What is my dog called?")).text == "My dog is called Rex."


async def test_a_question_sent_again_keeps_nothing_of_a_record_forgotten_meanwhile() -> None:
    model, bank = ErasingModel(), fresh_bank()
    one, session = await begun(bank, model)
    [cat] = [record.id for record in await one.memories(USER)]
    model.left, model.meanwhile = 2, lambda: one.forget(USER, cat)

    await session.send("What is my cat called?", conversation=Conversation(is_repeated=True))

    rows = [row async for row in bank.cache.rows(USER)]
    assert not any(b"Miso" in row.request + row.value for row in rows)
    assert "Miso" not in str(await journal_of(bank))
