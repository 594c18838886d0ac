"""Situations other memories got wrong in deciding: stale, late, too long, too many."""

import itertools
import tracemalloc
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import GuardError, TurnFailed
from assay.guards.budget import Limits
from assay.guards.methods import METHODS, guard_named
from assay.guards.protocols import Decision
from assay.runtime.clock import StoppedClock
from assay.runtime.models.counting import require_room
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.wiring import open_runtime
from assay.stores.records import ArchiveTurn, Namespace, Origin, SessionId, TurnId

from ..guards.support import TableModel, case, laboratory  # noqa: TID252
from ..runtime.rooms import SESSION, USER, runtime  # noqa: TID252

CHAT = Origin(writer="user", channel="chat")


def on(day: str) -> datetime:
    return datetime.fromisoformat(day).replace(tzinfo=UTC)


async def decision_on(said: Sequence[tuple[str, str]], question: str) -> dict[str, bool]:
    """Which texts the panel admits, ingested in this order, each said on its day."""
    clock = StoppedClock(on("2026-06-01"))
    async with open_runtime(
        model=ScriptedModel(), guard="panel", embedder="hashing", clock=clock
    ) as rt:
        for number, (day, text) in enumerate(said):
            turn = _turn(number, day, text)
            await rt.bank.archive.append([turn])
            origin = Origin(writer="user", channel="chat", source_turn=turn.id)
            await rt.remember(USER, text, origin=origin, claimed_at=on(day))
        recall = await rt.recall(USER, question)
        texts = {record.id: record.text for record in await rt.memories(USER)}
    return {texts[judged.record_id]: judged.admitted for judged in recall.decision.judgements}


def _turn(number: int, day: str, text: str) -> ArchiveTurn:
    return ArchiveTurn(
        id=TurnId(f"t{number}"),
        namespace=Namespace(USER),
        session=SessionId("s"),
        position=number,
        speaker="user",
        text=text,
        at=on(day),
    )


COFFEE = ("2026-01-01", "I drink coffee.")
TEA = ("2026-03-01", "I stopped coffee, I drink tea now.")


@pytest.mark.parametrize("said", list(itertools.permutations([COFFEE, TEA])))
async def test_o05_the_decision_follows_the_dates(said: Sequence[tuple[str, str]]) -> None:
    admitted = await decision_on(said, "What do I drink now?")

    assert admitted == {COFFEE[1]: False, TEA[1]: True}


async def test_o05_with_the_dates_swapped_the_other_one_is_stale() -> None:
    earlier, later = ("2026-01-01", "I drink tea."), ("2026-03-01", "I drink coffee now, not tea.")

    admitted = await decision_on([later, earlier], "What do I drink now?")

    assert admitted == {earlier[1]: False, later[1]: True}


GREEN = ("2023-09-21", "I drink green tea.")
STARTED = ("2023-09-23", "I started drinking coffee.")
STOPPED = ("2023-09-22", "I stopped drinking green tea.")


@pytest.mark.parametrize("said", list(itertools.permutations([GREEN, STARTED, STOPPED])))
async def test_o14_what_is_learned_late_is_ordered_by_when_it_held(
    said: Sequence[tuple[str, str]],
) -> None:
    admitted = await decision_on(said, "What do I drink now?")

    assert admitted[STARTED[1]]
    assert not admitted[GREEN[1]]


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(st.integers(5, 1500), min_size=1, max_size=8),
    limit=st.integers(900, 4000),
    question=st.integers(10, 600),
)
async def test_o26_a_prompt_fits_or_the_user_is_told(
    sizes: list[int], limit: int, question: int
) -> None:
    model = ScriptedModel(context_tokens=limit)
    async with runtime(model=model, guard="vector") as rt:
        for i, size in enumerate(sizes):
            await rt.remember(USER, f"key {i} " + "x" * size, origin=CHAT)
        session, kind = rt.session(user=USER, session_id=SESSION), ""
        decisions: list[Decision] = []
        try:
            decisions.append((await session.send("key " + "y" * question)).decision)
        except TurnFailed as error:
            kind = error.kind

    for request in model.asked:
        require_room(model, request)
    assert kind in {"", "ContextOverflow"}
    for decision in decisions:
        assert len(decision.judgements) == min(len(sizes), 5)


async def test_o26_what_does_not_fit_is_dropped_visibly_and_the_user_answered() -> None:
    model = ScriptedModel(context_tokens=2200)
    async with runtime(model=model, guard="vector") as rt:
        for text in ("The key hangs here. " + "x" * 900, "A key is iron. " + "y" * 900):
            await rt.remember(USER, text, origin=CHAT)

        reply = await rt.session(user=USER, session_id=SESSION).send("Where does the key hang?")

    dropped = [judged for judged in reply.decision.judgements if not judged.admitted]
    assert len(reply.decision.judgements) == 2
    assert "no room" in dropped[0].reason


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("count", [1, 2, 20, 42])
async def test_o27_a_guard_keeps_its_budget_whatever_the_crowd(method: str, count: int) -> None:
    await _keeps_its_budget(method, count)


async def test_o27_nor_does_a_crowd_of_500_fill_the_memory() -> None:
    tracemalloc.start()
    try:
        for method in ("cmi", "jointcore", "meclear"):
            await _keeps_its_budget(method, 500)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert most < 512 * 1024 * 1024


async def _keeps_its_budget(method: str, count: int) -> None:
    model = TableModel()
    lab = laboratory(model, limits=Limits(calls=64), records=count)
    asked = case("What does Rex like?", *(f"Rex likes thing {i}." for i in range(count)))
    try:
        decision = await guard_named(method).review(asked, lab)
    except GuardError:
        assert model.calls <= 64
        return
    assert model.calls <= 64
    assert len(decision.judgements) == count
