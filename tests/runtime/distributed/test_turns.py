"""A session whose turns run in other processes is the session it would be here."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple, TypeAlias

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.crashing import EVENTS, MESSAGES, CrashingJournal
from tests.runtime.leavings import left_behind
from tests.runtime.rooms import (
    SESSION,
    USER,
    WordGuard,
    fresh_bank,
    journal_of,
    over,
    with_settings,
)
from tests.runtime.support import NOW
from tests.runtime.test_floor import Waiting
from tests.runtime.test_session import CALL, answered, weather_report

from assay.errors import (
    AssayError,
    BusError,
    ConflictingWrite,
    ErasedInput,
    JobFailed,
    ModelRefused,
    StoreError,
    TurnError,
    TurnFailed,
    TurnTimeout,
)
from assay.guards.protocols import ChatModel, Completion, Request
from assay.runtime.bus import MakeBus
from assay.runtime.clock import StoppedClock
from assay.runtime.conversation import Conversation, Spoken
from assay.runtime.distributed.local_queue import LocalQueue
from assay.runtime.distributed.wire import Outfit, TurnJob, encode, error_in, failed_with, turn_job
from assay.runtime.distributed.worker import Ended, Worker
from assay.runtime.equipment import Equipment
from assay.runtime.events import AnyEvent, MessageReceived, ReplyProduced, TurnCancelled
from assay.runtime.facade import Runtime
from assay.runtime.http.errors import reason_of
from assay.runtime.jobs import JobQueue
from assay.runtime.models.scripted import ScriptedModel
from assay.runtime.nats.queue import NatsQueue
from assay.runtime.nats.streams import Limits, open_nats
from assay.runtime.reply import Reply
from assay.runtime.requests import AnswerTools, Resume, Send
from assay.runtime.settings import Settings
from assay.stores.embeddings import HashingEmbedder
from assay.stores.memory_leases import InMemoryLeases
from assay.stores.postgres.bank import open_postgres_bank
from assay.stores.protocols import Bank
from assay.stores.records import Namespace, SessionId


def shared_bank() -> Bank:
    return fresh_bank()._replace(leases=InMemoryLeases(StoppedClock()))


def process(  # noqa: PLR0913  # what processes differ in
    bank: Bank,
    owner: str,
    *,
    queue: JobQueue | None = None,
    model: ScriptedModel | None = None,
    settings: Settings | None = None,
    evaluators: Callable[[Namespace], ChatModel] | None = None,
    make_bus: MakeBus | None = None,
) -> Runtime:
    """A runtime as another process would have it; with a queue its turns run at workers."""
    return Runtime(
        Equipment(
            bank=bank,
            model=model or ScriptedModel(),
            guard=WordGuard(),
            settings=settings or Settings(),
            clock=StoppedClock(NOW),
            seed=7,
            new_session=lambda: "new",
            owner=owner,
            jobs=queue,
            evaluators=evaluators,
            make_bus=make_bus,
        )
    )


class Place(NamedTuple):
    """Where processes meet."""

    bank: Bank
    queue: JobQueue


OpenPlace: TypeAlias = Callable[[], AbstractAsyncContextManager[Place]]


@asynccontextmanager
async def in_memory() -> AsyncGenerator[Place]:
    yield Place(shared_bank(), LocalQueue())


@pytest.fixture(params=["memory", "postgres-nats"])
def open_place(request: pytest.FixtureRequest) -> OpenPlace:
    """Opens the place under test; opened inside the test, closed there."""
    if request.param == "memory":
        return in_memory
    database: str = request.getfixturevalue("clean_database")
    bus: str = request.getfixturevalue("nats_url")

    @asynccontextmanager
    async def in_servers() -> AsyncGenerator[Place]:
        opening = open_postgres_bank(database, embedder=HashingEmbedder(), clock=StoppedClock(NOW))
        async with opening as bank, open_nats(bus) as connection:
            yield Place(bank, NatsQueue(connection, limits=Limits(pause=0.02)))

    return in_servers


@asynccontextmanager
async def house(
    open_place: OpenPlace = in_memory,
    *,
    model: ScriptedModel | None = None,
    bank: Bank | None = None,
    settings: Settings | None = None,
) -> AsyncGenerator[tuple[Runtime, Runtime, Bank]]:
    """Two processes that hand turns out, and two that take them, over one bank."""
    async with open_place() as place, anyio.create_task_group() as group:
        shared = bank or place.bank
        for owner in ("worker one", "worker two"):
            at_work = process(shared, owner, model=model, settings=settings)
            group.start_soon(work, Worker(at_work, model or ScriptedModel()), place.queue)
        yield (
            process(shared, "door one", queue=place.queue, settings=settings),
            process(shared, "door two", queue=place.queue, settings=settings),
            shared,
        )
        group.cancel_scope.cancel()


async def work(worker: Worker, queue: JobQueue) -> None:
    await worker.run(queue, ["turn"], concurrency=2)


async def test_a_conversation_through_two_doors_is_the_one_it_would_be_here(
    open_place: OpenPlace,
) -> None:
    alone = fresh_bank()
    sole = over(alone).session(user=USER, session_id=SESSION)
    expected = [await sole.send(text, request=str(n)) for n, text in enumerate(MESSAGES)]

    async with house(open_place) as (one, two, bank):
        doors = [rt.session(user=USER, session_id=SESSION) for rt in (one, two)]
        replies = [
            await door.send(text, request=str(n))
            for n, (door, text) in enumerate(zip(doors, MESSAGES, strict=True))
        ]
        left = await left_behind(bank)

    assert [reply.text for reply in replies] == [reply.text for reply in expected]
    assert left == await left_behind(alone)


async def test_pieces_of_the_reply_reach_whoever_asked(open_place: OpenPlace) -> None:
    pieces: list[str] = []

    async with house(open_place) as (one, _, _bank):
        session = one.session(user=USER, session_id=SESSION)
        await session.send(MESSAGES[0])
        reply = await session.send(MESSAGES[1], sink=pieces.append)

    assert "".join(pieces) == reply.text
    assert len(pieces) > 1


async def test_events_of_the_turn_reach_whoever_watches_it(open_place: OpenPlace) -> None:
    seen: list[AnyEvent] = []

    async with house(open_place) as (one, _, bank):
        session = one.session(user=USER, session_id=SESSION)
        with session.subscribe(seen.append), session.observe(ReplyProduced) as observer:
            await session.send(MESSAGES[0])
            observed = await anext(observer)

        assert seen == await journal_of(bank)
        assert observed == seen[3]


async def test_a_watcher_that_fails_is_told_of_after_the_turn(open_place: OpenPlace) -> None:
    def broken(event: AnyEvent) -> None:
        raise RuntimeError("broken watcher")

    async with house(open_place) as (one, _, _bank):
        session = one.session(user=USER, session_id=SESSION)
        with session.subscribe(broken, MessageReceived), pytest.raises(TurnError, match="broken"):
            await session.send(MESSAGES[0])

        assert await session.last_reply() is not None


async def test_tools_are_called_and_answered_across_processes(open_place: OpenPlace) -> None:
    async with house(open_place, model=ScriptedModel(weather_report)) as (one, two, _):
        asked = await one.session(user=USER, session_id=SESSION).send("Will it rain?")
        other = two.session(user=USER, session_id=SESSION)
        awaited = await other.awaited_calls()

        reply = await other.answer_tools([answered()])

    assert asked.tool_calls == awaited == (CALL,)
    assert reply.text == "It will rain."


async def test_results_nobody_waits_for_are_refused_as_they_are_here(open_place: OpenPlace) -> None:
    async with house(open_place) as (one, _, _bank):
        session = one.session(user=USER, session_id=SESSION)

        with pytest.raises(ValueError, match="no tool calls are awaited"):
            await session.answer_tools([answered()])


async def test_a_turn_that_fails_there_fails_here_with_its_cause(open_place: OpenPlace) -> None:
    def script(request: Request) -> str:
        raise ModelRefused("not today")

    async with house(open_place, model=ScriptedModel(script)) as (one, _, _bank):
        with pytest.raises(TurnFailed, match="not today") as caught:
            await one.session(user=USER, session_id=SESSION).send(MESSAGES[0])

    assert caught.value.kind == "ModelRefused"


async def test_a_turn_that_takes_too_long_there_is_over_here(open_place: OpenPlace) -> None:
    settings = with_settings(turn={"seconds": 0.3})

    async with house(open_place, model=Waiting(), settings=settings) as (one, _, bank):
        with pytest.raises(TurnTimeout, match=r"0\.3 s"):
            await one.session(user=USER, session_id=SESSION).send(MESSAGES[0])
        kinds = [type(event) for event in await journal_of(bank)]

    assert kinds[-1:] in ([], [TurnCancelled])  # on a busy machine it may end before it is written


async def test_without_a_worker_the_turn_is_given_up_and_says_so() -> None:
    settings = with_settings(turn={"seconds": 0.05, "queue_seconds": 0.05})
    lonely = process(shared_bank(), "door", queue=LocalQueue(), settings=settings)

    with pytest.raises(BusError, match="no worker"):
        await lonely.session(user=USER, session_id=SESSION).send(MESSAGES[0])


async def test_a_worker_with_another_model_takes_no_turn(open_place: OpenPlace) -> None:
    settings, told = with_settings(turn={"queue_seconds": 2.0}), list[Ended]()
    differ = "has model another and guard word, it is for model scripted and guard word"
    async with open_place() as (bank, queue), anyio.create_task_group() as group:
        other = process(bank, "worker", model=ScriptedModel(identity="another"))
        group.start_soon(work, Worker(other, other.model, told=told.append), queue)
        door = process(bank, "door", queue=queue, settings=settings)

        with pytest.raises(BusError, match=r"no worker began .* the same --model, --guard") as late:
            await door.session(user=USER, session_id=SESSION).send(MESSAGES[0])

        assert differ in reason_of(late.value)  # what the service logs
        assert await journal_of(bank) == []
        group.cancel_scope.cancel()
    assert differ in told[0].refused


async def test_a_turn_that_one_worker_refuses_is_taken_by_another(open_place: OpenPlace) -> None:
    told, refused, replies = list[Ended](), anyio.Event(), list[Reply]()

    def note(ended: Ended) -> None:
        told.append(ended)
        refused.set()

    async with open_place() as (bank, queue), anyio.create_task_group() as group:
        other = process(bank, "other", model=ScriptedModel(identity="another"))
        group.start_soon(work, Worker(other, other.model, told=note), queue)
        async with anyio.create_task_group() as asking:
            asking.start_soon(ask, process(bank, "door", queue=queue), replies)
            await refused.wait()
            group.start_soon(work, Worker(process(bank, "good"), ScriptedModel()), queue)
        group.cancel_scope.cancel()

    assert len(replies) == 1
    assert {ended.failure for ended in told} == {"NotForThisWorker"}


async def test_a_turn_that_was_begun_may_take_longer_than_one_waits_for_a_worker(
    open_place: OpenPlace,
) -> None:
    model = Waiting()
    settings = with_settings(turn={"seconds": 1.5, "queue_seconds": 1.0})

    async with house(open_place, model=model, settings=settings) as (one, _, _bank):
        with pytest.raises(TurnTimeout, match=r"1\.5 s"):
            await one.session(user=USER, session_id=SESSION).send(MESSAGES[0])


async def test_a_turn_nobody_begins_is_over_when_the_wait_for_a_worker_is() -> None:
    settings = with_settings(turn={"queue_seconds": 0.05})  # and 180 s for the turn
    lonely = process(shared_bank(), "door", queue=LocalQueue(), settings=settings)

    with anyio.fail_after(10), pytest.raises(BusError, match=r"no worker .* within 0\.05 s"):
        await lonely.session(user=USER, session_id=SESSION).send(MESSAGES[0])


async def test_whoever_goes_away_ends_the_turn_there(open_place: OpenPlace) -> None:
    model = Waiting()

    async with house(open_place, model=model) as (one, _, bank):
        async with anyio.create_task_group() as asking:
            asking.start_soon(one.session(user=USER, session_id=SESSION).send, MESSAGES[0])
            await model.is_asked.wait()
            asking.cancel_scope.cancel()

        with anyio.fail_after(10):
            while not isinstance((await journal_of(bank))[-1], TurnCancelled):
                await anyio.wait_all_tasks_blocked()


async def test_who_answers_in_this_process_answers_here() -> None:
    async def answerer(request: Request) -> Completion:
        return Completion(text="from here")

    bank = shared_bank()
    lonely = process(bank, "door", queue=LocalQueue())
    session = lonely.session(user=USER, session_id=SESSION)
    seen: list[AnyEvent] = []

    with session.subscribe(seen.append):
        reply = await session.send(MESSAGES[0], answerer=answerer)

    assert reply.text == "from here"
    assert seen == await journal_of(bank)


async def test_what_the_caller_keeps_of_the_conversation_travels_along(
    open_place: OpenPlace,
) -> None:
    model = ScriptedModel()
    before = Conversation(history=[Spoken("user", "I live in Porto by the sea.")])

    async with house(open_place, model=model) as (one, _, _bank):
        await one.session(user=USER, session_id=SESSION).send("Where?", conversation=before)

    assert "Porto" in str(model.asked[-1])


async def test_a_worker_that_stops_leaves_its_turn_to_another(open_place: OpenPlace) -> None:
    """Let go and cancelled in the middle, as at the end of its patience."""
    slow, replies = Waiting(), list[Reply]()
    async with open_place() as (bank, queue), anyio.create_task_group() as asking:
        stopping = Worker(process(bank, "stopping", model=slow), slow)
        asking.start_soon(ask, process(bank, "door", queue=queue), replies)
        async with anyio.create_task_group() as first:
            first.start_soon(work, stopping, queue)
            await slow.is_asked.wait()
            stopping.let_go()
            first.cancel_scope.cancel()
        async with anyio.create_task_group() as second:
            second.start_soon(work, Worker(process(bank, "other"), ScriptedModel()), queue)
            with anyio.fail_after(10):
                while not replies:
                    await anyio.wait_all_tasks_blocked()
            second.cancel_scope.cancel()

        kinds = [type(event) for event in await journal_of(bank)]
        assert kinds.count(MessageReceived) == 1
        assert TurnCancelled not in kinds


async def ask(door: Runtime, replies: list[Reply]) -> None:
    replies.append(await door.session(user=USER, session_id=SESSION).send(MESSAGES[0]))


@pytest.mark.parametrize("at", range(EVENTS // 2))
async def test_a_job_redelivered_after_a_failed_write_leaves_one_turn(at: int) -> None:
    """The bank cannot be written at one event; the job is tried again."""
    alone, bank = fresh_bank(), shared_bank()
    await over(alone).session(user=USER, session_id=SESSION).send(MESSAGES[0], request="wish")
    broken = bank._replace(journal=CrashingJournal(bank.journal, at, written=True, stop=fail))

    async with house(bank=broken) as (one, _, _bank):
        await one.session(user=USER, session_id=SESSION).send(MESSAGES[0], request="wish")

    assert await left_behind(bank) == await left_behind(alone)


def fail() -> None:
    raise StoreError("the server is down")


async def test_a_turn_that_can_never_be_written_is_put_aside() -> None:
    class Full(CrashingJournal):
        async def append(self, session: SessionId, entries: object) -> None:
            raise StoreError("no space is left")

    bank = shared_bank()
    async with house(bank=bank._replace(journal=Full(bank.journal, 0, written=False))) as (
        one,
        _,
        _b,
    ):
        with pytest.raises(JobFailed, match="no space is left"):
            await one.session(user=USER, session_id=SESSION).send(MESSAGES[0])


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        TurnTimeout("late"),
        TurnFailed("failed", kind="GuardFailed"),
        ErasedInput("gone"),
        ConflictingWrite("taken"),
    ],
)
def test_an_error_arrives_as_what_it_was(error: AssayError | ValueError) -> None:
    again = error_in(failed_with(error))

    assert (type(again), str(again)) == (type(error), str(error))
    assert getattr(again, "kind", "") == getattr(error, "kind", "")


def test_an_error_nobody_knows_here_still_says_what_it_was() -> None:
    class Novel(AssayError):
        pass

    again = error_in(failed_with(Novel("of a newer worker")))

    assert isinstance(again, TurnError)
    assert str(again) == "Novel: of a newer worker"


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
REQUESTS = st.one_of(
    st.builds(
        Send,
        text=TEXTS,
        request=TEXTS,
        conversation=st.none()
        | st.builds(Conversation, history=st.lists(st.builds(Spoken, st.just("user"), TEXTS))),
    ),
    st.builds(AnswerTools, results=st.tuples(st.just(answered())), request=TEXTS),
    st.just(Resume()),
)


@given(namespace=TEXTS, session=TEXTS, request=REQUESTS)
def test_a_job_says_what_was_asked_for(
    namespace: str, session: str, request: Send | AnswerTools | Resume
) -> None:
    job = TurnJob(
        namespace=Namespace(namespace),
        session=SessionId(session),
        request=request,
        outfit=Outfit("scripted", "word"),
    )

    assert turn_job(encode(job)) == job
