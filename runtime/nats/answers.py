"""Where the pieces and the result of a job go, and the result that is kept for a while."""

from assay.runtime.jobs import Job
from assay.runtime.nats.connection import Connection
from assay.runtime.nats.messages import Answer, decode_answer, encode
from assay.runtime.nats.streams import stream_name, subject

TRY = "Assay-Try"
"""Header of a piece: which try of the job it comes from."""


def answers_of(prefix: str, job: Job) -> str:
    """The subject of all that is answered to a job."""
    return f"{_subject(prefix, job)}.*"


def result_of(prefix: str, job: Job) -> str:
    """The subject of its result, which is kept."""
    return f"{_subject(prefix, job)}.result"


def piece_of(prefix: str, job: Job) -> str:
    """The subject of the pieces of its result, which are not."""
    return f"{_subject(prefix, job)}.piece"


def refused_of(prefix: str, job: Job) -> str:
    """Where a worker that is not for the job asks whoever waits for it to put it back."""
    return f"{_subject(prefix, job)}.refused"


async def kept_answer(connection: Connection, job: Job) -> Answer | None:
    """What a job was answered not long ago, if it was."""
    stream, where = stream_name(connection.prefix, "answers"), result_of(connection.prefix, job)
    kept = await connection.found(
        "look for a result", lambda js: js.get_last_msg(stream, where, direct=True)
    )
    return decode_answer(kept.data) if kept is not None and kept.data else None


async def keep_answer(connection: Connection, job: Job, answer: Answer) -> None:
    """Answer a job: to who waits now, and to who asks again within ten minutes."""
    await connection.store(result_of(connection.prefix, job), encode(answer))


def _subject(prefix: str, job: Job) -> str:
    return subject(prefix, "answers", job.namespace, job.id)
