"""From a conversation in a bank to a scenario: what was remembered, said, decided and answered."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from assay.errors import ScenarioError
from assay.guards.keys import decode_question
from assay.guards.protocols import Completion
from assay.runtime.events import AnyEvent, MessageReceived, decode
from assay.runtime.models.cassette import FORMAT, Cassette, CassetteModel, Entry, Header
from assay.runtime.naming import close_names
from assay.runtime.settings import Settings
from assay.runtime.streams import session_of, stream_of
from assay.scenarios.cases.retelling import Told
from assay.scenarios.cases.schema import Case
from assay.stores.protocols import Bank
from assay.stores.records import MemoryRecord, Namespace, RecordId, SessionId

_USUAL_SEED = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which conversation.

    Attributes:
        user: Whose.
        session: Its id; ``None``: the one with the last message.
        turn: Id or number of its last turn to take; ``None``: all.
        model: A model's name for the scenario; ``None``: as far as the kept answers tell.
        embedder: The value of ``--embedder`` the bank was made with.
        settings: Those the conversation was had with.
    """

    user: Namespace
    session: str | None
    turn: str | None
    model: str | None
    embedder: str
    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A conversation as a scenario.

    Attributes:
        case: The scenario.
        answers: A model that gives the answers the bank has kept; ``None`` where it needs none.
    """

    case: Case
    answers: CassetteModel | None


async def transcript(bank: Bank, wanted: Wanted) -> Transcript:
    """Make a scenario of a conversation; the bank is only read.

    Raises:
        ScenarioError: If there is no such conversation or turn, with the nearest names.
    """
    session, events = await _conversation(bank, wanted)
    messages = _messages(session, events, wanted.turn)
    changes = await bank.store.changes(wanted.user, after=0)
    erased = set(changes.erased)
    records = [record for record in changes.records if record.id not in erased]
    archived = await bank.archive.all(wanted.user)
    told = Told(session, messages, events, _standing(records), archived)
    entries = await _entries(bank, wanted.user)
    model = wanted.model or _model_of(entries)
    case = Case(
        scenario=f"{wanted.user} in session {session}, {len(messages)} messages"[:200],
        user=wanted.user,
        now=messages[0].at,
        model=model,
        guard=told.guard,
        embedder=wanted.embedder,
        seed=_seed_of(entries),
        settings=wanted.settings,
        memory=told.memories(),
        archive=told.past(),
        turn=told.turns(),
    )
    return Transcript(case=case, answers=None if model == "scripted" else _answers(entries))


def _standing(records: Sequence[MemoryRecord]) -> dict[RecordId, MemoryRecord]:
    return {record.id: record for record in records}


async def _conversation(bank: Bank, wanted: Wanted) -> tuple[SessionId, list[AnyEvent]]:
    """The session that was asked for, or the last one, with its events."""
    prefix = stream_of(wanted.user, "")
    known: dict[SessionId, list[AnyEvent]] = {}
    for stream in await bank.journal.sessions():
        if stream.startswith(prefix) and stream != prefix:
            entries = await bank.journal.read(stream)
            known[session_of(stream)] = [decode(entry.payload) for entry in entries]
    if not known:
        raise ScenarioError(f"user {wanted.user!r} has had no conversation in this bank")
    if wanted.session is None:
        return max(known.items(), key=lambda pair: pair[1][-1].at)
    if wanted.session not in known:
        hint = close_names(wanted.session, known)
        raise ScenarioError(f"user {wanted.user!r} has had no session {wanted.session!r}{hint}")
    session = SessionId(wanted.session)
    return session, known[session]


def _messages(
    session: SessionId, events: Sequence[AnyEvent], last: str | None
) -> list[MessageReceived]:
    """What the user said, up to the turn that was asked for."""
    messages = [event for event in events if isinstance(event, MessageReceived)]
    if not messages:
        raise ScenarioError(f"nothing was said in session {session!r}")
    if last is None:
        return messages
    for place, message in enumerate(messages, start=1):
        if last in {message.turn_id, str(message.number)}:
            return messages[:place]
    known = [message.turn_id for message in messages]
    raise ScenarioError(f"session {session!r} has no turn {last!r}{close_names(last, known)}")


async def _entries(bank: Bank, user: Namespace) -> list[Entry]:
    """The answers the bank has kept, with what was asked."""
    entries: list[Entry] = []
    async for row in bank.cache.rows(user):
        question = decode_question(row.request)
        if question.answer is None:
            completion = msgspec.json.decode(row.value, type=Completion)
            entries.append(Entry(request=question.request, completion=completion))
    return entries


def _identity_of(entries: Sequence[Entry]) -> str:
    models = Counter(entry.request.model for entry in entries)
    return models.most_common(1)[0][0] if models else "scripted"


def _model_of(entries: Sequence[Entry]) -> str:
    """The name a user gives the model, from the name it has in the bank: without hash and address."""
    return _identity_of(entries).partition("@")[0]


def _seed_of(entries: Sequence[Entry]) -> int:
    seeds = Counter(entry.request.parameters.seed for entry in entries)
    return seeds.most_common(1)[0][0] if seeds else _USUAL_SEED


def _answers(entries: Sequence[Entry]) -> CassetteModel:
    header = Header(format=FORMAT, identity=_identity_of(entries), context_tokens=0)
    return CassetteModel(Cassette(header, tuple(entries), 0))
