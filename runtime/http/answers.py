"""What a client of the OpenAI API gets back. Pure."""

import hashlib
from collections.abc import Sequence
from datetime import datetime

import msgspec

from assay.guards.protocols import Decision, Judgement, ToolCall
from assay.runtime.reply import Reply


def models_body(model: str, created: int) -> dict[str, object]:
    """The list of the one model there is."""
    return {"object": "list", "data": [model_body(model, created)]}


def model_body(model: str, created: int) -> dict[str, object]:
    """A model."""
    return {"id": model, "object": "model", "created": created, "owned_by": "assay"}


def completion_body(reply: Reply, *, name: str, model: str, at: datetime) -> dict[str, object]:
    """A whole answer; no other answer has its name."""
    message: dict[str, object] = {"role": "assistant", "content": reply.text or None}
    if reply.tool_calls:
        message["tool_calls"] = [_call(call) for call in reply.tool_calls]
    elif not reply.text:
        message["content"] = ""
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}
    return {
        **_head(name, model, at, "chat.completion"),
        "choices": [choice],
        "usage": _usage(reply),
        "assay": extension(reply),
    }


def extension(reply: Reply) -> dict[str, object]:
    """The decision: which records were let in and which were not, and why; never their text."""
    return {"decision": reply.turn_id, **_decision(reply.decision), "spent": reply.ledger}


class Chunks:
    """The events of one stream.

    Args:
        name: Of the answer; no other one has it.
        model: As the client calls it.
        at: When it began.
    """

    def __init__(self, name: str, *, model: str, at: datetime) -> None:
        self._head = _head(name, model, at, "chat.completion.chunk")

    def first(self) -> bytes:
        """Who speaks."""
        return self._delta({"role": "assistant", "content": ""})

    def piece(self, text: str) -> bytes:
        """A piece of the text."""
        return self._delta({"content": text})

    def last(self, reply: Reply, *, with_usage: bool) -> bytes:
        """The tool calls, why it ended, the decision, and the end of the stream."""
        events = b""
        if reply.tool_calls:
            events = self._delta({"tool_calls": _numbered(reply.tool_calls)})
        events += self._delta({}, finish=_finish(reply), assay=extension(reply))
        if with_usage:
            events += sse({**self._head, "choices": [], "usage": _usage(reply)})
        return events + b"data: [DONE]\n\n"

    def _delta(self, delta: object, *, finish: str | None = None, **more: object) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse({**self._head, "choices": [choice], **more})


def sse(data: object) -> bytes:
    """One server-sent event."""
    return b"data: " + msgspec.json.encode(data) + b"\n\n"


def _head(name: str, model: str, at: datetime, kind: str) -> dict[str, object]:
    digest = hashlib.blake2s(name.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return {
        "id": f"chatcmpl-{digest}",
        "object": kind,
        "created": int(at.timestamp()),
        "model": model,
    }


def _usage(reply: Reply) -> dict[str, int]:
    usage = reply.usage
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total,
    }


def _finish(reply: Reply) -> str:
    if reply.tool_calls:
        return "tool_calls"
    return "length" if reply.truncated else "stop"


def _call(call: ToolCall) -> dict[str, object]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _numbered(calls: Sequence[ToolCall]) -> list[dict[str, object]]:
    return [{"index": index, **_call(call)} for index, call in enumerate(calls)]


def _decision(decision: Decision) -> dict[str, object]:
    return {
        "method": decision.method,
        "admitted": [_judgement(judgement) for judgement in decision.admitted],
        "withheld": [_judgement(judgement) for judgement in decision.withheld],
        "fallback": decision.fallback,
    }


def _judgement(judgement: Judgement) -> dict[str, object]:
    return {
        "record": judgement.record_id,
        "reason": judgement.reason,
        "method": judgement.method,
        "flagged": judgement.flagged,
    }
