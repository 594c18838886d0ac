"""Two things at once, with plain errors."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

First = TypeVar("First")
Second = TypeVar("Second")


async def both(
    first: Callable[[], Awaitable[First]], second: Callable[[], Awaitable[Second]]
) -> tuple[First, Second]:
    """Run both concurrently; if one fails, the other is cancelled and that error is raised bare."""
    first_results: list[First] = []
    second_results: list[Second] = []

    async def run_second() -> None:
        second_results.append(await second())

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(run_second)
            first_results.append(await first())
    except ExceptionGroup as failures:
        # A caller catches StoreClosed, not a group that holds one.
        raise failures.exceptions[0] from failures.exceptions[0].__cause__
    return first_results[0], second_results[0]
