"""From what came back to an outcome, and to bytes for the cache. Pure."""

import math
from typing import Literal, TypeAlias, assert_never

import msgspec

from assay.errors import (
    ContextOverflow,
    MalformedAnswer,
    ModelRefused,
    ModelUnavailable,
    StoreCorrupt,
)
from assay.guards.protocols import Completion, Outcome, TokenLogprob

Answer: TypeAlias = Completion | float
"""A completion, or for a likelihood ask the mean log-probability per token."""

Failure: TypeAlias = ModelUnavailable | ModelRefused | MalformedAnswer | ContextOverflow
"""The errors of a model that are outcomes; a ``CassetteMiss`` is none."""

FAILURES = (ModelUnavailable, ModelRefused, MalformedAnswer, ContextOverflow)

_ROUNDING = 1e-6
_completions = msgspec.json.Decoder(Completion)
_floats = msgspec.json.Decoder(float)
_encoder = msgspec.json.Encoder()


def outcome_of(result: Answer | Failure) -> Outcome:
    """The outcome of one question."""
    match result:
        case Completion():
            return Outcome(
                status="truncated" if result.finish_reason == "length" else "answered",
                text=result.text,
                logprobs=result.logprobs,
                usage=result.usage,
            )
        case float() | int():
            return Outcome(status="answered", log_likelihood=result)
        case _:
            return Outcome(status=_status(result), detail=str(result))


def has_answer(outcome: Outcome) -> bool:
    """Whether the model answered, wholly or cut by ``max_tokens``."""
    return outcome.status in ("answered", "truncated")


def checked_completion(completion: Completion) -> Completion:
    """The completion, if its numbers are numbers.

    Raises:
        MalformedAnswer: If a log-probability is NaN or infinite.
    """
    for token in completion.logprobs or ():
        if not _has_numbers(token):
            raise MalformedAnswer(
                f"token {token.token!r} came with log-probability {token.logprob!r}; "
                "expected finite ones, also of the alternatives"
            )
    return completion


def checked_likelihood(value: float | None) -> float:
    """The log-likelihood, if it is one.

    Raises:
        MalformedAnswer: On ``None``, NaN, an infinity, or a value above 0 by more than rounding.
    """
    if value is None or not math.isfinite(value) or value > _ROUNDING:
        raise MalformedAnswer(
            f"log-likelihood {value!r}; expected a finite mean per token of at most 0"
        )
    return min(value, 0.0)


def encode_answer(answer: Answer) -> bytes:
    """For the cache: JSON of the completion, or of the number."""
    return _encoder.encode(answer)


def decode_answer(value: bytes, *, likelihood: bool) -> Answer:
    """The answer of a cache row.

    Raises:
        StoreCorrupt: If the value is no such answer.
    """
    try:
        return _floats.decode(value) if likelihood else _completions.decode(value)
    except msgspec.DecodeError as error:
        raise StoreCorrupt(f"a cached answer cannot be read: {error}; erase the cache") from error


def _status(failure: Failure) -> Literal["unavailable", "refused", "malformed", "overflow"]:
    match failure:
        case ModelUnavailable():
            return "unavailable"
        case ModelRefused():
            return "refused"
        case MalformedAnswer():
            return "malformed"
        case ContextOverflow():
            return "overflow"
        case _ as never:
            assert_never(never)


def _has_numbers(token: TokenLogprob) -> bool:
    return math.isfinite(token.logprob) and all(math.isfinite(other) for _, other in token.top)
