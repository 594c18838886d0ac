"""Journals as a session writes them, without a session."""

from collections.abc import Callable
from datetime import timedelta

from assay.guards.protocols import Decision, Judgement, Ledger, ToolCall
from assay.runtime.commands import AnyCommand, Complete, Found, Remember, Retrieve, ToolResult
from assay.runtime.events import (
    AnyEvent,
    CandidatesRetrieved,
    CommandFailed,
    GuardDecided,
    MemoriesWritten,
    MessageReceived,
    ReplyProduced,
    ToolResultsReceived,
)
from assay.runtime.reducer import State, reduce
from assay.stores.records import RecordId, TurnId

from .support import NOW

FOUND = (Found(RecordId("r1"), 0.9), Found(RecordId("r2"), 0.4))
CALL = ToolCall(id="c1", name="weather", arguments='{"city": "Porto"}')
RESULT = ToolResult(call=CALL, output="rain")
DECISION = Decision(
    method="panel",
    judgements=(
        Judgement(record_id=RecordId("r1"), admitted=True, reason="bears on it", method="panel"),
        Judgement(record_id=RecordId("r2"), admitted=False, reason="contradicted", method="panel"),
    ),
    spent=Ledger(evaluations=3, live=3, tokens=90),
)


def message(number: int = 0, text: str = "I live in Porto.") -> MessageReceived:
    return MessageReceived(turn_id=TurnId(f"s/{number}"), number=number, text=text, at=NOW)


def results(number: int = 0, exchange: int = 1) -> ToolResultsReceived:
    turn = TurnId(f"s/{number}")
    return ToolResultsReceived(turn_id=turn, exchange=exchange, at=NOW, results=(RESULT,))


def failed(command: AnyCommand) -> CommandFailed:
    return CommandFailed(
        turn_id=command.turn_id,
        exchange=command.exchange,
        at=NOW,
        command="complete",
        kind="ModelUnavailable",
        message="endpoint is down",
    )


def carried_out(command: AnyCommand, *, calls: bool = False) -> AnyEvent:
    """The event of a command that went well; the first reply asks for a tool where ``calls``."""
    at, turn, exchange = command.at + timedelta(seconds=1), command.turn_id, command.exchange
    if isinstance(command, Retrieve):
        return CandidatesRetrieved(turn_id=turn, exchange=exchange, at=at, found=FOUND)
    if isinstance(command, Complete):
        return ReplyProduced(
            turn_id=turn,
            exchange=exchange,
            at=at,
            text="Noted.",
            ledger=command.spent + Ledger(live=1),
            tool_calls=(CALL,) if calls and exchange == 0 else (),
        )
    if isinstance(command, Remember):
        archived = 2 if exchange == 0 else 1 + len(command.results)
        return MemoriesWritten(turn_id=turn, exchange=exchange, at=at, archived=archived)
    return GuardDecided(
        turn_id=turn, exchange=exchange, at=at, decision=DECISION, recent_tokens=512
    )


def play(
    state: State,
    event: AnyEvent,
    carry_out: Callable[[AnyCommand], AnyEvent] = carried_out,
) -> tuple[State, list[AnyEvent]]:
    """Run from an outside event until nothing is asked for; gives all events, the first included."""
    events = [event]
    state, command = reduce(state, event)
    while command is not None:
        events.append(carry_out(command))
        state, command = reduce(state, events[-1])
    return state, events


def with_tools(command: AnyCommand) -> AnyEvent:
    return carried_out(command, calls=True)
