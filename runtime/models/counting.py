"""Token counts without a tokenizer: bounds from above, so that what is reserved always suffices."""

from collections.abc import Sequence

from assay.errors import ContextOverflow, ModelRefused
from assay.guards.protocols import ChatModel, Message, Request

MESSAGE_TOKENS = 16
"""Tokens a chat template may add around one message: role, fences, line breaks."""

PROMPT_TOKENS = 64
"""Tokens a chat template may add once: start of text, default instructions, the answer's opening."""


def bound_tokens(messages: Sequence[Message]) -> int:
    """At most this many tokens, for every tokenizer that falls back to bytes.

    A token stands for at least one byte of UTF-8, so the bytes bound the tokens; typical English
    takes about a quarter of it.
    """
    return PROMPT_TOKENS + sum(MESSAGE_TOKENS + text_bytes(message) for message in messages)


def text_bytes(message: Message) -> int:
    """Bytes of all the text a message carries, its tool calls included."""
    calls = sum(_bytes(call.name) + _bytes(call.arguments) for call in message.tool_calls)
    return _bytes(message.content) + calls


def require_room(model: ChatModel, request: Request) -> None:
    """Refuse a request whose prompt and answer do not fit the model's context.

    Raises:
        ContextOverflow: If they do not fit; nothing was sent.
        ModelRefused: If a message holds half a surrogate pair, which no encoding can carry.
    """
    _require_text(request)
    tools = _bytes(request.parameters.tools)
    prompt = model.count_tokens(request.messages) + tools
    wanted = prompt + request.parameters.max_tokens
    if wanted > model.context_tokens:
        raise ContextOverflow(
            f"the prompt takes up to {prompt} tokens and the answer {request.parameters.max_tokens}, "
            f"the context of {model.identity} is {model.context_tokens}; "
            "show less, or raise model.context_tokens if the model takes more"
        )


def _require_text(request: Request) -> None:
    for message in request.messages:
        try:
            message.content.encode()
        except UnicodeEncodeError as error:
            raise ModelRefused(
                f"a {message.role} message holds half a surrogate pair at character {error.start}; "
                "nothing was sent"
            ) from error


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
