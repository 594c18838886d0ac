"""What a record's erasure has to reach beside the record: the words it came from, and what repeats it.

A record is a part of something that was said. The archived turn it was taken from goes, the
journal's text of it, every reply that was written while the prompt showed record or turn, and
whatever says the same words. The journal keeps ids, times, decisions and costs.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple, TypeAlias, assert_never

import msgspec

from assay.guards.protocols import ToolCall
from assay.runtime.commands import ToolResult
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
    decode,
    encode,
)
from assay.runtime.remember import turn_of
from assay.runtime.streams import session_of, stream_of
from assay.stores.erasure import erase
from assay.stores.protocols import Bank, ReplacedEntry
from assay.stores.records import (
    ArchiveTurn,
    MemoryRecord,
    Namespace,
    RecordId,
    SessionId,
    TurnId,
)

ERASED = "[erased]"
"""What the journal says in the place of an erased text."""

_SHORTEST = 12
"""Characters of a text that is looked for inside of others; shorter ones say too little."""

_Hits: TypeAlias = set[TurnId]


class Words(NamedTuple):
    """Turns and journal entries that hold an erased record's words."""

    turn_ids: tuple[TurnId, ...]
    entries: tuple[ReplacedEntry, ...]


class _Reach(NamedTuple):
    """Turns whose user's words go, and turns whose replies and tool results go."""

    said: _Hits
    replied: _Hits


async def words_of(bank: Bank, namespace: Namespace, records: Sequence[MemoryRecord]) -> Words:
    """Where the words of records stand in the archive and in the journal of their namespace.

    Args:
        bank: Where.
        namespace: Whose.
        records: All that are to be erased, the derived ones included.
    """
    return await _words(bank, namespace, _Traces.of(records))


async def _words(bank: Bank, namespace: Namespace, traces: "_Traces") -> Words:
    reach = _Reach(set(), set())
    entries: list[ReplacedEntry] = []
    for stream in await streams_of(bank, namespace):
        history = [(e, decode(e.payload)) for e in await bank.journal.read(stream)]
        _extend(reach, traces, [event for _, event in history])
        for entry, event in history:
            left = _without(event, traces, reach)
            if left != event:
                entries.append(ReplacedEntry(stream, entry.sequence, encode(left)))
    turns = await bank.archive.all(namespace)
    doomed = tuple(turn.id for turn in turns if _goes(turn, traces, reach))
    return Words(doomed, tuple(entries))


async def erase_again(bank: Bank, namespace: Namespace, gone: Collection[RecordId]) -> None:
    """Erase what a turn wrote of records that were erased while it ran: its reply may repeat them.

    Args:
        bank: Where.
        namespace: Whose.
        gone: Records that are not there any more; what they said is not known any more either.

    Raises:
        StoreError: If a place could not be reached.
    """
    words = await _words(bank, namespace, _Traces(ids=frozenset(gone)))
    await erase(bank, namespace, [*gone], turn_ids=words.turn_ids, entries=words.entries)


async def erase_turn(bank: Bank, namespace: Namespace, turn_id: TurnId) -> None:
    """Erase what a turn wrote while its user was erased: it may have come after the erasure.

    Args:
        bank: Where.
        namespace: Whose.
        turn_id: Of a session that was erased; no turn of it is ever taken again.

    Raises:
        StoreError: If a place could not be reached.
    """
    turns = [turn.id for turn in await bank.archive.all(namespace) if turn_of(turn.id) == turn_id]
    changes = await bank.store.changes(namespace, after=0)
    records = [
        record.id
        for record in changes.records
        if record.origin.source_turn and turn_of(record.origin.source_turn) == turn_id
    ]
    await erase(bank, namespace, records, turn_ids=(turn_id, *turns))


async def streams_of(bank: Bank, namespace: Namespace) -> list[SessionId]:
    """The journal's names of a user's sessions."""
    own = stream_of(namespace, "")
    streams = await bank.journal.sessions()
    return [stream for stream in streams if stream.startswith(own) and session_of(stream)]


