"""What a job of turns or of evaluations says, and what is answered: one encoding for both ends."""

from typing import TypeAlias

import msgspec

from assay import errors
from assay.errors import AssayError, TurnError, TurnFailed
from assay.guards.protocols import Completion, Request
from assay.runtime.events import AnyEvent
from assay.runtime.reply import Reply
from assay.runtime.requests import TurnRequest
from assay.stores.records import Namespace, SessionId

# ---- a job's payload


class Outfit(msgspec.Struct, frozen=True):
    """What turns are made with, as far as two processes could differ in it by mistake.

    Attributes:
        model: Its identity.
        guard: Its name.
    """

    model: str
    guard: str


class TurnJob(msgspec.Struct, frozen=True, kw_only=True):
    """A turn to take; attributes as those of ``Session``.

    Attributes:
        outfit: What whoever asks for it would take it with.
    """

    namespace: Namespace
    session: SessionId
    request: TurnRequest
    outfit: Outfit


class EvaluationJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question to a model.

    Attributes:
        model: Identity of the model that has to answer.
        request: What is asked.
        answer: When set, how likely this answer is, instead of an answer.
    """

    model: str
    request: Request
    answer: str | None = None


# ---- what comes back on the way


class Delta(msgspec.Struct, frozen=True, tag="delta"):
    """A piece of the reply; ``at`` is how many characters of it came before."""

    at: int
    text: str


class Happened(msgspec.Struct, frozen=True, tag="happened"):
    """An event of the turn."""

    event: AnyEvent


class Begun(msgspec.Struct, frozen=True, tag="begun"):
    """A worker has taken the turn."""


class Declined(msgspec.Struct, frozen=True, tag="declined"):
    """A worker has given the turn back; ``reason`` says why."""

    reason: str


TurnPiece: TypeAlias = Begun | Declined | Delta | Happened

# ---- what comes back at the end


class Replied(msgspec.Struct, frozen=True, tag="replied"):
    """The turn's reply; ``None`` if there was nothing to resume."""

    reply: Reply | None


class Answered(msgspec.Struct, frozen=True, kw_only=True, tag="answered", omit_defaults=True):
    """A model's answer.

    Attributes:
        completion: What it answered.
        log_likelihood: What it measured, where it was asked that.
        again: Attempts beyond the first.
        is_recorded: Whether a recording answered.
    """

    completion: Completion | None = None
    log_likelihood: float | None = None
    again: int = 0
    is_recorded: bool = False


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed", omit_defaults=True):
    """An error, to be raised where the job came from.

    Attributes:
        kind: Its class name.
        message: What it says.
        cause: Class name of what a turn failed with.
        again: Attempts beyond the first, where a model was asked.
    """

    kind: str
    message: str
    cause: str = ""
    again: int = 0


TurnAnswer: TypeAlias = Replied | Failed
EvaluationAnswer: TypeAlias = Answered | Failed

_encoder = msgspec.json.Encoder()
_turn_jobs = msgspec.json.Decoder(TurnJob)
_turn_pieces: "msgspec.json.Decoder[TurnPiece]" = msgspec.json.Decoder(TurnPiece)
_turn_answers: "msgspec.json.Decoder[TurnAnswer]" = msgspec.json.Decoder(TurnAnswer)
_evaluation_jobs = msgspec.json.Decoder(EvaluationJob)
_evaluation_answers: "msgspec.json.Decoder[EvaluationAnswer]" = msgspec.json.Decoder(
    EvaluationAnswer
)


def encode(message: TurnJob | EvaluationJob | TurnPiece | TurnAnswer | EvaluationAnswer) -> bytes:
    """A message as it travels."""
    return _encoder.encode(message)


def turn_job(payload: bytes) -> TurnJob:
    """A turn job; raises ``msgspec.DecodeError`` if it is none of this version."""
    return _turn_jobs.decode(payload)


def turn_piece(payload: bytes) -> TurnPiece:
    """A piece of a turn; raises as ``turn_job`` does."""
    return _turn_pieces.decode(payload)


def turn_answer(payload: bytes) -> TurnAnswer:
    """The end of a turn; raises as ``turn_job`` does."""
    return _turn_answers.decode(payload)


def evaluation_job(payload: bytes) -> EvaluationJob:
    """An evaluation job; raises as ``turn_job`` does."""
    return _evaluation_jobs.decode(payload)


def evaluation_answer(payload: bytes) -> EvaluationAnswer:
    """The end of an evaluation; raises as ``turn_job`` does."""
    return _evaluation_answers.decode(payload)


# ---- errors

_SAID_IN_WORDS: tuple[type[Exception], ...] = (
    ValueError,
    errors.ConfigError,
    errors.StoreError,
    errors.ConflictingWrite,
    errors.ErasedInput,
    errors.StoreClosed,
    errors.StoreCorrupt,
    errors.NewerFormat,
    errors.LeaseLost,
    errors.GuardError,
    errors.GuardFailed,
    errors.ModelError,
    errors.ModelUnavailable,
    errors.ModelRefused,
    errors.MalformedAnswer,
    errors.ContextOverflow,
    errors.CassetteMiss,
    errors.BusError,
    errors.TurnError,
    errors.TurnTimeout,
)
"""Errors that are made of their message alone."""

_BY_NAME = {kind.__name__: kind for kind in _SAID_IN_WORDS}


def failed_with(error: AssayError | ValueError, *, again: int = 0) -> Failed:
    """An error as it travels."""
    cause = error.kind if isinstance(error, TurnFailed) else ""
    return Failed(kind=type(error).__name__, message=str(error), cause=cause, again=again)


def error_in(failed: Failed) -> Exception:
    """The error again, of the same class; of one that is not known here, a ``TurnError`` that names it."""
    if failed.kind == TurnFailed.__name__:
        return TurnFailed(failed.message, kind=failed.cause)
    known = _BY_NAME.get(failed.kind)
    return known(failed.message) if known else TurnError(f"{failed.kind}: {failed.message}")
