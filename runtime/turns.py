"""Past turns as the journal has them: what was said, proposed, asked, decided, answered and kept."""

from collections.abc import Iterable
from datetime import datetime
from typing import assert_never

import msgspec

from assay.guards.protocols import Ledger
from assay.runtime.commands import Found
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
from assay.stores.records import RecordId, SessionId, TurnId


class PastTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn, as far as it got.

    Attributes:
        id: The turn, and its decision.
        session: Where it happened.
        at: When the user spoke.
        text: What the user said.
        found: Candidates in prompt order; empty before they were retrieved.
        decided: What the guard decided; ``None`` if the turn did not get that far.
        replies: What was answered; several where tools were called in between.
        written: Records it left behind.
        failure: Why no reply came.
    """

    id: TurnId
    session: SessionId
    at: datetime
    text: str
    found: tuple[Found, ...] = ()
    decided: GuardDecided | None = None
    replies: tuple[ReplyProduced, ...] = ()
    written: tuple[RecordId, ...] = ()
    failure: CommandFailed | TurnCancelled | None = None

    @property
    def spent(self) -> Ledger:
        """What the turn cost, replies included where there are any."""
        if self.replies:
            return self.replies[-1].ledger
        return self.decided.decision.spent if self.decided else Ledger()


def past_turns(session: SessionId, events: Iterable[AnyEvent]) -> list[PastTurn]:
    """The turns of a session's journal, oldest first."""
    turns: dict[TurnId, PastTurn] = {}
    for event in events:
        if isinstance(event, MessageReceived):
            turns[event.turn_id] = PastTurn(
                id=event.turn_id, session=session, at=event.at, text=event.text
            )
        elif event.turn_id in turns:
            turns[event.turn_id] = _with(turns[event.turn_id], event)
    return list(turns.values())


def _with(turn: PastTurn, event: AnyEvent) -> PastTurn:
    replace = msgspec.structs.replace
    match event:
        case CandidatesRetrieved():
            return replace(turn, found=event.found)
        case GuardDecided():
            return replace(turn, decided=event)
        case ReplyProduced():
            return replace(turn, replies=(*turn.replies, event))
        case MemoriesWritten():
            return replace(turn, written=(*turn.written, *event.record_ids))
        case CommandFailed() | TurnCancelled():
            return replace(turn, failure=turn.failure or event)
        case MessageReceived() | ToolResultsReceived():
            return turn
        case _:
            assert_never(event)
