"""What has happened in a session: a closed union, journalled in order. The time is in the event."""

from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

from assay.guards.protocols import Decision, Ledger, ToolCall, Usage
from assay.guards.trace import Intervention
from assay.runtime.commands import CommandName, Found, ToolResult
from assay.stores.records import RecordId, TurnId


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True):
    """What every event says.

    Attributes:
        turn_id: The turn it belongs to.
        exchange: How often the model's tool calls were answered in this turn so far; with the kind
            of the event it names the event, so a second delivery is recognised.
        at: When it happened, UTC.
    """

    turn_id: TurnId
    exchange: int = 0
    at: datetime


class MessageReceived(Event, frozen=True, kw_only=True, tag="message_received"):
    """The user said something.

    Attributes:
        number: Which message of the session it is, from 0.
        text: What was said.
        tools: JSON text of the OpenAI ``tools`` array the model may use; empty: none.
        request: Names the wish it came from; empty: it has no name.
    """

    number: int
    text: str
    tools: str = ""
    request: str = ""


class CandidatesRetrieved(Event, frozen=True, kw_only=True, tag="candidates_retrieved"):
    """Records were proposed; ``found`` is in canonical prompt order."""

    found: tuple[Found, ...] = ()


class GuardDecided(Event, frozen=True, kw_only=True, tag="guard_decided"):
    """The guard, or the policy that acts in its place, has decided.

    Attributes:
        decision: What enters the prompt, and why.
        recent_tokens: Budget of the recent turns it was decided under, in estimated tokens.
        interventions: What the guard asked, in order.
    """

    decision: Decision
    recent_tokens: int
    interventions: tuple[Intervention, ...] = ()


class ReplyProduced(Event, frozen=True, kw_only=True, tag="reply_produced"):
    """The model has answered.

    Attributes:
        text: The reply; may be empty beside ``tool_calls``.
        truncated: Whether it was cut by the limit of tokens.
        tool_calls: Calls the caller is asked to make.
        ledger: What the turn has spent so far, guard included.
        usage: Tokens of this reply alone, also when it came from the cache.
    """

    text: str
    ledger: Ledger
    usage: Usage = Usage()
    truncated: bool = False
    tool_calls: tuple[ToolCall, ...] = ()


class ToolResultsReceived(Event, frozen=True, kw_only=True, tag="tool_results_received"):
    """The caller made the calls; ``exchange`` counts this answer too, ``request`` names its wish."""

    results: tuple[ToolResult, ...]
    request: str = ""


class MemoriesWritten(Event, frozen=True, kw_only=True, tag="memories_written"):
    """The exchange is in the archive, and what is worth remembering in the bank.

    Attributes:
        record_ids: Records written; often none.
        archived: Turns appended to the archive.
    """

    archived: int
    record_ids: tuple[RecordId, ...] = ()


class CommandFailed(Event, frozen=True, kw_only=True, tag="command_failed"):
    """A command, or an observer of the bus, failed; no reply will come.

    Attributes:
        command: Which command, or ``observer``.
        kind: Class name of the cause.
        message: What it said.
    """

    command: CommandName | Literal["observer"]
    kind: str
    message: str


class TurnCancelled(Event, frozen=True, kw_only=True, tag="turn_cancelled"):
    """The caller gave the turn up, or its deadline passed; it will not be resumed."""

    reason: Literal["cancelled", "deadline"]


AnyEvent: TypeAlias = (
    MessageReceived
    | CandidatesRetrieved
    | GuardDecided
    | ReplyProduced
    | ToolResultsReceived
    | MemoriesWritten
    | CommandFailed
    | TurnCancelled
)

_encoder = msgspec.json.Encoder()
_decoder: "msgspec.json.Decoder[AnyEvent]" = msgspec.json.Decoder(AnyEvent)


def encode(event: AnyEvent) -> bytes:
    """An event as the journal keeps it: JSON, the same bytes for the same event."""
    return _encoder.encode(event)


def decode(payload: bytes) -> AnyEvent:
    """An event from the journal.

    Raises:
        msgspec.DecodeError: If the payload is no event of this version.
    """
    return _decoder.decode(payload)
