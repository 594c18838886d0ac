"""One try of a job: it is run under signs of life, answered, and its fate told to the stream."""

import json
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

import anyio

from assay.errors import BusError
from assay.runtime.jobs import AWAY, PATIENCE, Job, JobHandler, NotForThisWorker
from assay.runtime.nats.answers import TRY, keep_answer, kept_answer, piece_of, refused_of
from assay.runtime.nats.connection import BusClosed, Connection, MessageTooLarge
from assay.runtime.nats.messages import Answer, Failure, Letter, body_of, encode
from assay.runtime.nats.streams import Limits, subject

DONE = b"+ACK"
GIVEN_BACK = b"-NAK"
WITHDRAWN = b"+TERM"

_LONGEST_PAUSE = 30.0
_MESSAGE_LENGTH = 1_000
_BEATS = 3


class _Failed(NamedTuple):
    """A try that failed.

    Attributes:
        failure: With what.
        tries: How often the job is tried before it is given up.
    """

    failure: Failure
    tries: int


class Try(NamedTuple):
    """A job in hand.

    Attributes:
        connection: To the server.
        limits: Of silence and tries.
        job: What is to be done.
        reply: Where its fate is told.
        attempt: Counts the tries of the job, from 1; one that was given back counts too.
        scope: Cancelled when nobody waits for it any more.
    """

    connection: Connection
    limits: Limits
    job: Job
    reply: str
    attempt: int
    scope: anyio.CancelScope

    async def fate(self, handler: JobHandler) -> bytes:
        """Do the job; gives what the stream is to be told of it."""
        try:
            return await self._fate(handler)
        except BusClosed:
            raise
        except BusError:  # it could not be answered: it is done again, or found to be answered
            return self._later()

    async def _fate(self, handler: JobHandler) -> bytes:
        if self.attempt > 1 and await kept_answer(self.connection, self.job) is not None:
            return DONE
        if self.attempt > self.limits.tries * PATIENCE:
            lost = f"it was taken {self.attempt - 1} times, and no try came to an end"
            return await self._given_up(Failure(kind="WorkerLost", message=lost))
        outcome: Answer | _Failed | NotForThisWorker | None = None
        with self.scope:
            outcome = await self._outcome(handler)
        match outcome:
            case None:
                return WITHDRAWN
            case Answer():
                return await self._answered(outcome)
            case _Failed():
                return await self._failed(outcome)
            case NotForThisWorker():
                return await self._refused()

    async def _outcome(self, handler: JobHandler) -> Answer | _Failed | NotForThisWorker:
        async with self._signs_of_life(), self._pieces() as send:
            try:
                return Answer(data=await handler(self.job, send))
            except NotForThisWorker as error:
                return error
            except AWAY as error:
                return self._failure(error, self.limits.tries * PATIENCE)
            except Exception as error:  # noqa: BLE001  # a failing handler is a failed try
                return self._failure(error, self.limits.tries)

    def _failure(self, error: Exception, tries: int) -> _Failed:
        message = str(error)[:_MESSAGE_LENGTH]
        return _Failed(Failure(kind=type(error).__name__, message=message), tries)

    async def _answered(self, answer: Answer) -> bytes:
        try:
            await keep_answer(self.connection, self.job, answer)
        except MessageTooLarge as error:
            return await self._failed(self._failure(error, self.limits.tries))
        return DONE

    async def _failed(self, failed: _Failed) -> bytes:
        if self.attempt < failed.tries:
            return self._later()
        return await self._given_up(failed.failure)

    async def _refused(self) -> bytes:
        """Out of the stream, to be put in as new by whoever waits for it; nobody does: given back."""
        where = refused_of(self.connection.prefix, self.job)
        is_heard = await self.connection.request(where, b"") is not None
        return WITHDRAWN if is_heard else self._later()

    async def _given_up(self, failure: Failure) -> bytes:
        """Among the dead letters, and answered with what it failed with."""
        letter = Letter(job=body_of(self.job), failure=failure, tries=self.attempt)
        where = subject(self.connection.prefix, "dead", self.job.namespace, self.job.id)
        await self.connection.store(where, encode(letter))
        await keep_answer(self.connection, self.job, Answer(failure=failure))
        return DONE

    def _later(self) -> bytes:
        """Given back, to be tried again after a pause."""
        pause = min(_LONGEST_PAUSE, self.limits.pause * 2 ** min(self.attempt - 1, 16))
        return b"%s %s" % (GIVEN_BACK, json.dumps({"delay": int(pause * 1e9)}).encode())

    @asynccontextmanager
    async def _signs_of_life(self) -> AsyncGenerator[None]:
        async def beat() -> None:
            while True:
                await anyio.sleep(self.limits.silence / _BEATS)
                await self.connection.publish(self.reply, b"+WPI")

        async with anyio.create_task_group() as group:
            group.start_soon(beat)
            yield
            group.cancel_scope.cancel()

    @asynccontextmanager
    async def _pieces(self) -> AsyncGenerator[Callable[[bytes], None]]:
        """Send pieces in order; all are sent when the block ends."""
        where, headers = piece_of(self.connection.prefix, self.job), {TRY: str(self.attempt)}
        # Without a bound, as the one who sends cannot wait; a result has a bound itself.
        send, receive = anyio.create_memory_object_stream[bytes](math.inf)

        async def forward() -> None:
            with receive:
                async for data in receive:
                    with suppress(MessageTooLarge):  # the result has it all, or fails for it
                        await self.connection.publish(where, data, headers=headers)

        async with anyio.create_task_group() as group:
            group.start_soon(forward)
            with send:
                yield send.send_nowait
