"""News over server-sent events: that something happened to a user, never what."""

from collections.abc import AsyncGenerator

import anyio
from sse_starlette import EventSourceResponse, ServerSentEvent

from assay.runtime.http.inspector.desk import Desk, News
from assay.stores.records import Namespace

GRACE_SECONDS = 2.0
"""How long a stream has to end by itself when the service stops."""

PING_SECONDS = 20
"""A line now and then, so that proxies keep the stream open."""


def news_response(desk: Desk, tenant: str, namespace: Namespace | None) -> EventSourceResponse:
    """A stream that says when to look again; the page fetches itself then.

    Args:
        desk: Where the news come from.
        tenant: Whose.
        namespace: Of one user only; ``None``: of all of the tenant.
    """
    stopping = anyio.Event()
    return EventSourceResponse(
        news_events(desk, tenant, namespace, stopping),
        ping=PING_SECONDS,
        headers={"Cache-Control": "no-store"},
        shutdown_event=stopping,
        shutdown_grace_period=GRACE_SECONDS,
    )


async def news_events(
    desk: Desk, tenant: str, namespace: Namespace | None, stopping: anyio.Event
) -> AsyncGenerator[ServerSentEvent]:
    """One event for each time something happened, until the service stops."""
    with desk.news(tenant) as news:
        while (happened := await _next(news, stopping)) is not None:
            if namespace in {None, happened}:
                yield ServerSentEvent(event="news", data="turn")


async def _next(news: News, stopping: anyio.Event) -> Namespace | None:
    """Whose turn went on; ``None`` when the service stops."""
    happened: Namespace | None = None

    async def stop() -> None:
        await stopping.wait()
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(stop)
        happened = await anext(news)
        group.cancel_scope.cancel()
    return happened
