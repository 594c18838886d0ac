"""What an exchange leaves behind: archived turns, and records of what was stated. Pure.

The user's statements become records of the user's; a tool's result becomes one record with its
call. The assistant's own words are archived and never become records, so nothing that was recalled
comes back as new, and telling a thing again neither refreshes it nor counts as a second witness.

Everything is a function of the command alone: carried out twice, it writes the same.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from assay.runtime.commands import Remember, ToolResult
from assay.runtime.statements import LONGEST, MOST, same_words, statements
from assay.stores.records import (
    ArchiveTurn,
    MemoryRecord,
    Namespace,
    Origin,
    RecordId,
    SessionId,
    TurnId,
    Writer,
)

_PART = re.compile(r":(?:reply\d+|tool\d+\.\d+)$")


class Leavings(NamedTuple):
    """What is to be written: turns for the archive, records for the store."""

    turns: list[ArchiveTurn]
    records: list[MemoryRecord]


class _Said(NamedTuple):
    """One message for the archive; what of it becomes records."""

    speaker: str
    text: str
    at: datetime
    suffix: str
    facts: tuple[str, ...]
    writer: Writer
    channel: str


def leavings(
    command: Remember, *, namespace: Namespace, session: SessionId, recalled: Iterable[str]
) -> Leavings:
    """What an exchange leaves behind.

    Args:
        command: The exchange.
        namespace: Whose memory.
        session: Which session.
        recalled: Texts the prompt may have shown; a statement that repeats one is not written.
    """
    known = {same_words(text) for text in recalled}
    turns: list[ArchiveTurn] = []
    records: list[MemoryRecord] = []
    for said in _said(command):
        turn = _turn(said, command, namespace, session, command.position + len(turns))
        turns.append(turn)
        for ordinal, fact in enumerate(said.facts):
            if same_words(fact) not in known:
                known.add(same_words(fact))
                records.append(_record(fact, said, turn, ordinal))
    return Leavings(turns, records)


def states_something(command: Remember) -> bool:
    """Whether an exchange may leave a record behind."""
    return bool(command.results) or bool(statements(command.text))


def record_id(namespace: Namespace, turn: TurnId, ordinal: int) -> RecordId:
    """The id of the ``ordinal``-th record taken from an archived turn: 60 bits, no meaning."""
    name = "\0".join((namespace, turn, str(ordinal))).encode()
    digest = hashlib.blake2s(name, digest_size=8).digest()
    return RecordId("m" + base64.b32encode(digest).decode().lower()[:12])


def turn_of(part: TurnId) -> TurnId:
    """The turn an archived message belongs to; the user's message has the turn's own id."""
    return TurnId(_PART.sub("", part))


def ids_from(turn: ArchiveTurn) -> list[RecordId]:
    """Every id a record taken from this turn may have."""
    return [record_id(turn.namespace, turn.id, ordinal) for ordinal in range(MOST)]


def _said(command: Remember) -> Iterator[_Said]:
    if command.exchange == 0:
        facts = tuple(statements(command.text))
        yield _Said("user", command.text, command.said_at, "", facts, "user", "chat")
    for k, result in enumerate(command.results):
        text = _unit(result)
        suffix = f":tool{command.exchange}.{k}"
        channel = f"tool:{result.call.name}"
        yield _Said("tool", text, command.at, suffix, (_short(text),), "tool", channel)
    if command.reply.strip():
        suffix = f":reply{command.exchange}"
        yield _Said("assistant", command.reply, command.at, suffix, (), "assistant", "chat")


def _unit(result: ToolResult) -> str:
    return f"{result.call.name}({result.call.arguments}) gave: {result.output}"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 6] + " [cut]"


def _turn(
    said: _Said, command: Remember, namespace: Namespace, session: SessionId, position: int
) -> ArchiveTurn:
    return ArchiveTurn(
        id=TurnId(command.turn_id + said.suffix),
        namespace=namespace,
        session=session,
        position=position,
        speaker=said.speaker,
        text=said.text,
        at=said.at,
    )


def _record(fact: str, said: _Said, turn: ArchiveTurn, ordinal: int) -> MemoryRecord:
    return MemoryRecord(
        id=record_id(turn.namespace, turn.id, ordinal),
        namespace=turn.namespace,
        text=fact,
        origin=Origin(writer=said.writer, channel=said.channel, source_turn=turn.id),
        ingested_at=said.at,
    )
