"""Errors in the shape OpenAI gives them, so that its clients understand them.

What a message may say: the caller's own words and names, never another tenant's, a path or a key.
"""

import logging
import re
from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from assay.errors import AssayError, JobFailed, TurnFailed, TurnTimeout
from assay.runtime.observe import places


class ApiError(Exception):
    """A request that gets no answer but this.

    Args:
        status: HTTP status.
        message: What was expected, what came, what to do.
        kind: OpenAI's ``type``.
        code: OpenAI's ``code``.
        param: The field it is about.
        retry_after: Whole seconds after which trying again is sensible.
    """

    def __init__(  # noqa: PLR0913  # the fields of the wire format
        self,
        status: int,
        message: str,
        *,
        kind: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.code = code
        self.param = param
        self.retry_after = retry_after

    def body(self) -> dict[str, object]:
        """The JSON body."""
        return {
            "error": {
                "message": str(self),
                "type": self.kind,
                "param": self.param,
                "code": self.code,
            }
        }

    def response(self) -> Response:
        """The whole response."""
        headers: dict[str, str] = {}
        if self.status == 401:  # noqa: PLR2004  # Unauthorized
            headers["WWW-Authenticate"] = "Bearer"
        if self.retry_after is not None:
            headers["Retry-After"] = str(self.retry_after)
        return json_response(self.body(), status=self.status, headers=headers)


def internal_error() -> ApiError:
    """What a caller is told of a bug."""
    return ApiError(500, "the service failed", kind="server_error", code="internal_error")


def stopping() -> ApiError:
    """What a caller is told whose turn the service could not wait for."""
    message = "the service stops, and the turn was given up; try again"
    return ApiError(
        503, message, kind="server_error", code="service_stopping", retry_after=_RETRY_SECONDS
    )


def log_broken(error: Exception) -> None:
    """Log a bug by kind and place: its message may quote what somebody said."""
    kind, where = type(error).__name__, places(error)
    extra = {"kind": kind, "places": where}
    _log.error("request.broken: %s at %s", kind, where[-1] if where else "?", extra=extra)


def log_failed(error: AssayError | ValueError) -> None:
    """Log why a request failed, without what anybody said."""
    reason = reason_of(error)
    extra = {"kind": type(error).__name__, "reason": reason}
    _log.warning("request.failed: %s", reason, extra=extra)


def reason_of(error: AssayError | ValueError) -> str:
    """The kind of an error's cause; of a store or bus that cannot be used also why, up to a quotation.

    What stands in quotation marks may be a user's name, or what a user said.
    """
    kind = cause_of(error)
    if kind not in _TOLD or isinstance(error, JobFailed):
        return kind
    unquoted, *quoted = re.split("['\"]", str(error).partition("\n")[0], maxsplit=1)
    return f"{kind}: {unquoted.strip()}{'...' if quoted else ''}"


def cause_of(error: AssayError | ValueError) -> str:
    """The class name of an error, or of what a turn or a job failed with."""
    return error.kind if isinstance(error, TurnFailed | JobFailed) else type(error).__name__


def is_away(error: AssayError | ValueError) -> bool:
    """Whether the bank or the bus cannot be used now, which may pass."""
    return cause_of(error) in _AWAY or isinstance(error, JobFailed)


def json_response(
    body: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A JSON response."""
    return Response(
        msgspec.json.encode(body),
        status_code=status,
        headers=headers,
        media_type="application/json",
    )


_log = logging.getLogger("assay.http")

_RETRY_SECONDS = 5

_AWAY = frozenset({"StoreError", "StoreClosed", "LeaseLost", "BusError", "JobFailed"})

_TOLD = frozenset(
    {"StoreError", "StoreClosed", "StoreCorrupt", "NewerFormat", "LeaseLost", "BusError"}
)

_CAUSES: Mapping[str, tuple[int, str, str]] = {
    "ModelUnavailable": (503, "server_error", "model_unavailable"),
    "ModelRefused": (502, "server_error", "model_refused"),
    "MalformedAnswer": (502, "server_error", "malformed_answer"),
    "ContextOverflow": (400, "invalid_request_error", "context_length_exceeded"),
    "CassetteMiss": (502, "server_error", "cassette_miss"),
    "GuardFailed": (503, "server_error", "guard_failed"),
    "BudgetExceeded": (503, "server_error", "budget_exceeded"),
    "StoreError": (503, "server_error", "bank_unavailable"),
    "StoreClosed": (503, "server_error", "bank_unavailable"),
    "LeaseLost": (503, "server_error", "session_taken_over"),
    "BusError": (503, "server_error", "no_worker"),
    "JobFailed": (503, "server_error", "no_worker"),
}
"""By the class name of what a turn failed with, as ``TurnFailed.kind`` gives it."""

_WORTH_RETRYING = _AWAY | {"ModelUnavailable"}

_SAID: Mapping[str, str] = {
    "model_unavailable": "the model behind this service cannot be reached now; try again later",
    "model_refused": "the model behind this service refused the request",
    "malformed_answer": "the model behind this service gave no usable answer; try again",
    "cassette_miss": "the recorded run behind this service does not know this question",
    "guard_failed": "the guard could not measure, and this service lets nothing in unmeasured",
    "bank_unavailable": "the memory behind this service cannot be used now; try again later",
    "session_taken_over": "another process of this service took the conversation over; try again",
    "no_worker": "no worker of this service could take the turn in time; try again later",
    "budget_exceeded": "the budget of this turn is spent, and this service lets nothing in unmeasured",
}


def api_error(error: AssayError | ValueError) -> ApiError:
    """What a caller is told of an error of the runtime."""
    if isinstance(error, TurnTimeout):
        return ApiError(504, f"{error}", kind="server_error", code="turn_timeout")
    if isinstance(error, ValueError):
        return ApiError(400, str(error), code="invalid_value")
    kind = error.kind if isinstance(error, TurnFailed) else type(error).__name__
    if kind not in _CAUSES:
        message = "the service failed; nothing of this turn was answered; its log tells more"
        return ApiError(500, message, kind="server_error", code="internal_error")
    status, type_, code = _CAUSES[kind]
    retry = _RETRY_SECONDS if kind in _WORTH_RETRYING else None
    return ApiError(status, _SAID.get(code, str(error)), kind=type_, code=code, retry_after=retry)
