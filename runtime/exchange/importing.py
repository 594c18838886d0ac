"""Takes what another system remembered into a bank. Carried out twice, it writes nothing twice."""

import hashlib
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, get_args

from assay.errors import ConfigError
from assay.guards.evidence.trust import trust_of_writer
from assay.runtime.commands import Remember
from assay.runtime.exchange.formats import Contents, Message, Statement
from assay.runtime.facade import Runtime
from assay.runtime.limits import checked_user
from assay.runtime.remember import leavings
from assay.stores.records import Origin, SessionId, TurnId, Writer

WRITERS: tuple[Writer, ...] = get_args(Writer)


class Imported(NamedTuple):
    """What was taken in.

    Attributes:
        records: Statements that are in the bank now, also if they were there before.
        turns: Messages of the archive, likewise.
    """

    records: int
    turns: int


async def take_in(
    runtime: Runtime, contents: Contents, *, user: str, writer: Writer = "user"
) -> Imported:
    """Write a file's statements or conversation into a user's memory.

    A statement keeps the time it claims; its origin says that it was imported and from what. A chat log becomes archived turns and what the user stated in them.

    Args:
        runtime: Holds the bank.
        contents: What was read.
        user: Whose memory; empty: as each statement says.
        writer: Who vouches for the statements; a writer that the file names and that is trusted
            less counts instead, so that a bank given out and taken in again trusts nothing more.

    Raises:
        ConfigError: If nobody says whose a statement is.
        ValueError: If a text cannot be kept.
    """
    if contents.format == "chat":
        return await _conversation(runtime, contents.messages, _whose(user, "", "the chat log"))
    for number, statement in enumerate(contents.statements, start=1):
        await runtime.remember(
            _whose(user, statement.user, f"entry {number}"),
            statement.text,
            origin=_origin(statement, contents, writer),
            claimed_at=statement.claimed_at,
        )
    return Imported(records=len(contents.statements), turns=0)


def _whose(named: str, said: str, what: str) -> str:
    if not (named or said):
        raise ConfigError(f"{what} does not say whose memory it is; name the user with --user")
    return named or said


def _origin(statement: Statement, contents: Contents, writer: Writer) -> Origin:
    channel = ":".join(part for part in ("import", contents.format, statement.channel) if part)
    if statement.channel.startswith("import:"):
        channel = statement.channel
    return Origin(writer=_least_trusted(writer, statement.writer), channel=channel)


def _least_trusted(vouching: Writer, told: str) -> Writer:
    for writer in WRITERS:
        if writer == told and trust_of_writer(writer) < trust_of_writer(vouching):
            return writer
    return vouching


async def _conversation(runtime: Runtime, messages: Sequence[Message], user: str) -> Imported:
    namespace = checked_user(user)
    session = _session_of(messages)
    records, turns = 0, 0
    before = await runtime.bank.archive.recent(namespace, session, limit=len(messages))
    # Imported before: the times it was given then, so that it is found to be the same.
    start = before[0].at if before else runtime.now() - timedelta(seconds=len(messages))
    for number, exchange in enumerate(_exchanges(messages, start)):
        command = Remember(
            turn_id=TurnId(f"{session}/{number}"),
            text=exchange.said,
            said_at=exchange.at,
            at=exchange.at,
            position=turns,
            found=(),
            reply=exchange.reply,
        )
        left = leavings(command, namespace=namespace, session=session, recalled=())
        await runtime.bank.archive.append(left.turns)
        await runtime.bank.store.write(left.records)
        records, turns = records + len(left.records), turns + len(left.turns)
    return Imported(records, turns)


class _Exchange(NamedTuple):
    said: str
    reply: str
    at: datetime


def _exchanges(messages: Sequence[Message], start: datetime) -> Iterator[_Exchange]:
    """What the user said with the answers that followed, in order.

    A log without times begins at ``start``, a second between its messages.
    """
    spoken = [m for m in messages if m.role in {"user", "assistant"} and m.content.strip()]
    said, replies, at = "", list[str](), start
    first = next((i for i, m in enumerate(spoken) if m.role == "user"), 0)
    for place, message in enumerate(spoken[first:]):
        if message.role == "assistant":
            replies.append(message.content)
            continue
        if said:
            yield _Exchange(said, "\n".join(replies), at)
        said, replies = message.content, []
        at = message.at or start + timedelta(seconds=place)
    if said:
        yield _Exchange(said, "\n".join(replies), at)


def _session_of(messages: Sequence[Message]) -> SessionId:
    """The same conversation gets the same name, so importing it again writes nothing twice."""
    digest = hashlib.blake2s(digest_size=6)
    for message in messages:
        digest.update(f"{message.role}\0{message.content}\0".encode())
    return SessionId(f"import-{digest.hexdigest()}")
