import logging

import pytest

from assay.errors import TurnFailed
from assay.runtime.models.scripted import Rule, ScriptedModel
from assay.runtime.observe import COMMAND_FINISHED, TURN_FAILED, TURN_FINISHED, TURN_STARTED

from .rooms import SESSION, USER, fresh_bank, over

CANARY = "canary-4411"


async def test_a_turn_is_logged_by_name_and_without_what_was_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="assay.turns")
    session = over(fresh_bank()).session(user=USER, session_id=SESSION)

    await session.send(f"My code is {CANARY}, remember it.")

    names = [record.getMessage() for record in caplog.records]
    assert names == [TURN_STARTED, *[COMMAND_FINISHED] * 4, TURN_FINISHED]
    assert not any(CANARY in str(record.__dict__) for record in caplog.records)


async def test_a_failed_turn_is_logged_by_its_kind(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="assay.turns")
    model = ScriptedModel([Rule(fails="unavailable")])

    with pytest.raises(TurnFailed):
        await over(fresh_bank(), model=model).session(user=USER).send(f"My code is {CANARY}.")

    failed = [record for record in caplog.records if record.getMessage() == TURN_FAILED]
    assert [record.__dict__["kind"] for record in failed] == ["TurnFailed"]
    assert not any(CANARY in str(record.__dict__) for record in caplog.records)


async def test_nothing_is_printed_unless_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    await over(fresh_bank()).session(user=USER).send("My cat is called Miso.")

    assert capfd.readouterr() == ("", "")
