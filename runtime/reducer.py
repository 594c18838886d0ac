"""What follows from what has happened: ``(state, event) -> (state, command | None)``. Pure.

::

    MessageReceived      -> Retrieve
    CandidatesRetrieved  -> Review
    GuardDecided         -> Complete
    ReplyProduced        -> Remember
    MemoriesWritten      -> nothing: the turn is over, or waits for the results of tool calls
    ToolResultsReceived  -> Complete
    CommandFailed        -> Remember: what the user said is kept though no reply came; then the turn is over
    TurnCancelled        -> nothing: the turn is over

An event that answers no open question (a second delivery, one of an earlier turn) changes nothing.
"""

from collections.abc import Iterable
from typing import NamedTuple, assert_never

import msgspec

from assay.guards.protocols import Decision
from assay.runtime.commands import (
    AnyCommand,
    Complete,
    Remember,
    Retrieve,
    Review,
    Shown,
    ToolResult,
)
from assay.runtime.events import (
    AnyEvent,
    CandidatesRetrieved,
    CommandFailed,
    GuardDecided,
    MemoriesWritten,
    MessageReceived,
    ReplyProduced,
    ToolResultsReceived,
    TurnCancelled,
)

SHOWN_TURNS = 40
"""Turns of a session whose shown records are known; as many as a prompt may look back."""


class State(msgspec.Struct, frozen=True, kw_only=True):
    """All a session is, rebuilt from its journal.

    Attributes:
        messages: User messages received.
        archived: Turns in the session's archive.
        open: The message being answered; ``None`` between turns.
        pending: The command whose event is awaited; carried out again after a crash.
        decided: The decision of the open or last turn.
        reply: The latest reply of the open or last turn.
        awaiting: The completion whose tool calls still lack their results.
        failure: Why the last turn failed, if it did.
        shown: Records that recent replies drew on, oldest first.
        last_decision: The latest decision of any turn, which ``last_decision`` falls back to.
    """

    messages: int = 0
    archived: int = 0
    open: MessageReceived | None = None
    pending: AnyCommand | None = None
    decided: GuardDecided | None = None
    reply: ReplyProduced | None = None
    awaiting: Complete | None = None
    failure: CommandFailed | TurnCancelled | None = None
    shown: tuple[Shown, ...] = ()
    last_decision: Decision | None = None


class Step(NamedTuple):
    """The state after an event, and the one command it asks for."""

    state: State
    command: AnyCommand | None


def reduce(state: State, event: AnyEvent) -> Step:
    """Take one event in."""
    match event:
        case MessageReceived() | ToolResultsReceived():
            after = _from_outside(state, event)
        case CommandFailed():
            after = _failed(state, event)
        case TurnCancelled():
            after = _cancelled(state, event)
        case CandidatesRetrieved() | GuardDecided() | ReplyProduced() | MemoriesWritten():
            after = _answer(state, event)
        case _:
            assert_never(event)
    return Step(state, None) if after is None else Step(after, after.pending)


def rebuild(events: Iterable[AnyEvent]) -> State:
    """The state a journal leads to; its ``pending`` names the next step."""
    state = State()
    for event in events:
        state = reduce(state, event).state
    return state


def _from_outside(state: State, event: MessageReceived | ToolResultsReceived) -> State | None:
    if state.pending is not None:
        return None
    if isinstance(event, MessageReceived):
        return _message(state, event) if event.number == state.messages else None
    return _tool_results(state, event)


def _message(state: State, event: MessageReceived) -> State:
    command = Retrieve(
        turn_id=event.turn_id,
        text=event.text,
        said_at=event.at,
        at=event.at,
        tools=event.tools,
    )
    return State(
        messages=state.messages + 1,
        archived=state.archived,
        open=event,
        pending=command,
        shown=state.shown,
        last_decision=state.last_decision,
    )


