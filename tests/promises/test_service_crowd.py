"""P17: two thousand sessions in one process: bounded, fair, and a clear no when it is too much."""

import gc
import resource
from collections import Counter

import anyio
import pytest
from tests.runtime.http.served import KEY, OTHER_KEY, PATH, SlowModel, body, served

from .conftest import Promise

STATEMENT = "2,000 sessions on one process"
SECONDS = 0.05

pytestmark = pytest.mark.promise("P17", STATEMENT)


@pytest.mark.timeout(120)
async def test_all_sessions_are_served_within_their_bounds(promise: Promise) -> None:
    count = promise.times(100, 2_000)
    model = SlowModel(seconds=SECONDS)
    statuses: Counter[int] = Counter()
    most_active = most_waiting = 0
    async with served(model=model, guard="vector", turns=64, waiting=2_000) as one:
        gate = one.service.gate
        gc.collect()
        before = _most_memory()
        began = anyio.current_time()
        async with one.client() as client, anyio.create_task_group() as group:
            clients = anyio.CapacityLimiter(128)

            async def talk(number: int) -> None:
                nonlocal most_active, most_waiting
                async with clients:
                    answer = await client.post(
                        PATH, json=body(f"My number is {number}.", user=f"u{number}")
                    )
                statuses[answer.status_code] += 1
                most_active = max(most_active, gate.active)
                most_waiting = max(most_waiting, gate.waiting)

            for number in range(count):
                group.start_soon(talk, number)
        seconds = anyio.current_time() - began
        after = _most_memory()
        open_sessions = len(one.service.sessions)

    kilobytes = (after - before) / count
    assert statuses == {200: count}
    assert most_active <= 64
    assert open_sessions <= 256
    assert kilobytes < 256
    promise.kept(
        f"{count:,} sessions in {seconds:.1f} s (model {SECONDS * 1000:.0f} ms), at most "
        f"{most_active} turns at once, {kilobytes:.0f} KiB of memory more per session at its peak, client and bank included"
    )


def _most_memory() -> int:
    """The most memory this process ever had, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


async def test_a_flood_of_one_tenant_does_not_hold_up_another(promise: Promise) -> None:
    flood = promise.times(60, 400)
    done: list[str] = []
    async with (
        served(model=SlowModel(seconds=SECONDS), guard="vector", turns=4, waiting=1_000) as one,
        one.client(KEY) as loud,
        one.client(OTHER_KEY) as quiet,
        anyio.create_task_group() as group,
    ):

        async def shout(number: int) -> None:
            answer = await loud.post(PATH, json=body("Hello", user=f"u{number}"))
            assert answer.status_code == 200
            done.append("loud")

        for number in range(flood):
            group.start_soon(shout, number)
        with one.service.news("acme") as news:
            while one.service.gate.waiting < flood // 2:
                await anext(news)
        done.append("the flood is there")
        for number in range(5):
            await quiet.post(PATH, json=body("Hello", user=f"q{number}"))
            done.append("quiet")

    last = len(done) - done[::-1].index("quiet")
    overtaken = done[done.index("the flood is there") : last].count("loud")
    assert overtaken <= 5 * 12
    assert len(done) == flood + 1 + 5
    promise.kept(f"5 turns of a quiet tenant overtook a flood of {flood}: {overtaken} went before")


async def test_overload_is_a_clear_no_with_a_time_to_come_again(promise: Promise) -> None:
    count = promise.times(40, 300)
    answers: list[tuple[int, str]] = []
    async with (
        served(model=SlowModel(seconds=SECONDS), guard="vector", turns=2, waiting=8) as one,
        one.client() as client,
        anyio.create_task_group() as group,
    ):

        async def talk(number: int) -> None:
            answer = await client.post(PATH, json=body("Hello", user=f"u{number}"))
            answers.append((answer.status_code, answer.headers.get("retry-after", "")))

        for number in range(count):
            group.start_soon(talk, number)

    statuses = Counter(status for status, _ in answers)
    assert set(statuses) == {200, 429}
    assert all(retry for status, retry in answers if status == 429)
    promise.kept(f"{count} at once, 2 + 8 places: {statuses[200]} served, {statuses[429]} told 429")
