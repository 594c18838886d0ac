"""Whose turns went on, for those who watch: news wait in a bounded place and never hold a turn up."""

from collections.abc import Generator
from contextlib import contextmanager

import anyio

from assay.stores.records import Namespace

MOST_WAITING = 1024
"""Users with news that nobody fetched yet; the oldest is dropped."""


class News:
    """News of one tenant for one who watches; iterate to receive, one user at a time.

    What happened to a user several times before it was fetched is told once.
    """

    def __init__(self) -> None:
        self._waiting: dict[Namespace, None] = {}
        self._arrived = anyio.Event()

    def offer(self, namespace: Namespace) -> None:
        """Tell that something happened to a user; never waits."""
        self._waiting.setdefault(namespace)
        if len(self._waiting) > MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
        self._arrived.set()

    def __aiter__(self) -> "News":
        return self

    async def __anext__(self) -> Namespace:
        while not self._waiting:
            self._arrived = anyio.Event()
            await self._arrived.wait()
        namespace = next(iter(self._waiting))
        del self._waiting[namespace]
        return namespace


class Newsroom:
    """Who watches which tenant."""

    def __init__(self) -> None:
        self._watching: dict[str, list[News]] = {}

    @contextmanager
    def news(self, tenant: str) -> Generator[News]:
        """What happens to a tenant's users from now on."""
        news = News()
        self._watching.setdefault(tenant, []).append(news)
        try:
            yield news
        finally:
            watching = self._watching[tenant]
            watching.remove(news)
            if not watching:
                del self._watching[tenant]

    def tell(self, tenant: str, namespace: Namespace) -> None:
        """Something happened to a user of a tenant."""
        for news in self._watching.get(tenant, ()):
            news.offer(namespace)
