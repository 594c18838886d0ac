"""Every error of the openai SDK, mapped once to ours.

``MAPPED`` names each class the SDK has; a test fails on one that nobody mapped. What a status code
or an error code makes more precise is refined in :func:`translate`.
"""

import math
import re
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import openai

from assay.errors import (
    ContextOverflow,
    MalformedAnswer,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)

MAPPED: dict[type[Exception], type[ModelError]] = {
    openai.OpenAIError: ModelRefused,
    openai.APIError: ModelUnavailable,
    openai.APIConnectionError: ModelUnavailable,
    openai.APITimeoutError: ModelUnavailable,
    openai.APIResponseValidationError: MalformedAnswer,
    openai.APIStatusError: ModelRefused,
    openai.BadRequestError: ModelRefused,
    openai.AuthenticationError: ModelRefused,
    openai.OAuthError: ModelRefused,
    openai.PermissionDeniedError: ModelRefused,
    openai.NotFoundError: ModelRefused,
    openai.ConflictError: ModelUnavailable,
    openai.UnprocessableEntityError: ModelRefused,
    openai.RateLimitError: ModelUnavailable,
    openai.InternalServerError: ModelUnavailable,
    openai.LengthFinishReasonError: MalformedAnswer,
    openai.ContentFilterFinishReasonError: ModelRefused,
    openai.WebSocketConnectionClosedError: ModelUnavailable,
    openai.WebSocketQueueFullError: ModelUnavailable,
}

_WORTH_RETRYING = frozenset({408, 409, 425, 429})
_SERVER_ERROR = 500
_OVERFLOW = re.compile(
    r"context[_ ](length|size|window)|maximum context|exceed_context|too many tokens|"
    r"prompt is too long",
    re.IGNORECASE,
)
_SHOWN = 200


class Failure(NamedTuple):
    """What an SDK error means.

    Attributes:
        kind: The class of ours it becomes.
        message: What happened, in one line, without secrets.
        wait: Seconds the endpoint asks to wait before the next attempt, if it does.
    """

    kind: type[ModelError]
    message: str
    wait: float | None = None


def translate(error: openai.OpenAIError, *, secret: str, now: datetime) -> Failure:
    """What an error of the SDK means.

    Args:
        error: The error.
        secret: The key; it is cut out of the message, some endpoints echo it.
        now: The time of day, for a ``Retry-After`` given as a date.
    """
    kind = next(MAPPED[base] for base in type(error).__mro__ if base in MAPPED)
    if isinstance(error, openai.APIStatusError):
        return _of_status(error, kind, secret=secret, now=now)
    cause = error.__cause__ or error
    return Failure(kind, _cleaned(f"{error} ({type(cause).__name__}: {cause})", secret))


def brief(error: openai.OpenAIError) -> str:
    """What happened, without a word of the endpoint's: its status, or the kind of the failure."""
    if isinstance(error, openai.APIStatusError):
        return f"status {error.status_code}"
    return type(error.__cause__ or error).__name__


def retry_after(value: str | None, *, now: datetime) -> float | None:
    """Seconds to wait, from the header: a number or an HTTP date; ``None`` if it is neither.

    A time in the past is 0. Nothing is cut: who cannot wait that long must not ask again.
    """
    if value is None:
        return None
    seconds = _seconds(value.strip(), now)
    if seconds is None or not math.isfinite(seconds) or seconds < 0:
        return None
    return seconds


def _seconds(value: str, now: datetime) -> float | None:
    try:
        return float(value)
    except ValueError:
        pass
    try:
        return max((parsedate_to_datetime(value) - now).total_seconds(), 0.0)
    except (TypeError, ValueError):
        return None


def _of_status(
    error: openai.APIStatusError, kind: type[ModelError], *, secret: str, now: datetime
) -> Failure:
    status = error.status_code
    said = _cleaned(f"status {status}: {error.message}", secret)
    described = f"{error.code} {error.type} {error.message}"
    if 300 <= status < 400:  # noqa: PLR2004
        return Failure(ModelRefused, f"status {status}: a redirect, which is not followed")
    if status in (400, 413) and _OVERFLOW.search(described):
        return Failure(ContextOverflow, said)
    if error.code == "insufficient_quota":
        return Failure(ModelRefused, said)
    if status >= _SERVER_ERROR or status in _WORTH_RETRYING:
        wait = retry_after(error.response.headers.get("retry-after"), now=now)
        asks = "" if wait is None else f"; it asks to wait {wait:g} s"
        return Failure(ModelUnavailable, said + asks, wait)
    return Failure(kind, said)


def _cleaned(text: str, secret: str) -> str:
    line = " ".join((text.replace(secret, "[key]") if secret else text).split())
    return line if len(line) <= _SHOWN else line[:_SHOWN] + "..."
