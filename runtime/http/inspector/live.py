"""News over server-sent events: that something happened to a user, never what."""

from collections.abc import AsyncGenerator

from sse_starlette import EventSourceResponse, ServerSentEvent

from assay.runtime.http.inspector.desk import Desk
from assay.stores.records import Namespace

PING_SECONDS = 20
"""A line now and then, so that proxies keep the stream open."""


def news_response(desk: Desk, tenant: str, namespace: Namespace | None) -> EventSourceResponse:
    """A stream that says when to look again; the page fetches itself then.

    Args:
        desk: Where the news come from.
        tenant: Whose.
        namespace: Of one user only; ``None``: of all of the tenant.
    """
    events = news_events(desk, tenant, namespace)
    return EventSourceResponse(events, ping=PING_SECONDS, headers={"Cache-Control": "no-store"})


async def news_events(
    desk: Desk, tenant: str, namespace: Namespace | None
) -> AsyncGenerator[ServerSentEvent]:
    """One event for each time something happened; endless."""
    with desk.news(tenant) as news:
        async for happened in news:
            if namespace in {None, happened}:
                yield ServerSentEvent(event="news", data="turn")
