"""What the inspector needs of the service it belongs to."""

from contextlib import AbstractContextManager
from typing import Protocol

from assay.runtime.facade import Runtime
from assay.stores.records import Namespace


class News(Protocol):
    """Whose turns went on, as they do."""

    def __aiter__(self) -> "News": ...

    async def __anext__(self) -> Namespace: ...


class Desk(Protocol):
    """The open service, as the inspector sees it."""

    @property
    def runtime(self) -> Runtime:
        """Over the bank that is inspected."""
        ...

    @property
    def model(self) -> str:
        """What clients call the model."""
        ...

    def tenant_of(self, key: str) -> str | None:
        """The tenant an API key belongs to; ``None`` if it is no key of this service."""
        ...

    def namespace_of(self, tenant: str, user: str) -> Namespace:
        """Where a user's memory lies.

        Raises:
            ValueError: If no user can be called this.
        """
        ...

    async def users(self, tenant: str) -> dict[str, int]:
        """The users of a tenant, with the number of their conversations; the latest first."""
        ...

    def news(self, tenant: str) -> AbstractContextManager[News]:
        """What happens to a tenant's users from now on."""
        ...
