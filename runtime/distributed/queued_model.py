"""A model whose questions wait in the queue for any worker that has it."""

from collections.abc import Callable, Sequence

from assay.errors import BusError, ModelUnavailable
from assay.guards.calls import call_under_way
from assay.guards.protocols import ChatModel, Completion, DeltaSink, Message, Request
from assay.runtime.distributed.wire import (
    Answered,
    EvaluationJob,
    Failed,
    encode,
    error_in,
    evaluation_answer,
)
from assay.runtime.jobs import Job, JobQueue
from assay.runtime.limits import tenant_user_of
from assay.stores.records import Namespace


class QueuedModel:
    """Asks through the queue; everything but answering it does as the model itself.

    Its identity is the model's, so an answer has one name in every process and is cached once.

    Args:
        model: What the workers have too.
        queue: Where questions wait.
        namespace: Whose questions.
        new_id: Names jobs.
        seconds: Deadline of an answer, the wait for a worker included.
    """

    def __init__(
        self,
        model: ChatModel,
        queue: JobQueue,
        *,
        namespace: Namespace,
        new_id: Callable[[], str],
        seconds: float,
    ) -> None:
        self._model = model
        self._queue = queue
        self._namespace = namespace
        self._new_id = new_id
        self._seconds = seconds

    @property
    def identity(self) -> str:
        """The model's."""
        return self._model.identity

    @property
    def context_tokens(self) -> int:
        """The model's."""
        return self._model.context_tokens

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """As the model counts."""
        return self._model.count_tokens(messages)

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        """Have a worker ask the model; a text comes in one piece.

        Raises:
            ModelUnavailable: If no worker answered in time, too.
        """
        answered = await self._answered(request, None)
        if answered.completion is None:
            raise AssertionError("unreachable")
        if sink is not None and answered.completion.text:
            sink(answered.completion.text)
        return answered.completion

    async def log_likelihood(self, request: Request, answer: str) -> float:
        """Have a worker measure it, where the model can tell; raises as ``complete`` does."""
        answered = await self._answered(request, answer)
        if answered.log_likelihood is None:
            raise AssertionError("unreachable")
        return answered.log_likelihood

    async def _answered(self, request: Request, answer: str | None) -> Answered:
        asked = EvaluationJob(model=self.identity, request=request, answer=answer)
        job = Job(
            id=self._new_id(),
            kind="evaluation",
            tenant=tenant_user_of(self._namespace).tenant,
            namespace=self._namespace,
            payload=encode(asked),
        )
        try:
            given = evaluation_answer(await self._queue.submit(job, deadline=self._seconds))
        except BusError as error:
            raise ModelUnavailable(f"no worker answered: {error}") from error
        _pay_for(given.again)
        if isinstance(given, Failed):
            raise error_in(given)
        if given.is_recorded:
            call_under_way().recorded()
        return given


def _pay_for(again: int) -> None:
    """Attempts that were made elsewhere; what the budget has no room for was spent all the same."""
    call = call_under_way()
    for _ in range(again):
        call.try_again()
