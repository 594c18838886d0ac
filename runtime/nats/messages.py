"""What the messages of the queue say, and how they are written down."""

import msgspec

from assay.runtime.jobs import Job, JobKind
from assay.stores.records import Namespace


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job failed.

    Attributes:
        kind: Class name of the cause.
        message: What it said.
    """

    kind: str
    message: str


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a job: its result, unless it failed for good."""

    data: bytes = b""
    failure: Failure | None = None


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """A job, and how its last try failed."""

    job: "JobBody"
    failure: Failure
    tries: int


class JobBody(msgspec.Struct, frozen=True, kw_only=True):
    """A job on the bus."""

    id: str
    kind: JobKind
    tenant: str
    namespace: str
    payload: bytes


_encoder = msgspec.msgpack.Encoder()
_jobs = msgspec.msgpack.Decoder(JobBody)
_answers = msgspec.msgpack.Decoder(Answer)
_letters = msgspec.msgpack.Decoder(Letter)


def body_of(job: Job) -> JobBody:
    """A job as the bus carries it."""
    return JobBody(
        id=job.id,
        kind=job.kind,
        tenant=job.tenant,
        namespace=job.namespace,
        payload=job.payload,
    )


def job_of(body: JobBody) -> Job:
    """A job as handlers take it."""
    return Job(body.id, body.kind, body.tenant, Namespace(body.namespace), body.payload)


def encode(message: JobBody | Answer | Letter) -> bytes:
    """A message in bytes."""
    return _encoder.encode(message)


def decode_job(data: bytes) -> Job:
    """A job from the bus; raises ``msgspec.DecodeError`` if it is none of this version."""
    return job_of(_jobs.decode(data))


def decode_answer(data: bytes) -> Answer:
    """An answer from the bus; raises as ``decode_job`` does."""
    return _answers.decode(data)


def decode_letter(data: bytes) -> Letter:
    """A dead letter from the bus; raises as ``decode_job`` does."""
    return _letters.decode(data)
