"""The table of what an endpoint does wrong: the same faults for whole answers, streams and vectors."""

import gzip
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import NamedTuple

from assay.errors import MalformedAnswer, ModelError, ModelRefused, ModelUnavailable

from ..runtime.models.fault_server import (  # noqa: TID252 - the fault server of the models' tests
    Reply,
    answer,
    chunk,
    dripping,
    embeddings,
    http,
    streamed,
    then_close,
    then_silence,
    usage_chunk,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Fault(NamedTuple):
    """One fault.

    Attributes:
        name: What goes wrong.
        reply: What the endpoint does.
        outcome: The error that comes of it; ``None``: the answer can be used.
        then: What it does after that, for faults that pass.
    """

    name: str
    reply: Reply
    outcome: type[ModelError] | None
    then: Reply | None = None


def _limited(value: str) -> bytes:
    return http({"error": {"message": "slow down"}}, status=429, headers={"Retry-After": value})


def _everywhere(right: bytes) -> list[Fault]:
    """Faults of the transport and of HTTP; ``right`` is a right answer."""
    in_a_minute = format_datetime(NOW + timedelta(seconds=61), usegmt=True)
    bomb = gzip.compress(bytes(40 * 1024 * 1024))
    down = http({"error": {"message": "oops"}}, status=500)
    return [
        Fault("closed at once", then_close(b""), ModelUnavailable),
        Fault("slow headers", then_silence(), ModelUnavailable),
        Fault("slow body", then_silence(right[:-9]), ModelUnavailable),
        Fault("one byte a second", dripping(right, seconds=1.0), ModelUnavailable),
        Fault("429, 61 seconds", _limited("61"), ModelUnavailable),
        Fault("429, a date", _limited(in_a_minute), ModelUnavailable),
        Fault("429, negative", _limited("-5"), None, then=right),
        Fault("429, text", _limited("soon"), None, then=right),
        Fault("429, NaN", _limited("nan"), None, then=right),
        Fault("429, no wait", _limited("0"), None, then=right),
        Fault("500, then right", down, None, then=right),
        Fault("500 for ever", down, ModelUnavailable),
        Fault("truncated JSON", http('{"choices": [{"mess'), MalformedAnswer),
        Fault("cut body", then_close(right[:-9]), ModelUnavailable),
        Fault("HTML", http("<html>Hi</html>", kind="text/html"), MalformedAnswer),
        Fault("30 MiB body", http(b" " * (30 * 1024 * 1024)), MalformedAnswer),
        Fault("gzip bomb", http(bomb, headers={"Content-Encoding": "gzip"}), MalformedAnswer),
        Fault(
            "redirect",
            http("", status=302, headers={"Location": "http://127.0.0.1:1/v1"}),
            ModelRefused,
        ),
        Fault("401", http({"error": {"message": "no"}}, status=401), ModelRefused),
    ]


def _logprobs(value: str) -> bytes:
    body = answer(logprobs={"content": [{"token": "Paris", "logprob": 0, "top_logprobs": []}]})
    return http(http(body).partition(b"\r\n\r\n")[2].replace(b'"logprob": 0', value.encode()))


_USAGES: dict[str, object] = {
    "usage null": None,
    "usage empty": {},
    "usage negative": {"prompt_tokens": -4, "completion_tokens": 1},
    "usage text": {"prompt_tokens": "many", "completion_tokens": "few"},
}

WHOLE = [
    *_everywhere(http(answer("Paris"))),
    Fault("empty content", http(answer("")), MalformedAnswer),
    Fault("null content", http(answer(None)), MalformedAnswer),
    Fault("empty choices", http(answer(choices=[])), MalformedAnswer),
    Fault("no choices", http({"model": "m"}), MalformedAnswer),
    Fault("another model", http(answer("Paris", model="cheaper")), None),
    Fault("NaN log-probability", _logprobs('"logprob": NaN'), None),
    Fault("-Infinity log-probability", _logprobs('"logprob": -Infinity'), None),
    Fault("null log-probability", _logprobs('"logprob": null'), None),
    Fault("missing log-probability", _logprobs('"x": 1'), None),
    *(Fault(name, http(answer("Paris", usage=usage)), None) for name, usage in _USAGES.items()),
    Fault("length", http(answer("Paris", finish_reason="length")), None),
]

STREAM = streamed(chunk("Pa"), chunk("ris"), chunk(finish="stop"), usage_chunk())
_LAST_NEEDED = STREAM.index(b'"stop"}]}') + len(b'"stop"}]}\n\n')

STREAMED = [
    *_everywhere(STREAM),
    Fault("no content", streamed(chunk(finish="stop")), MalformedAnswer),
    Fault("no choices", streamed({"model": "m", "choices": []}), ModelUnavailable),
    Fault("error inside", streamed(chunk("Pa"), {"error": {"message": "oom"}}), ModelUnavailable),
    Fault("nonsense inside", streamed(chunk("Pa"), end="data: {no\n\n"), MalformedAnswer),
    Fault("no end", streamed(chunk("Pa"), end=""), ModelUnavailable),
    Fault("another model", streamed(chunk("Paris") | {"model": "x"}, chunk(finish="stop")), None),
    Fault("length", streamed(chunk("Paris"), chunk(finish="length")), None),
]


def cut_at(offset: int) -> Fault:
    """The stream closed after so many bytes."""
    return Fault(f"cut at {offset}", then_close(STREAM[:offset]), ModelUnavailable)


OFFSETS = range(_LAST_NEEDED - 1)
"""Where a cut leaves an answer whose end was not told."""

_RIGHT_ROW = [1.0, 0.0]

EMBEDDED = [
    *(
        fault._replace(outcome=MalformedAnswer) if fault.name == "no choices" else fault
        for fault in _everywhere(embeddings([_RIGHT_ROW]))
    ),
    Fault("no rows", embeddings([]), MalformedAnswer),
    Fault("too many rows", embeddings([_RIGHT_ROW, _RIGHT_ROW]), MalformedAnswer),
    Fault("an empty row", embeddings([[]]), MalformedAnswer),
    Fault("another length", embeddings([[1.0, 0.0, 0.0]]), MalformedAnswer),
    Fault("NaN", embeddings([[float("nan"), 1.0]]), MalformedAnswer),
    Fault("-Infinity", embeddings([[float("-inf"), 1.0]]), MalformedAnswer),
    Fault("zeros", embeddings([[0.0, 0.0]]), MalformedAnswer),
    Fault("null", http({"data": [{"index": 0, "embedding": None}]}), MalformedAnswer),
]
