"""Two things at once, with plain errors."""

import anyio
import pytest

from assay.errors import StoreClosed
from assay.stores.concurrent import both


async def one() -> int:
    return 1


async def two() -> str:
    return "two"


async def test_both_results_come_back_in_order() -> None:
    assert await both(one, two) == (1, "two")


@pytest.mark.parametrize("fails_first", [True, False])
async def test_a_failure_cancels_the_other_and_comes_out_bare(*, fails_first: bool) -> None:
    stopped: list[bool] = []

    async def waits() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append(True)

    async def fails() -> None:
        await anyio.wait_all_tasks_blocked()
        raise StoreClosed("closed")

    pair = (fails, waits) if fails_first else (waits, fails)
    with pytest.raises(StoreClosed, match="closed"):
        await both(*pair)

    assert stopped == [True]
