"""From a client's request to a turn: whose, in which conversation, what is new in it. Pure."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.runtime.conversation import Conversation, Spoken
from assay.runtime.http.errors import ApiError
from assay.runtime.http.wire import ChatRequest, WireMessage

USER_HEADER = "x-assay-user"
SESSION_HEADER = "x-assay-session"
REQUEST_HEADER = "idempotency-key"

DEFAULT_USER = "default"
"""Whose memory is used where the client names no user."""

MOST_MESSAGES = 200
"""Messages of a client's history that are looked at, the latest; its budget of tokens cuts further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a client asks for.

    Attributes:
        user: The name the client gives its user.
        session_id: Which conversation.
        text: The latest message of the user.
        times: How often the client's conversation holds this message.
        results: Call id to output, where the client answers tool calls.
        tools: JSON text of the tools; empty: none.
        conversation: What came before, and how to reply.
        followed: What came after the user's message, as part of the history.
        request: The client's name for its wish: sent again, it begins no second turn; empty: none.
    """

    user: str
    session_id: str
    text: str
    times: int
    results: Mapping[str, str]
    tools: str
    conversation: Conversation
    followed: Sequence[Spoken]
    request: str = ""


def asked_of(request: ChatRequest, headers: Mapping[str, str], *, history_tokens: int) -> Asked:
    """Take a request apart.

    Args:
        request: As it came.
        headers: May name the user and the session.
        history_tokens: Estimated tokens of the history that may reach a prompt.

    Raises:
        ApiError: If there is no message to answer.
    """
    spoken = [m for m in request.messages if m.role not in {"system", "developer"}]
    said = [m.text for m in request.messages if m.role in {"system", "developer"} and m.text]
    last = _last_of_user(spoken)
    before, after = spoken[:last], spoken[last + 1 :]
    if after and after[-1].role != "tool":
        raise ApiError(
            400,
            f"the last message must be the user's or a tool's, got one of {after[-1].role!r}",
            code="nothing_to_answer",
            param="messages",
        )
    text, instructions = spoken[last].text, "\n".join(said)
    most = request.max_completion_tokens or request.max_tokens
    return Asked(
        user=request.user or _header(headers, USER_HEADER) or DEFAULT_USER,
        session_id=_header(headers, SESSION_HEADER) or session_named(instructions, spoken),
        text=text,
        times=sum(1 for m in spoken if m.role == "user" and m.text == text),
        results=_results(after),
        tools=_tools(request),
        conversation=Conversation(
            history=_history(before),
            history_tokens=history_tokens,
            instructions=instructions,
            max_tokens=None if most is None else max(1, most),
            temperature=request.temperature,
            stop=_stops(request.stop),
        ),
        followed=_history(after),
        request=_header(headers, REQUEST_HEADER),
    )


def session_named(instructions: str, messages: Sequence[WireMessage]) -> str:
    """The session of a client that names none: a conversation is known by how it began."""
    first = next(message.text for message in messages if message.role == "user")
    name = f"{instructions}\0{first}".encode("utf-8", "surrogatepass")
    return "c" + hashlib.blake2s(name, digest_size=8).hexdigest()


def _last_of_user(messages: Sequence[WireMessage]) -> int:
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].role == "user":
            return place
    raise ApiError(
        400,
        "expected at least one message of the user, got none",
        code="nothing_to_answer",
        param="messages",
    )


def _history(messages: Sequence[WireMessage]) -> list[Spoken]:
    calls = {call.id: call for message in messages for call in message.tool_calls or ()}
    spoken: list[Spoken] = []
    for message in messages[-MOST_MESSAGES:]:
        text = message.text.replace("\0", "")
        if message.role == "tool":
            call = calls.get(message.tool_call_id or "")
            made = f"{call.function.name}({call.function.arguments})" if call else "a tool"
            text = f"{made} gave: {text}"
        if text:
            spoken.append(Spoken(message.role, text))
    return spoken


def _results(after: Sequence[WireMessage]) -> dict[str, str]:
    """The outputs that answer the latest tool calls."""
    results: dict[str, str] = {}
    for message in reversed(after):
        if message.role != "tool":
            break
        results[message.tool_call_id or ""] = message.text
    return results


def _tools(request: ChatRequest) -> str:
    if not request.tools or request.tool_choice == "none":
        return ""
    return "[" + ",".join(bytes(tool).decode() for tool in request.tools) + "]"


def _stops(stop: str | list[str] | None) -> tuple[str, ...]:
    if stop is None:
        return ()
    return (stop,) if isinstance(stop, str) else tuple(stop)


def _header(headers: Mapping[str, str], name: str) -> str:
    """A header's value; names in UTF-8 arrive as Latin-1."""
    value = headers.get(name, "")
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value
