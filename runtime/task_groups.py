"""Tasks beside a block, where the block's own error is what its caller expects."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def tasks_beside() -> AsyncGenerator[TaskGroup]:
    """A task group for tasks that do not fail: what the block raises comes out as itself, not in a group.

    The block ends its tasks, also when it fails; the end of this block waits for them.
    """
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        try:
            yield group
        except Exception as error:  # noqa: BLE001  # raised below
            failure = error
    if failure is not None:
        raise failure


async def first_of(one: anyio.Event, other: anyio.Event) -> None:
    """Wait until one of two events is set."""
    async with anyio.create_task_group() as group:

        async def wait_for(event: anyio.Event) -> None:
            await event.wait()
            group.cancel_scope.cancel()

        group.start_soon(wait_for, one)
        group.start_soon(wait_for, other)
