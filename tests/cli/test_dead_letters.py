"""``assay worker dead-letters``: a job that failed at every try is seen, tried again, dropped."""

import json
from collections.abc import Callable

import anyio
import pytest

from assay.cli import main
from assay.errors import JobFailed
from assay.runtime.jobs import Job, JobKind
from assay.runtime.nats.queue import NatsQueue
from assay.runtime.nats.streams import Limits, open_nats
from assay.stores.records import Namespace

LIMITS = Limits(pause=0.01)
TURNS: list[JobKind] = ["turn"]
POISON = Job("j1", "turn", "acme", Namespace("acme/ann"), b"My cat is called Miso.")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["worker", "dead-letters", *words])
    printed = capsys.readouterr()
    assert not ended.value.code, printed.err
    return str(printed.out)


@pytest.fixture
def bus(nats_url: str) -> str:
    """A bus with one dead letter."""

    async def failing(job: Job, send: Callable[[bytes], None]) -> bytes:
        raise RuntimeError("no space is left")

    async def poison() -> None:
        async with open_nats(nats_url) as connection, anyio.create_task_group() as group:
            queue = NatsQueue(connection, limits=LIMITS)
            group.start_soon(queue.work, TURNS, failing)
            with pytest.raises(JobFailed):
                await queue.submit(POISON, deadline=30)
            group.cancel_scope.cancel()

    anyio.run(poison)
    return nats_url


def numbers(capsys: pytest.CaptureFixture[str], bus: str) -> list[str]:
    found = json.loads(said(capsys, "list", "--bus", bus, "--json"))
    return [str(letter["number"]) for letter in found["dead_letters"]]


def test_it_is_listed_without_what_the_user_said(
    bus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = said(capsys, "list", "--bus", bus)
    [letter] = json.loads(said(capsys, "list", "--bus", bus, "--json"))["dead_letters"]

    assert "RuntimeError" in listed
    assert "acme" in listed
    assert (letter["job"], letter["failure"], letter["tries"]) == ("j1", "RuntimeError", 5)
    assert "Miso" not in listed + json.dumps(letter)


def test_it_is_shown_with_what_it_failed_with(bus: str, capsys: pytest.CaptureFixture[str]) -> None:
    [number] = numbers(capsys, bus)

    shown = said(capsys, "show", number, "--bus", bus)
    whole = json.loads(said(capsys, "show", number, "--bus", bus, "--payload", "--json"))

    assert "no space is left" in shown
    assert "Miso" not in shown
    assert whole["payload"] == "My cat is called Miso."


def test_it_is_tried_again(bus: str, capsys: pytest.CaptureFixture[str]) -> None:
    [number] = numbers(capsys, bus)
    answers: list[bytes] = []

    async def working(job: Job, send: Callable[[bytes], None]) -> bytes:
        return b"done"

    async def have_it_done() -> None:
        async with open_nats(bus) as connection, anyio.create_task_group() as group:
            queue = NatsQueue(connection, limits=LIMITS)
            group.start_soon(queue.work, TURNS, working)
            answers.append(await queue.submit(POISON, deadline=30))
            group.cancel_scope.cancel()

    told = said(capsys, "replay", number, "--bus", bus)
    anyio.run(have_it_done)

    assert "job j1 waits for a worker again" in told
    assert answers == [b"done"]
    assert numbers(capsys, bus) == []


def test_it_is_dropped(bus: str, capsys: pytest.CaptureFixture[str]) -> None:
    [number] = numbers(capsys, bus)

    assert f"dead letter {number} is dropped" in said(capsys, "drop", number, "--bus", bus)
    assert numbers(capsys, bus) == []


def test_the_bus_of_the_settings_is_meant_where_none_is_named(
    bus: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_SERVE_BUS", bus)

    assert "RuntimeError" in said(capsys, "list")
