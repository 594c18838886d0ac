"""The open service: a runtime, whose keys open it, and the turns that go through it."""

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from weakref import WeakValueDictionary

import anyio
from anyio.abc import TaskGroup

from assay.runtime.facade import Runtime
from assay.runtime.http.gate import Gate
from assay.runtime.http.inspector.reading import users_of
from assay.runtime.http.keys import Keys
from assay.runtime.http.metrics import Metrics
from assay.runtime.http.news import News, Newsroom
from assay.runtime.http.rates import Rates
from assay.runtime.http.sessions import OpenSessions
from assay.runtime.limits import namespace_of, tenant_user_of
from assay.runtime.settings import ServeSettings
from assay.runtime.streams import namespace_in
from assay.stores.records import Namespace, SessionId


class Service:
    """A runtime as its HTTP clients share it; made by :func:`open_service`.

    Attributes:
        runtime: Over the bank that is served.
        model: The name clients call the model.
        settings: Limits.
        gate: Turns under way and waiting.
        rates: Requests a minute.
        metrics: What is counted.
        sessions: Sessions kept open between requests.
        opened: When it was opened.
        tasks: Where turns run, so that they may outlive a request.
        is_stopping: Whether no new work should be sent here.
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        model: str,
        keys: Keys,
        tasks: TaskGroup,
    ) -> None:
        self.runtime = runtime
        self.model = model
        self.settings: ServeSettings = runtime.settings.serve
        self.gate = Gate(turns=self.settings.turns, waiting=self.settings.waiting)
        self.rates = Rates(self.settings.requests_per_minute, runtime.clock)
        self.metrics = Metrics()
        self.sessions = OpenSessions(runtime)
        self.opened = runtime.now()
        self.tasks = tasks
        self.is_stopping = False
        self._keys = keys
        self._newsroom = Newsroom()
        self._stops: set[Callable[[], None]] = set()
        self._locks: WeakValueDictionary[Namespace, anyio.Lock] = WeakValueDictionary()

    def tenant_of(self, key: str) -> str | None:
        """The tenant an API key belongs to; ``None`` if it is no key of this service."""
        return self._keys.tenant_of(key)

    def namespace_of(self, tenant: str, user: str) -> Namespace:
        """Where a user's memory lies.

        Raises:
            ValueError: If no user can be called this.
        """
        return namespace_of(tenant, user)

    async def users(self, tenant: str) -> dict[str, int]:
        """The users of a tenant, with the number of their conversations; the latest first."""
        return await users_of(self.runtime.bank.journal, tenant)

    def news(self, tenant: str) -> AbstractContextManager[News]:
        """What happens to a tenant's users from now on."""
        return self._newsroom.news(tenant)

    def tell(self, tenant: str, namespace: Namespace) -> None:
        """Tell those who watch that something happened to a user."""
        self._newsroom.tell(tenant, namespace)

    def hearing(self) -> AbstractAsyncContextManager[None]:
        """Tell those who watch of what happens in other processes, too, while the block runs."""
        hub = self.runtime.hub
        return nullcontext() if hub is None else hub.hearing(self._hear)

    def _hear(self, stream: SessionId) -> None:
        namespace = namespace_in(stream)
        if namespace is not None:
            self.tell(tenant_user_of(namespace).tenant, namespace)

    @contextmanager
    def under_way(self, stop: Callable[[], None]) -> Generator[None]:
        """A turn runs for the length of the block; ``stop`` ends it."""
        self._stops.add(stop)
        try:
            yield
        finally:
            self._stops.discard(stop)

    def end_turns(self) -> None:
        """End the turns that have no reply yet; their clients are told to try again."""
        for stop in tuple(self._stops):
            stop()

    def in_order(self, namespace: Namespace) -> anyio.Lock:
        """Held by the turn of a user that runs: two at once would not know of one another."""
        lock = self._locks.get(namespace)
        if lock is None:
            lock = self._locks[namespace] = anyio.Lock()
        return lock


@asynccontextmanager
async def open_service(
    runtime: Runtime, *, model: str, keys: Mapping[str, str]
) -> AsyncGenerator[Service]:
    """Serve a runtime; at the end of the block the turns still under way are waited for.

    Args:
        runtime: Open, and open for longer than the block.
        model: The name clients call the model.
        keys: API key to name of the tenant.

    Raises:
        ConfigError: If a key cannot be used.
    """
    known, failure = Keys(keys), None
    async with anyio.create_task_group() as tasks:
        service = Service(runtime, model=model, keys=known, tasks=tasks)
        try:
            async with service.hearing():
                yield service
        except Exception as error:  # noqa: BLE001  # raised below as itself, not in a group
            failure = error
        finally:
            service.is_stopping = True
    if failure is not None:
        raise failure
