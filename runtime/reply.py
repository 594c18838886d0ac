"""What a turn gives its caller, and what can be read about past ones."""

from datetime import datetime
from typing import NamedTuple

import msgspec

from assay.guards.protocols import Decision, Ledger, ToolCall, Usage
from assay.runtime.events import AnyEvent, GuardDecided, MessageReceived, ReplyProduced
from assay.runtime.reducer import State
from assay.stores.records import MemoryRecord, SessionId, TurnId


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a message.

    Attributes:
        text: What the model says; may be empty beside ``tool_calls``.
        decision: What was admitted and withheld, and why.
        turn_id: The turn; also the id of its decision.
        tool_calls: Calls the caller is asked to make, and to answer with ``Session.answer_tools``.
        ledger: What the turn has spent, guard included.
        truncated: Whether the text was cut by ``prompt.answer_tokens``.
        usage: Tokens of this reply alone, also when it came from the cache.
    """

    text: str
    decision: Decision
    turn_id: TurnId
    tool_calls: tuple[ToolCall, ...] = ()
    ledger: Ledger = Ledger()
    truncated: bool = False
    usage: Usage = Usage()


class Recall(msgspec.Struct, frozen=True, kw_only=True):
    """What may be told of a user's memory.

    Attributes:
        records: The admitted ones, in prompt order.
        decision: What was admitted and withheld, and why.
    """

    records: tuple[MemoryRecord, ...]
    decision: Decision


class PastDecision(NamedTuple):
    """A decision as the journal has it.

    Attributes:
        id: Of the decision, which is its turn's.
        session: Where it was made.
        at: When.
        question: What the user had said.
        decision: What was decided.
        reply: What was answered; empty if the turn did not get that far.
    """

    id: TurnId
    session: SessionId
    at: datetime
    question: str
    decision: Decision
    reply: str


def reply_of(state: State) -> Reply | None:
    """The reply a state holds, if its last turn got one."""
    if state.reply is None or state.decided is None:
        return None
    return Reply(
        text=state.reply.text,
        decision=state.decided.decision,
        turn_id=state.reply.turn_id,
        tool_calls=state.reply.tool_calls,
        ledger=state.reply.ledger,
        truncated=state.reply.truncated,
        usage=state.reply.usage,
    )


def past_decisions(session: SessionId, events: list[AnyEvent]) -> list[PastDecision]:
    """The decisions of a session's journal, oldest first."""
    questions = {e.turn_id: e.text for e in events if isinstance(e, MessageReceived)}
    replies = {e.turn_id: e.text for e in events if isinstance(e, ReplyProduced)}
    decided = {e.turn_id: e for e in events if isinstance(e, GuardDecided)}
    return [
        PastDecision(
            id=turn,
            session=session,
            at=event.at,
            question=questions.get(turn, ""),
            decision=event.decision,
            reply=replies.get(turn, ""),
        )
        for turn, event in decided.items()
    ]
