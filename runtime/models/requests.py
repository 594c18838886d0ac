"""From a ``Request`` to the JSON of the chat-completions protocol."""

import msgspec

from assay.errors import ModelRefused
from assay.guards.protocols import Message, Request


def body_of(request: Request, *, model: str, limit_field: str = "max_tokens") -> dict[str, object]:
    """The JSON body.

    Args:
        request: What is asked.
        model: The model's name at the endpoint.
        limit_field: What the endpoint calls the most tokens of the answer.

    Raises:
        ModelRefused: If ``tools`` is no JSON array.
    """
    parameters = request.parameters
    body: dict[str, object] = {
        "model": model,
        "messages": [_message(message) for message in request.messages],
        limit_field: parameters.max_tokens,
        "temperature": parameters.temperature,
        "seed": parameters.seed,
    }
    if parameters.top_logprobs:
        body |= {"logprobs": True, "top_logprobs": parameters.top_logprobs}
    if parameters.stop:
        body["stop"] = list(parameters.stop)
    if parameters.tools:
        body["tools"] = _tools(parameters.tools)
    return body


def _message(message: Message) -> dict[str, object]:
    body: dict[str, object] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        body["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        body["tool_call_id"] = message.tool_call_id
    return body


def _tools(text: str) -> list[object]:
    try:
        return msgspec.json.decode(text, type=list[object])
    except msgspec.DecodeError as error:
        raise ModelRefused(f"expected tools as a JSON array: {error}") from error