def _tool_results(state: State, event: ToolResultsReceived) -> State | None:
    last = state.awaiting
    if last is None or (last.turn_id, last.exchange + 1) != (event.turn_id, event.exchange):
        return None
    again = msgspec.structs.replace(
        last, exchange=event.exchange, at=event.at, results=(*last.results, event.results)
    )
    return msgspec.structs.replace(state, pending=again, awaiting=None)


def _answer(
    state: State,
    event: CandidatesRetrieved | GuardDecided | ReplyProduced | MemoriesWritten,
) -> State | None:
    pending = state.pending
    if pending is None or not _belongs(pending, event):
        return None
    match pending, event:
        case Retrieve(), CandidatesRetrieved():
            return msgspec.structs.replace(state, pending=_review(state, pending, event))
        case Review(), GuardDecided():
            return _decided(state, pending, event)
        case Complete(), ReplyProduced():
            return _replied(state, pending, event)
        case Remember(), MemoriesWritten():
            return _remembered(state, pending, event)
        case _:
            return None


def _belongs(pending: AnyCommand, event: AnyEvent) -> bool:
    return (pending.turn_id, pending.exchange) == (event.turn_id, event.exchange)


def _review(state: State, pending: Retrieve, event: CandidatesRetrieved) -> Review:
    return Review(
        turn_id=pending.turn_id,
        text=pending.text,
        said_at=pending.said_at,
        at=event.at,
        found=event.found,
        last_decision=state.last_decision,
        shown=state.shown,
        tools=pending.tools,
    )


def _decided(state: State, pending: Review, event: GuardDecided) -> State:
    command = Complete(
        turn_id=pending.turn_id,
        text=pending.text,
        said_at=pending.said_at,
        at=event.at,
        found=pending.found,
        decision=event.decision,
        recent_tokens=event.recent_tokens,
        spent=event.decision.spent,
        shown=pending.shown,
        tools=pending.tools,
    )
    admitted = tuple(judgement.record_id for judgement in event.decision.admitted)
    return msgspec.structs.replace(
        state,
        pending=command,
        decided=event,
        last_decision=event.decision,
        shown=(*state.shown, Shown(pending.turn_id, admitted))[-SHOWN_TURNS:],
    )


def _replied(state: State, pending: Complete, event: ReplyProduced) -> State:
    command = Remember(
        turn_id=pending.turn_id,
        exchange=pending.exchange,
        text=pending.text,
        said_at=pending.said_at,
        at=event.at,
        position=state.archived,
        found=pending.found,
        reply=event.text,
        calls=event.tool_calls,
        results=_latest_results(pending),
    )
    again = msgspec.structs.replace(pending, spent=event.ledger) if event.tool_calls else None
    return msgspec.structs.replace(state, pending=command, reply=event, awaiting=again)


def _remembered(state: State, pending: Remember, event: MemoriesWritten) -> State:
    return msgspec.structs.replace(
        state,
        archived=state.archived + event.archived,
        pending=None,
        open=state.open if pending.calls else None,
    )


def _failed(state: State, event: CommandFailed) -> State | None:
    pending = state.pending
    if pending is None or not _belongs(pending, event):
        return None
    failure = state.failure or event
    if isinstance(pending, Remember):
        return msgspec.structs.replace(
            state, open=None, pending=None, awaiting=None, failure=failure
        )
    command = Remember(
        turn_id=pending.turn_id,
        exchange=pending.exchange,
        text=pending.text,
        said_at=pending.said_at,
        at=event.at,
        position=state.archived,
        found=() if isinstance(pending, Retrieve) else pending.found,
        reply="",
        results=_latest_results(pending),
    )
    return msgspec.structs.replace(state, pending=command, failure=failure)


def _latest_results(command: AnyCommand) -> tuple[ToolResult, ...]:
    """The tool results the exchange under way was begun with."""
    if isinstance(command, Complete) and command.results:
        return command.results[-1]
    return ()


def _cancelled(state: State, event: TurnCancelled) -> State | None:
    if state.pending is None or not _belongs(state.pending, event):
        return None
    return msgspec.structs.replace(state, open=None, pending=None, awaiting=None, failure=event)
