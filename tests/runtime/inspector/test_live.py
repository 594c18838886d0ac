from collections.abc import AsyncGenerator

import anyio
from anyio.lowlevel import checkpoint
from sse_starlette import ServerSentEvent

from assay.runtime.http.inspector.live import news_events
from assay.runtime.limits import namespace_of

from .desks import open_desk

ANN = namespace_of("clinic", "ann")
BEN = namespace_of("clinic", "ben")


async def take(events: AsyncGenerator[ServerSentEvent], into: list[bytes]) -> None:
    into.append((await anext(events)).encode())


async def test_a_turn_of_the_user_is_news_others_are_not_and_nothing_is_said_of_it() -> None:
    before: list[bytes] = []
    taken: list[bytes] = []
    async with open_desk() as desk:
        events = news_events(desk, "clinic", ANN, anyio.Event())
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(take, events, taken)
                await anyio.wait_all_tasks_blocked()
                desk.tell("clinic", BEN)
                desk.tell("shop", namespace_of("shop", "ann"))
                await anyio.wait_all_tasks_blocked()
                before = list(taken)
                desk.tell("clinic", ANN)
        await events.aclose()
        await checkpoint()

    assert before == []
    assert taken == [b"event: news\r\ndata: turn\r\n\r\n"]


async def test_the_page_of_all_users_hears_of_each() -> None:
    taken: list[bytes] = []
    async with open_desk() as desk:
        events = news_events(desk, "clinic", None, anyio.Event())
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(take, events, taken)
                await anyio.wait_all_tasks_blocked()
                desk.tell("clinic", BEN)
        await events.aclose()

    assert len(taken) == 1


async def test_a_stream_ends_by_itself_when_the_service_stops() -> None:
    stopping = anyio.Event()
    async with open_desk() as desk:
        events = news_events(desk, "clinic", ANN, stopping)
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(_drained, events)
                await anyio.wait_all_tasks_blocked()
                stopping.set()


async def _drained(events: AsyncGenerator[ServerSentEvent]) -> None:
    assert [event async for event in events] == []
