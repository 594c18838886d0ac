"""What the reducer asks for. Each command, carried out, gives exactly one event.

A command holds all its handler needs, may be carried out twice after a crash, and holds ids of
records, never their text.
"""

from datetime import datetime
from typing import Literal, TypeAlias, assert_never

import msgspec

from assay.guards.protocols import Decision, Ledger, ToolCall
from assay.stores.records import RecordId, TurnId


class Found(msgspec.Struct, frozen=True):
    """A candidate by its id; ``score`` as the retriever gave it, in [0, 1]."""

    record_id: RecordId
    score: float


class Shown(msgspec.Struct, frozen=True):
    """The records a past turn's reply may have drawn on."""

    turn_id: TurnId
    record_ids: tuple[RecordId, ...]


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """A call and what it gave: one unit, never stored apart."""

    call: ToolCall
    output: str


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="command"):
    """What every command says.

    Attributes:
        turn_id: The turn it belongs to.
        exchange: How often the model's tool calls were answered in this turn so far.
        text: What the user said.
        said_at: When the user said it.
        at: When the event happened that asks for this command.
    """

    turn_id: TurnId
    exchange: int = 0
    text: str
    said_at: datetime
    at: datetime


class Retrieve(Command, frozen=True, kw_only=True, tag="retrieve"):
    """Find candidates for the user's text.

    Attributes:
        tools: JSON text of the tools the model may call; handed on.
    """

    tools: str = ""


class Review(Command, frozen=True, kw_only=True, tag="review"):
    """Decide which candidates enter the prompt.

    Attributes:
        found: The candidates, in canonical prompt order.
        last_decision: The session's previous decision, for the policy of that name.
        shown: What recent replies of the session drew on.
        tools: JSON text of the tools the model may call.
    """

    found: tuple[Found, ...]
    last_decision: Decision | None = None
    shown: tuple[Shown, ...] = ()
    tools: str = ""


class Complete(Command, frozen=True, kw_only=True, tag="complete"):
    """Write the reply from the admitted candidates.

    Attributes:
        found: The candidates, in canonical prompt order.
        decision: What was decided about them.
        recent_tokens: Budget of the recent turns, as the decision was made under.
        spent: What the turn has spent so far.
        shown: What recent replies of the session drew on.
        results: The model's tool calls of this turn so far, with their results; one tuple each time.
        tools: JSON text of the tools the model may call.
    """

    found: tuple[Found, ...]
    decision: Decision
    recent_tokens: int
    spent: Ledger
    shown: tuple[Shown, ...] = ()
    results: tuple[tuple[ToolResult, ...], ...] = ()
    tools: str = ""


class Remember(Command, frozen=True, kw_only=True, tag="remember"):
    """Write down what this exchange leaves behind.

    Attributes:
        position: Place in the session's archive of the first turn it appends.
        found: Records the prompt may have shown; what repeats one of them is not remembered.
        reply: What the model answered.
        calls: Tool calls the model asked for; not stored before their results are here.
        results: The tool calls this exchange answered, with their results.
    """

    position: int
    found: tuple[Found, ...]
    reply: str
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()


AnyCommand: TypeAlias = Retrieve | Review | Complete | Remember

CommandName: TypeAlias = Literal["retrieve", "review", "complete", "remember"]


def command_name(command: AnyCommand) -> CommandName:
    """The name of a command, as events and logs give it."""
    match command:
        case Retrieve():
            return "retrieve"
        case Review():
            return "review"
        case Complete():
            return "complete"
        case Remember():
            return "remember"
        case _:
            assert_never(command)
