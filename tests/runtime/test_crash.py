"""A turn that was interrupted is finished: same decision, no write lost or doubled."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from assay.runtime.clock import StoppedClock
from assay.runtime.events import encode
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.streams import stream_of
from assay.stores.bank import open_bank
from assay.stores.embeddings import HashingEmbedder
from assay.stores.memory import InMemoryJournal
from assay.stores.protocols import Bank
from assay.stores.records import Origin

from .crashing import EVENTS, MESSAGES, CrashingJournal, Killed
from .leavings import left_behind
from .rooms import SESSION, USER, fresh_bank, over
from .support import NOW

TOLD = Origin(writer="user", channel="import:test")
ROOT = Path(__file__).parents[2]


async def talk(bank: Bank, messages: tuple[str, ...] = MESSAGES) -> None:
    session = over(bank).session(user=USER, session_id=SESSION)
    for message in messages:
        await session.send(message)


async def go_on(bank: Bank) -> None:
    """Open the session again and say what has not been said yet."""
    session = over(bank).session(user=USER, session_id=SESSION)
    await session.resume()
    said = sum(1 for turn in await bank.archive.all(USER) if turn.speaker == "user")
    for message in MESSAGES[said:]:
        await session.send(message)


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(EVENTS))
async def test_a_turn_stopped_at_any_event_is_finished_as_if_it_had_not(
    at: int, *, written: bool
) -> None:
    whole, bank = fresh_bank(), fresh_bank()
    await talk(whole)
    broken = bank._replace(journal=CrashingJournal(bank.journal, at, written=written))

    with pytest.raises((Killed, BaseExceptionGroup)):
        await talk(broken)
    await go_on(bank)

    assert await left_behind(bank) == await left_behind(whole)


@pytest.mark.parametrize("kept", range(5, EVENTS + 1))
async def test_a_journal_cut_anywhere_leads_to_the_same_turn(kept: int) -> None:
    """The question's turn; all it has written is there already, as after the worst of crashes."""
    whole = fresh_bank()
    await talk(whole)
    before = await left_behind(whole)
    journal = InMemoryJournal()
    entries = await whole.journal.read(stream_of(USER, SESSION))
    await journal.append(stream_of(USER, SESSION), entries[:kept])
    cut = whole._replace(journal=journal)

    await go_on(cut)
    session = over(cut).session(user=USER, session_id=SESSION)
    await session.resume()

    events, records, turns = await left_behind(cut)
    assert (records, turns) == before[1:]
    assert events == (before[0] if kept > 5 else before[0][:5])


async def test_the_next_message_finishes_an_interrupted_turn_first() -> None:
    whole, bank = fresh_bank(), fresh_bank()
    await talk(whole)
    broken = bank._replace(journal=CrashingJournal(bank.journal, 2, written=True))
    with pytest.raises((Killed, BaseExceptionGroup)):
        await talk(broken)

    await over(bank).session(user=USER, session_id=SESSION).send(MESSAGES[1])

    assert await left_behind(bank) == await left_behind(whole)


async def test_entries_delivered_twice_change_nothing() -> None:
    bank = fresh_bank()
    await talk(bank)
    before = await left_behind(bank)
    entries = await bank.journal.read(stream_of(USER, SESSION))

    for _ in range(3):
        await bank.journal.append(stream_of(USER, SESSION), entries)

    assert await left_behind(bank) == before


async def test_the_journal_of_a_turn_is_the_same_bytes_every_time() -> None:
    first, second = fresh_bank(), fresh_bank()
    await talk(first)
    await talk(second)

    one, other = await left_behind(first), await left_behind(second)

    assert [encode(event) for event in one[0]] == [encode(event) for event in other[0]]


@pytest.mark.parametrize("written", ["before", "after"])
@pytest.mark.parametrize("at", range(5, EVENTS))
async def test_kill_9_at_any_event_loses_and_doubles_nothing(
    tmp_path: Path, at: int, written: str
) -> None:
    whole = fresh_bank()
    await talk(whole)
    path = tmp_path / "bank"
    command = "from tests.runtime.crashing import main; main()"

    child = subprocess.run(  # noqa: ASYNC221, S603  # nothing else runs in this test
        [sys.executable, "-c", command, str(path), str(at), written],
        cwd=ROOT,
        check=False,
        capture_output=True,
    )
    async with open_bank(path, embedder=HashingEmbedder(), clock=StoppedClock(NOW)) as bank:
        await go_on(bank)
        found = await left_behind(bank)

    assert child.returncode == -signal.SIGKILL, child.stderr
    assert found == await left_behind(whole)


async def test_the_journal_holds_ids_of_records_and_not_their_text() -> None:
    bank = fresh_bank()
    await over(bank).remember(USER, "The safe code is 4411.", origin=TOLD)

    await talk(bank, ("Which safe code do I use?",))

    entries = await bank.journal.read(stream_of(USER, SESSION))
    decided = b"".join(entry.payload for entry in entries if b"guard_decided" in entry.payload)
    assert b"4411" not in decided


async def test_what_was_erased_meanwhile_is_not_shown_by_a_resumed_turn() -> None:
    """Cut between the decision, which admitted the record, and the reply."""
    bank, model = fresh_bank(), ScriptedModel()
    broken = bank._replace(journal=CrashingJournal(bank.journal, 7, written=True))
    with pytest.raises((Killed, BaseExceptionGroup)):
        await talk(broken)
    rt = over(bank, model=model)
    for record in await rt.memories(USER):
        await rt.forget(USER, record.id)

    reply = await rt.session(user=USER, session_id=SESSION).resume()

    assert reply is not None
    assert len(reply.decision.admitted) == 1
    assert reply.text == "I do not know"
    assert not any("Miso" in message.content for message in model.asked[-1].messages)
