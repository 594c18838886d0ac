"""Two services over one bank: each knows what was said through the other."""

import pytest
from tests.runtime.rooms import USER, fresh_bank, over

from assay.errors import BusError, JobFailed
from assay.runtime.clock import StoppedClock
from assay.runtime.conversation import Conversation
from assay.runtime.facade import Runtime
from assay.runtime.http.errors import api_error
from assay.runtime.http.sessions import OpenSessions
from assay.stores.memory_leases import InMemoryLeases

TEXT = "My cat is called Miso."


def two_runtimes() -> tuple[Runtime, Runtime]:
    bank = fresh_bank()._replace(leases=InMemoryLeases(StoppedClock()))
    return over(bank), over(bank)


async def test_a_message_that_came_through_another_service_is_known_again() -> None:
    here, there = two_runtimes()
    sessions = OpenSessions(here)
    before = await sessions.open(USER, "s1")
    unknown = before.is_repeated(TEXT, times=1, at=here.now())

    await there.session(user=USER, session_id="s1").send(TEXT)

    opened = await sessions.open(USER, "s1")
    assert opened is before
    assert (unknown, opened.is_repeated(TEXT, times=1, at=here.now())) == (False, True)
    assert not opened.is_repeated(TEXT, times=2, at=here.now())


async def test_a_message_taken_here_counts_once() -> None:
    here, _ = two_runtimes()
    sessions = OpenSessions(here)
    opened = await sessions.open(USER, "s1")

    await opened.session.send(TEXT)
    sessions.took(opened, TEXT, here.now())

    again = await sessions.open(USER, "s1")
    assert not again.is_repeated(TEXT, times=2, at=here.now())


async def test_a_message_that_left_nothing_behind_does_not_count() -> None:
    """A repeated one is answered and not remembered: said again, it is the second one."""
    here, there = two_runtimes()
    session = there.session(user=USER, session_id="s1")
    await session.send(TEXT)
    await session.send(TEXT, conversation=Conversation(is_repeated=True))

    opened = await OpenSessions(here).open(USER, "s1")

    assert not opened.is_repeated(TEXT, times=2, at=here.now())


@pytest.mark.parametrize(
    "error", [BusError("no worker did it"), JobFailed("tried 5 times", kind="StoreError")]
)
def test_a_client_is_told_to_come_again_when_no_worker_took_its_turn(error: BusError) -> None:
    told = api_error(error)

    assert (told.status, told.code, told.retry_after) == (503, "no_worker", 5)
    assert str(error) not in str(told)
