"""One job from where it is submitted: into the stream, and its answer back, whatever breaks between."""

import anyio

from assay.errors import BusError, JobFailed
from assay.runtime.jobs import Job, Piece, PieceSink
from assay.runtime.nats.answers import TRY, answers_of, kept_answer
from assay.runtime.nats.connection import Connection, Message, StreamFull
from assay.runtime.nats.consumers import Consumers, put, share_of
from assay.runtime.nats.messages import Answer, decode_answer
from assay.runtime.nats.streams import job_subject, purge_subject, token

_LOOK_SECONDS = 5.0
_ROOM_SECONDS = 0.05
_WITHDRAW_SECONDS = 2.0
_REFUSED_SECONDS = 0.25


class Submission:
    """A job on its way, and its answer.

    Args:
        connection: To the server.
        consumers: Know whether there is room.
        job: What is to be done.
        seconds: After which nobody begins it any more.
        sink: Takes pieces of the result.
    """

    def __init__(
        self,
        connection: Connection,
        consumers: Consumers,
        job: Job,
        seconds: float,
        sink: PieceSink | None,
    ) -> None:
        self._connection = connection
        self._consumers = consumers
        self._job = job
        self._until = anyio.current_time() + seconds
        self._sink = sink
        self._newest_try = 0
        self._answer: Answer | None = None
        self._refused = ""
        self._news = anyio.Event()

    async def result(self) -> bytes:
        """Have the job done; gives its result. On cancel it is withdrawn.

        Raises:
            JobFailed: If it failed for good.
            BusError: If the bus cannot be used.
        """
        where = answers_of(self._connection.prefix, self._job)
        async with self._connection.receiving(where, self._take):
            answer = await kept_answer(self._connection, self._job)
            if answer is None:
                try:
                    answer = await self._done()
                except BaseException:
                    await self._withdraw()
                    raise
        return _result(self._job, answer)

    async def _done(self) -> Answer:
        await self._enter()
        while self._answer is None:
            with anyio.move_on_after(_LOOK_SECONDS):
                await self._something()
            if self._refused:
                await self._put_back()
            elif self._answer is None:
                self._answer = await self._looked()
        return self._answer

    async def _put_back(self) -> None:
        """Have the worker that is not for the job drop it, and put it in as new, for another one."""
        reply, self._refused, self._news = self._refused, "", anyio.Event()
        self._newest_try = 0
        await self._connection.publish(reply)
        await anyio.sleep(_REFUSED_SECONDS)
        if self._answer is None:
            await self._enter()

    async def _looked(self) -> Answer | None:
        """What was missed: an answer, or that the server has lost the job, or all it had."""
        await self._consumers.jobs_of(share_of(self._job))
        kept = await kept_answer(self._connection, self._job)
        if kept is None and await self._put():
            kept = await kept_answer(
                self._connection, self._job
            )  # it may have been done between the two
            if kept is not None:
                await self._drop()
        return kept

    async def _enter(self) -> None:
        """Into the stream, once there is room."""
        share = share_of(self._job)
        while True:
            if await self._consumers.has_room(share):
                try:
                    await self._put()
                except StreamFull:
                    pass
                else:
                    return
            await anyio.sleep(_ROOM_SECONDS)

    async def _put(self) -> bool:
        left = max(1.0, self._until - anyio.current_time())
        return await put(self._connection, self._job, seconds=left)

    async def _something(self) -> None:
        """Wait for the answer, for a worker that refuses, or for the server to come back."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._until_back, group.cancel_scope)
            await self._news.wait()
            group.cancel_scope.cancel()

    async def _until_back(self, scope: anyio.CancelScope) -> None:
        await self._connection.reconnected()
        scope.cancel()

    async def _withdraw(self) -> None:
        with anyio.CancelScope(shield=True), anyio.move_on_after(_WITHDRAW_SECONDS):
            try:
                await self._connection.publish(
                    f"{self._connection.prefix}.cancel.{token(self._job.id)}"
                )
                await self._drop()
            except BusError:
                return  # its time runs out by itself

    async def _drop(self) -> None:
        await purge_subject(
            self._connection, "jobs", job_subject(self._connection.prefix, self._job)
        )

    def _take(self, message: Message) -> None:
        if message.subject.endswith(".result"):
            self._answer = decode_answer(message.data)
            self._news.set()
        elif message.subject.endswith(".refused"):
            self._refused = message.reply
            self._news.set()
        elif self._sink is not None:
            piece = Piece(int(message.headers[TRY]), message.data)
            if piece.attempt >= self._newest_try:  # an older try may go on where it is cut off
                self._newest_try = piece.attempt
                self._sink(piece)


def _result(job: Job, answer: Answer) -> bytes:
    failure = answer.failure
    if failure is None:
        return answer.data
    raise JobFailed(
        f"the {job.kind} job {job.id!r} failed at every try: {failure.kind}: {failure.message}; "
        "see `assay worker dead-letters`",
        kind=failure.kind,
    )
