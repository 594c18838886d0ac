"""A turn may be cancelled anywhere: nothing is left running, half written or stuck."""

import asyncio
import threading

import anyio
import pytest
from anyio.lowlevel import checkpoint

from assay.runtime.session import Session

from .rooms import SESSION, USER, fresh_bank, over


async def cancelled_after(steps: int, session: Session, message: str) -> bool:
    """Whether sending was cancelled before it was done, ``steps`` rounds of the loop in."""
    done = False

    async def send() -> None:
        nonlocal done
        await session.send(message)
        done = True

    async with anyio.create_task_group() as group:
        group.start_soon(send)
        for _ in range(steps):
            await checkpoint()
        group.cancel_scope.cancel()
    return not done


@pytest.mark.parametrize("steps", range(1, 80, 3))
async def test_cancelling_anywhere_leaves_nothing_running_and_nothing_half(steps: int) -> None:
    bank = fresh_bank()
    session = over(bank).session(user=USER, session_id=SESSION)
    await session.send("My cat is called Miso.")
    tasks, threads = len(asyncio.all_tasks()), threading.active_count()

    await cancelled_after(steps, session, "My dog is called Rex.")
    after = len(asyncio.all_tasks()), threading.active_count()
    reply = await session.send("What is my cat called?")

    assert after == (tasks, threads)
    assert reply.text == "My cat is called Miso."
    turns = [turn.speaker for turn in await bank.archive.all(USER)]
    assert turns == ["user", "assistant"] * (len(turns) // 2)
    positions = [turn.position for turn in await bank.archive.recent(USER, SESSION, limit=99)]
    assert positions == list(range(len(turns)))


async def test_the_steps_reach_from_the_first_await_to_the_last() -> None:
    session = over(fresh_bank()).session(user=USER, session_id=SESSION)
    await session.send("My cat is called Miso.")

    early = await cancelled_after(1, session, "My dog is called Rex.")
    late = await cancelled_after(200, session, "My dog is called Rex.")

    assert (early, late) == (True, False)
