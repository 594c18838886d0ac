"""What a callback was given, to be waited for."""

from typing import Generic, TypeVar

import anyio

T = TypeVar("T")


class Received(Generic[T]):
    """A callback that keeps what it is called with, in ``items``."""

    def __init__(self) -> None:
        self.items: list[T] = []
        self._came = anyio.Event()

    def __call__(self, item: T) -> None:
        self.items.append(item)
        self._came.set()

    async def next(self, *, within: float = 10.0) -> None:
        """Wait until something has come since the last time.

        Raises:
            TimeoutError: If nothing comes for so many seconds.
        """
        with anyio.fail_after(within):
            await self._came.wait()
        self._came = anyio.Event()
