"""Does the jobs of other processes: takes their turns, asks a model their questions."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import anyio

from assay.errors import (
    AssayError,
    BusError,
    ErasedInput,
    LeaseLost,
    ModelError,
    ModelRefused,
    StoreError,
)
from assay.guards.calls import under_way
from assay.guards.protocols import ChatModel, LikelihoodModel
from assay.runtime.distributed.wire import (
    Answered,
    Begun,
    Declined,
    Delta,
    EvaluationJob,
    Failed,
    Happened,
    Outfit,
    Replied,
    encode,
    evaluation_job,
    failed_with,
    turn_job,
)
from assay.runtime.events import AnyEvent
from assay.runtime.facade import Runtime
from assay.runtime.jobs import Job, JobHandler, JobKind, JobQueue, NotForThisWorker
from assay.runtime.local_turns import LocalTurns
from assay.stores.records import Namespace, SessionId

KEPT = 256
"""Sessions whose state is kept between their turns; another one is read from the journal."""

Send: TypeAlias = Callable[[bytes], None]


class Ended(NamedTuple):
    """A job this process has done with.

    Attributes:
        job: Which.
        seconds: How long it took.
        failure: Class name of what it failed with; empty: it did not.
        refused: Why it was given back for another worker; empty: it was not.
    """

    job: Job
    seconds: float
    failure: str
    refused: str = ""


Told: TypeAlias = Callable[[Ended], None]
"""Is told of each job that has ended; must not block."""


class Worker:
    """Takes turns and answers questions with one runtime.

    Args:
        runtime: Over the bank that all processes share.
        model: Answers evaluations.
        likelihood: The same model, where it can tell how likely a given answer is.
        others: Who does jobs of other kinds than turns and evaluations.
        told: Told of each job that has ended.

    Attributes:
        under_way: Jobs being done now.
    """

    def __init__(
        self,
        runtime: Runtime,
        model: ChatModel,
        *,
        likelihood: LikelihoodModel | None = None,
        others: Mapping[JobKind, JobHandler] | None = None,
        told: Told | None = None,
    ) -> None:
        self.under_way = 0
        self._runtime = runtime
        self._model = model
        self._likelihood = likelihood
        self._others = others or {}
        self._told = told
        self._kept: OrderedDict[tuple[Namespace, SessionId], LocalTurns] = OrderedDict()

    async def run(
        self,
        queue: JobQueue,
        kinds: Sequence[JobKind],
        *,
        concurrency: int,
        stopping: anyio.Event | None = None,
    ) -> None:
        """Do jobs until ``stopping`` is set and those begun are done; cancelled, hand them back.

        Each kind has ``concurrency`` places of its own: a turn waits for its evaluations.

        Raises:
            BusError: If the bus cannot be used any more.
        """
        failure: AssayError | None = None

        async def work(kind: JobKind) -> None:
            nonlocal failure
            try:
                await queue.work([kind], self.do, concurrency=concurrency, stopping=stopping)
            except AssayError as error:
                failure = failure or error
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            for kind in kinds:
                group.start_soon(work, kind)
        if failure is not None:
            raise failure

    def let_go(self) -> None:
        """Before it is cancelled: leave the turns under way to other workers, open as they are."""
        for turns in self._kept.values():
            turns.let_go()

    async def do(self, job: Job, send: Send) -> bytes:
        """Do one job; what it raises is worth another try, here or elsewhere."""
        self.under_way += 1
        began, failure, refused = anyio.current_time(), "cancelled", ""
        try:
            if job.kind in self._others:
                done, failure = await self._others[job.kind](job, send), ""
                return done
            answer = await (self._turn(job, send) if job.kind == "turn" else self._evaluation(job))
            failure = answer.kind if isinstance(answer, Failed) else ""
            return encode(answer)
        except NotForThisWorker as error:
            failure, refused = type(error).__name__, str(error)
            raise
        except Exception as error:
            failure = type(error).__name__
            raise
        finally:
            self.under_way -= 1
            if self._told is not None:
                self._told(Ended(job, anyio.current_time() - began, failure, refused))

    async def _turn(self, job: Job, send: Send) -> Replied | Failed:
        asked = turn_job(job.payload)
        if asked.outfit != self._runtime.outfit:
            reason = _other_outfit(asked.outfit, self._runtime.outfit)
            send(encode(Declined(reason)))
            raise NotForThisWorker(reason)
        send(encode(Begun()))
        turns = self._turns(asked.namespace, asked.session)
        pieces = _Pieces(send)
        try:
            reply = await turns.take(asked.request, sink=pieces.delta, watch=pieces.event)
        except (AssayError, ValueError) as error:
            if _may_pass(error):
                raise
            if isinstance(error, ErasedInput):
                self._kept.pop((asked.namespace, asked.session), None)
            return failed_with(error)
        return Replied(reply)

    def _turns(self, namespace: Namespace, session: SessionId) -> LocalTurns:
        key = namespace, session
        turns = self._kept[key] = self._runtime.local_turns(*key)
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return turns

    async def _evaluation(self, job: Job) -> Answered | Failed:
        asked, call = evaluation_job(job.payload), _Counted()
        try:
            with under_way(call):
                return await self._answered(asked, call)
        except ModelError as error:
            return failed_with(error, again=call.again)

    async def _answered(self, asked: EvaluationJob, call: "_Counted") -> Answered:
        if asked.model != self._model.identity:
            raise NotForThisWorker(
                f"the worker that took the question has model {self._model.identity!r}, "
                f"it is for {asked.model!r}; start every worker with the same --model"
            )
        completion, value = None, None
        if asked.answer is None:
            completion = await self._model.complete(asked.request)
        elif self._likelihood is not None:
            value = await self._likelihood.log_likelihood(asked.request, asked.answer)
        else:
            raise ModelRefused("the worker's model cannot tell how likely a given answer is")
        return Answered(
            completion=completion,
            log_likelihood=value,
            again=call.again,
            is_recorded=call.is_recorded,
        )


class _Pieces:
    """Sends what is under way to whoever waits."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._at = 0

    def delta(self, text: str) -> None:
        self._send(encode(Delta(self._at, text)))
        self._at += len(text)

    def event(self, event: AnyEvent) -> None:
        self._send(encode(Happened(event)))


class _Counted:
    """Counts the attempts of a call, for whoever pays for them elsewhere."""

    def __init__(self) -> None:
        self.again = 0
        self.is_recorded = False

    def try_again(self) -> bool:
        self.again += 1
        return True

    def recorded(self) -> None:
        self.is_recorded = True


def _other_outfit(wanted: Outfit, here: Outfit) -> str:
    # Without quotation marks: a service's log leaves out what stands in them.
    return (
        f"the worker that took the turn has model {here.model} and guard {here.guard}, it is for "
        f"model {wanted.model} and guard {wanted.guard}; start every worker as its services are: "
        "the same --model, --guard and settings"
    )


def _may_pass(error: Exception) -> bool:
    """Whether another try may go better: the way to a server is cut, or the session changed hands."""
    return isinstance(error, LeaseLost | BusError) or type(error) is StoreError
