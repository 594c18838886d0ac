"""A journal told as a scenario: turns with what came of them, and the bank as it was. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import json

from assay.guards.protocols import Judgement
from assay.runtime.events import (
    AnyEvent,
    CommandFailed,
    GuardDecided,
    MemoriesWritten,
    MessageReceived,
    ReplyProduced,
    ToolResultsReceived,
)
from assay.scenarios.cases.schema import Expected, Memory, Past, Turn
from assay.stores.records import ArchiveTurn, MemoryRecord, RecordId, SessionId

_WORD = re.compile(r"[a-z0-9]+")
_WORDS_OF_A_NAME = 4


class Told:
    """A conversation and the bank around it, in the words of a scenario.

    Args:
        session: Which conversation.
        messages: What the user said in it, oldest first; at least one.
        events: All its events.
        records: The user's records that are still there.
        archived: The user's past messages.
    """

    def __init__(
        self,
        session: SessionId,
        messages: Sequence[MessageReceived],
        events: Sequence[AnyEvent],
        records: Mapping[RecordId, MemoryRecord],
        archived: Sequence[ArchiveTurn],
    ) -> None:
        self._session = session
        self._messages = messages
        self._events = [e for e in events if e.turn_id in {m.turn_id for m in messages}]
        self._last = max(event.at for event in self._events)
        written = [event for event in self._events if isinstance(event, MemoriesWritten)]
        self._left = {name for event in written for name in event.record_ids}
        # What came in later was not there yet.
        self._records = {k: r for k, r in records.items() if r.ingested_at <= self._last}
        self._archived = [
            turn for turn in archived if turn.session != session and turn.at <= self._last
        ]
        self._names = _named(self._records.values())

    @property
    def guard(self) -> str:
        """Who decided last; empty if nobody did."""
        methods = [e.decision.method for e in self._events if isinstance(e, GuardDecided)]
        return methods[-1] if methods else ""

    def memories(self) -> tuple[Memory, ...]:
        """The records that the conversation itself did not leave behind."""
        return tuple(
            self._memory(record) for name, record in self._records.items() if name not in self._left
        )

    def past(self) -> tuple[Past, ...]:
        """The messages of other sessions."""
        return tuple(
            Past(id=turn.id, text=turn.text, speaker=turn.speaker, session=turn.session, at=turn.at)
            for turn in self._archived
        )

    def turns(self) -> tuple[Turn, ...]:
        """Each message with what came of it."""
        return tuple(self._turn(message) for message in self._messages)

    def _memory(self, record: MemoryRecord) -> Memory:
        source = record.origin.source_turn
        known = {turn.id for turn in self._archived}
        old = record.supersedes
        return Memory(
            id=self._names[record.id],
            text=record.text,
            writer=record.origin.writer,
            channel=record.origin.channel,
            at=record.ingested_at,
            claimed_at=record.claimed_at,
            valid_from=record.valid_from,
            valid_to=record.valid_to,
            supersedes=self._names.get(old, "") if old else "",
            turn=source if source and source in known else "",
        )

    def _turn(self, message: MessageReceived) -> Turn:
        of_turn = [event for event in self._events if event.turn_id == message.turn_id]
        return Turn(
            say=message.text,
            session=self._session,
            at=message.at,
            tools=json.decode(message.tools, type=tuple[dict[str, object], ...])
            if message.tools
            else (),
            tool_outputs={
                result.call.name: result.output
                for event in of_turn
                if isinstance(event, ToolResultsReceived)
                for result in event.results
            },
            expect=self._expected(of_turn),
        )

    def _expected(self, events: Sequence[AnyEvent]) -> Expected:
        decided = [event for event in events if isinstance(event, GuardDecided)]
        replies = [event for event in events if isinstance(event, ReplyProduced)]
        failed = [event for event in events if isinstance(event, CommandFailed)]
        decision = decided[-1].decision if decided else None
        reply = replies[-1] if replies else None
        return Expected(
            admitted=self._of(decision.admitted) if decision else (),
            withheld=self._of(decision.withheld) if decision else (),
            flagged=self._of([j for j in decision.admitted if j.flagged]) if decision else (),
            answer_contains=(reply.text,) if reply and reply.text else (),
            asks_back=True if decision and decision.ask else None,
            tool_calls=tuple(c.name for c in reply.tool_calls)
            if reply and reply.tool_calls
            else None,
            remembers=dict(self._remembered(events)),
            fallback=decision.fallback if decision else "",
            fails=failed[-1].kind if failed else "",
        )

    def _of(self, judgements: Sequence[Judgement]) -> tuple[str, ...]:
        """Names of judged records; one that was forgotten since has none and is left out."""
        return tuple(self._names[j.record_id] for j in judgements if j.record_id in self._names)

    def _remembered(self, events: Sequence[AnyEvent]) -> Iterator[tuple[str, str]]:
        for event in events:
            if isinstance(event, MemoriesWritten):
                for name in event.record_ids:
                    if name in self._records:
                        yield self._names[name], self._records[name].text


def _named(records: Iterable[MemoryRecord]) -> dict[RecordId, str]:
    """A readable name for each record: its first words, and a number where they are taken."""
    names: dict[RecordId, str] = {}
    for record in records:
        words = _WORD.findall(record.text.lower())[:_WORDS_OF_A_NAME]
        name = base = "-".join(words) or "record"
        number = 1
        while name in names.values():
            number += 1
            name = f"{base}-{number}"
        names[record.id] = name
    return names