class _Traces(NamedTuple):
    """By what erased records are known again: ids, the turns they came from, their words."""

    ids: frozenset[RecordId]
    sources: frozenset[TurnId] = frozenset()
    texts: tuple[str, ...] = ()

    @classmethod
    def of(cls, records: Sequence[MemoryRecord]) -> "_Traces":
        """Those of records that are still there."""
        texts = (_plain(record.text) for record in records)
        return cls(
            ids=frozenset(record.id for record in records),
            sources=frozenset(r.origin.source_turn for r in records if r.origin.source_turn),
            texts=tuple(text for text in texts if len(text) >= _SHORTEST),
        )

    def says(self, text: str) -> bool:
        """Whether a text holds the words of one."""
        plain = _plain(text)
        return any(words in plain for words in self.texts)


def _plain(text: str) -> str:
    return " ".join(text.replace("\\n", " ").replace('\\"', '"').casefold().split()).rstrip(".!?")


def _extend(reach: _Reach, traces: _Traces, events: Sequence[AnyEvent]) -> None:
    """Take in what of one session goes, in the order it happened."""
    was_said = False
    for event in events:
        match event:
            case MessageReceived(turn_id=turn):
                if turn in traces.sources or traces.says(event.text):
                    reach.said.add(turn)
                    was_said = True
                if was_said:  # the prompts of this and later turns showed it
                    reach.replied.add(turn)
            case CandidatesRetrieved(turn_id=turn):
                if any(found.record_id in traces.ids for found in event.found):
                    reach.replied.add(turn)
            case _ if _has_source(event, traces):
                reach.replied.add(event.turn_id)
                was_said = True
            case _:
                pass


def _has_source(event: AnyEvent, traces: _Traces) -> bool:
    parts = {turn_of(source) for source in traces.sources}
    return isinstance(event, ToolResultsReceived) and event.turn_id in parts


def _goes(turn: ArchiveTurn, traces: _Traces, reach: _Reach) -> bool:
    if turn.id in traces.sources or traces.says(turn.text):
        return True
    is_spoken = turn_of(turn.id) == turn.id
    return turn.id in reach.said if is_spoken else turn_of(turn.id) in reach.replied


def _without(event: AnyEvent, traces: _Traces, reach: _Reach) -> AnyEvent:
    """The event without the words that go."""
    if isinstance(event, MessageReceived):
        said = event.turn_id in reach.said
        return msgspec.structs.replace(event, text=ERASED) if said else event
    if event.turn_id in reach.replied or _repeats(event, traces):
        return _blanked(event)
    return event


def _repeats(event: AnyEvent, traces: _Traces) -> bool:
    match event:
        case ReplyProduced():
            return traces.says(event.text)
        case ToolResultsReceived():
            return any(traces.says(result.output) for result in event.results)
        case _:
            return False


def _blanked(event: AnyEvent) -> AnyEvent:
    replace = msgspec.structs.replace
    match event:
        case MessageReceived():
            return replace(event, text=ERASED)
        case ReplyProduced():
            calls = tuple(_blank(call) for call in event.tool_calls)
            return replace(event, text=ERASED if event.text else "", tool_calls=calls)
        case ToolResultsReceived():
            blank = tuple(ToolResult(call=_blank(r.call), output=ERASED) for r in event.results)
            return replace(event, results=blank)
        case CommandFailed():
            return replace(event, message=ERASED)
        case GuardDecided():
            return _decided_without(event)
        case CandidatesRetrieved() | MemoriesWritten() | TurnCancelled():
            return event
        case _:
            assert_never(event)


def _decided_without(event: GuardDecided) -> GuardDecided:
    """Reasons hold no record's text, but a question to the user and a failure may."""
    replace = msgspec.structs.replace
    decision = event.decision
    left = replace(
        decision,
        ask=ERASED if decision.ask else "",
        failure=ERASED if decision.failure else "",
    )
    return replace(event, decision=left)


def _blank(call: ToolCall) -> ToolCall:
    return msgspec.structs.replace(call, arguments="{}")
