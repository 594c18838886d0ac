"""What a client of the OpenAI API sends, as it stands on the wire."""

from typing import Literal

import msgspec

from assay.runtime.http.errors import ApiError


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a message's content; only text can be used."""

    type: str
    text: str = ""


class CalledFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A function and its arguments, as JSON text."""

    name: str
    arguments: str = "{}"


class Called(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call of an earlier answer."""

    id: str
    function: CalledFunction


class WireMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None
    tool_calls: list[Called] | None = None
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        """Its text.

        Raises:
            ApiError: If a part of it is no text.
        """
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        for part in self.content:
            if part.type != "text":
                raise ApiError(
                    400,
                    f"content of type {part.type!r} cannot be used; send text",
                    code="unsupported_content",
                    param="messages",
                )
        return "\n".join(part.text for part in self.content)


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a stream holds besides."""

    include_usage: bool | None = None


class FormatOfResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The shape of the answer that is wanted."""

    type: str


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The body of ``/v1/chat/completions``; fields that are not here have no effect."""

    model: str
    messages: list[WireMessage]
    user: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: list[msgspec.Raw] | None = None
    tool_choice: str | dict[str, object] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stop: str | list[str] | None = None
    n: int | None = None
    logprobs: bool | None = None
    response_format: FormatOfResponse | None = None


_decoder = msgspec.json.Decoder(ChatRequest)


def decode(body: bytes) -> ChatRequest:
    """The request.

    Raises:
        ApiError: If it is no JSON, lacks a field, or asks for what is not there.
    """
    try:
        request = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, f"the body is no chat request: {error}", code="invalid_body") from error
    _refuse_unsupported(request)
    return request


def _refuse_unsupported(request: ChatRequest) -> None:
    unsupported = {
        "n": request.n not in {None, 1},
        "logprobs": bool(request.logprobs),
        "response_format": request.response_format is not None
        and request.response_format.type != "text",
        "tool_choice": request.tool_choice not in (None, "auto", "none"),
    }
    for field, asked in unsupported.items():
        if asked:
            raise ApiError(
                400,
                f"this service does not support this value of {field!r}; leave the field out",
                code="unsupported_value",
                param=field,
            )
