"""Jobs that failed at every try: looked at, tried again, or dropped."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import NamedTuple

import msgspec
from nats.js import JetStreamContext, api

from assay.runtime.jobs import Job
from assay.runtime.nats.answers import result_of
from assay.runtime.nats.connection import Connection
from assay.runtime.nats.consumers import Consumers, put, share_of
from assay.runtime.nats.messages import Failure, decode_letter, job_of
from assay.runtime.nats.streams import DEFAULT_LIMITS, purge_subject, stream_name

_SHOWN = 100


class DeadLetter(NamedTuple):
    """A job that was given up.

    Attributes:
        number: Names it here.
        job: What was to be done; its payload may hold what a user said.
        failure: What the last try failed with.
        tries: How often it was tried.
        at: When it was given up, in UTC, by the server's clock.
    """

    number: int
    job: Job
    failure: Failure
    tries: int
    at: datetime | None


async def dead_letters(connection: Connection, *, limit: int = _SHOWN) -> list[DeadLetter]:
    """The oldest ``limit`` dead letters; those of another version of Assay are passed over.

    Raises:
        ValueError: If ``limit`` is below 1.
        BusError: If the bus cannot be read.
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit!r}")
    letters = list[DeadLetter]()
    async for letter in _from(connection, 1):
        letters.append(letter)
        if len(letters) == limit:
            break
    return letters


async def dead_letter(connection: Connection, number: int) -> DeadLetter:
    """One of them.

    Raises:
        ValueError: If there is none of this number.
        BusError: If the bus cannot be read.
    """
    async for letter in _from(connection, number):
        if letter.number == number:
            return letter
        break
    raise ValueError(f"there is no dead letter {number!r}; list them to see which there are")


async def replay(connection: Connection, number: int) -> Job:
    """Put its job back into the queue, to be tried as often as a new one; gives the job.

    Raises:
        ValueError: If there is none of this number.
        BusError: If the bus cannot be used; the letter is still there then.
    """
    job = (await dead_letter(connection, number)).job
    # What it failed with is no answer any more.
    await purge_subject(connection, "answers", result_of(connection.prefix, job))
    await Consumers(connection, DEFAULT_LIMITS).jobs_of(share_of(job))
    await put(connection, job)
    await drop(connection, number)
    return job


async def drop(connection: Connection, number: int) -> None:
    """Forget it.

    Raises:
        ValueError: If there is none of this number.
        BusError: If the bus cannot be used.
    """
    await dead_letter(connection, number)
    name = stream_name(connection.prefix, "dead")
    await connection.found("drop a dead letter", lambda js: js.delete_msg(name, number))


async def _from(connection: Connection, number: int) -> AsyncIterator[DeadLetter]:
    while (kept := await _next(connection, number)) is not None:
        found = kept.seq or number
        number = found + 1
        try:
            letter = decode_letter(kept.data or b"")
        except msgspec.DecodeError:
            continue
        yield DeadLetter(found, job_of(letter.job), letter.failure, letter.tries, kept.time)


async def _next(connection: Connection, number: int) -> api.RawStreamMsg | None:
    name = stream_name(connection.prefix, "dead")

    async def at_or_after(js: JetStreamContext) -> api.RawStreamMsg:
        return await js.get_msg(name, seq=max(1, number), subject=">", next=True)

    return await connection.found("read the dead letters", at_or_after)
