"""Questions of guards that any worker answers: the same answers, paid for as if asked here."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from tests.runtime.crashing import MESSAGES
from tests.runtime.distributed.test_turns import process, shared_bank
from tests.runtime.leavings import left_behind
from tests.runtime.rooms import SESSION, USER, fresh_bank, over

from assay.errors import ModelRefused, ModelUnavailable
from assay.guards.calls import call_under_way, under_way
from assay.guards.protocols import (
    ChatModel,
    Completion,
    DeltaSink,
    LikelihoodModel,
    Message,
    Parameters,
    Request,
)
from assay.runtime.distributed.local_queue import LocalQueue
from assay.runtime.distributed.queued_model import QueuedModel
from assay.runtime.distributed.worker import Worker
from assay.runtime.equipment import new_name
from assay.runtime.models.scripted import ScriptedModel

EVER = 30.0


class Retried(ScriptedModel):
    """Sends every call three times, and is a recording."""

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        call_under_way().try_again()
        call_under_way().try_again()
        call_under_way().recorded()
        return await super().complete(request, sink=sink)


class Meeting:
    """Two workers that wait for each other."""

    def __init__(self) -> None:
        self.came = 0
        self._both = anyio.Event()

    async def join(self) -> None:
        self.came += 1
        if self.came == 2:
            self._both.set()
        await self._both.wait()


class Together(ScriptedModel):
    """Answers only once both workers are asked."""

    def __init__(self, meeting: Meeting) -> None:
        super().__init__()
        self._meeting = meeting

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        await self._meeting.join()
        return await super().complete(request, sink=sink)


class Likely(ScriptedModel):
    async def log_likelihood(self, request: Request, answer: str) -> float:
        return -float(len(answer))


class Paying:
    """Counts what the caller is told of its call."""

    def __init__(self) -> None:
        self.again = 0
        self.is_recorded = False

    def try_again(self) -> bool:
        self.again += 1
        return True

    def recorded(self) -> None:
        self.is_recorded = True


def asked(text: str = "Where is Miso?") -> Request:
    return Request(
        model="scripted",
        messages=(Message(role="user", content=text),),
        parameters=Parameters(),
    )


@asynccontextmanager
async def answering(
    *models: ScriptedModel, likelihood: LikelihoodModel | None = None
) -> AsyncGenerator[LocalQueue]:
    """One worker for each model."""
    queue = LocalQueue()
    async with anyio.create_task_group() as group:
        for model in models:
            worker = Worker(over(fresh_bank(), model=model), model, likelihood=likelihood)
            group.start_soon(evaluate, worker, queue)
        yield queue
        group.cancel_scope.cancel()


async def evaluate(worker: Worker, queue: LocalQueue) -> None:
    await worker.run(queue, ["evaluation"], concurrency=1)


def queued(
    queue: LocalQueue, model: ChatModel | None = None, *, seconds: float = EVER
) -> QueuedModel:
    return QueuedModel(
        model or ScriptedModel(), queue, namespace=USER, new_id=new_name, seconds=seconds
    )


async def test_a_question_is_answered_as_the_model_here_would() -> None:
    pieces: list[str] = []
    here = await ScriptedModel().complete(asked())

    async with answering(ScriptedModel()) as queue:
        there = await queued(queue).complete(asked(), sink=pieces.append)

    assert there == here
    assert "".join(pieces) == here.text


async def test_a_batch_is_spread_over_the_workers() -> None:
    meeting = Meeting()

    async with answering(Together(meeting), Together(meeting)) as queue:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                for text in ("one?", "two?"):
                    group.start_soon(queued(queue).complete, asked(text))

    assert meeting.came == 2


async def test_attempts_made_there_are_paid_for_here() -> None:
    paying = Paying()

    async with answering(Retried()) as queue:
        with under_way(paying):
            await queued(queue).complete(asked())

    assert (paying.again, paying.is_recorded) == (2, True)


async def test_what_the_model_refuses_there_is_refused_here() -> None:
    def script(request: Request) -> str:
        raise ModelRefused("no")

    async with answering(ScriptedModel(script)) as queue:
        with pytest.raises(ModelRefused, match="no"):
            await queued(queue).complete(asked())


async def test_a_worker_with_another_model_does_not_answer() -> None:
    async with answering(ScriptedModel(identity="another")) as queue:
        with pytest.raises(ModelUnavailable, match="no worker"):
            await queued(queue, seconds=0.1).complete(asked())


async def test_without_a_worker_the_model_is_unavailable() -> None:
    with pytest.raises(ModelUnavailable, match="no worker"):
        await queued(LocalQueue(), seconds=0.05).complete(asked())


async def test_how_likely_an_answer_is_can_be_asked_too() -> None:
    model = Likely()

    async with answering(model, likelihood=model) as queue:
        assert await queued(queue, model).log_likelihood(asked(), "Porto") == -5.0


async def test_a_model_that_cannot_tell_likelihoods_refuses() -> None:
    async with answering(ScriptedModel()) as queue:
        with pytest.raises(ModelRefused, match="cannot tell how likely"):
            await queued(queue).log_likelihood(asked(), "Porto")


async def test_a_turn_whose_experiments_are_asked_elsewhere_decides_the_same() -> None:
    alone, bank, model = fresh_bank(), shared_bank(), ScriptedModel()
    sole = over(alone).session(user=USER, session_id=SESSION)
    expected = [await sole.send(text) for text in MESSAGES]

    async with answering(model) as queue:
        session = process(bank, "here", evaluators=lambda _: queued(queue)).session(
            user=USER, session_id=SESSION
        )
        replies = [await session.send(text) for text in MESSAGES]

    assert [reply.text for reply in replies] == [reply.text for reply in expected]
    assert await left_behind(bank) == await left_behind(alone)
    assert len(model.asked) == 1
    assert [row.key async for row in bank.cache.rows(USER)] == [
        row.key async for row in alone.cache.rows(USER)
    ]
