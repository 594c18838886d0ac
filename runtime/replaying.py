"""Takes every turn of a journal again, offline, and names where it comes out differently.

Each decision is made from what the bank held then, and each reply written from the decision that the
journal has, so that one divergence does not hide the next.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import msgspec

from assay.errors import AssayError, CassetteMiss
from assay.guards.protocols import Completion, Decision, DeltaSink, Ledger, Message, Request
from assay.runtime.clock import StoppedClock
from assay.runtime.commands import Complete, Review
from assay.runtime.equipment import Equipment
from assay.runtime.events import AnyEvent, GuardDecided, ReplyProduced, decode
from assay.runtime.handlers import Handlers
from assay.runtime.models.cassette import CassetteModel
from assay.runtime.reducer import State, reduce
from assay.runtime.remember import turn_of
from assay.runtime.reviews import Reviews
from assay.runtime.streams import session_of, stream_of
from assay.stores.bank import memory_bank
from assay.stores.protocols import Bank
from assay.stores.records import Namespace, SessionId, TurnId


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """Where a replay differs.

    Attributes:
        turn_id: In which turn.
        field: What differs: a part of the prompt, of the decision, or the reply.
        recorded: As it was.
        asked: As it comes out now.
    """

    turn_id: TurnId
    field: str
    recorded: str
    asked: str


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What was replayed.

    Attributes:
        decisions: Made again.
        replies: Written again.
        divergences: All of them, in order.
    """

    decisions: int = 0
    replies: int = 0
    divergences: tuple[Divergence, ...] = ()


class _Watched:
    """A cassette that remembers the first request it does not know."""

    def __init__(self, cassette: CassetteModel) -> None:
        self._cassette = cassette
        self.unknown: Request | None = None

    @property
    def identity(self) -> str:
        return self._cassette.identity

    @property
    def context_tokens(self) -> int:
        return self._cassette.context_tokens

    def count_tokens(self, messages: Sequence[Message]) -> int:
        return self._cassette.count_tokens(messages)

    async def complete(self, request: Request, *, sink: DeltaSink | None = None) -> Completion:
        try:
            return await self._cassette.complete(request, sink=sink)
        except CassetteMiss:
            self.unknown = self.unknown or request
            raise


async def replay_journal(
    equipment: Equipment, cassette: CassetteModel, namespace: Namespace
) -> Replayed:
    """Replay every session of a namespace.

    Args:
        equipment: The bank, the guard, the settings and the seed of the recorded run; its model is
            not asked.
        cassette: Answers.
        namespace: Whose sessions.

    Raises:
        StoreError: If the bank cannot be read.
    """
    total = Replayed()
    for stream in await equipment.bank.journal.sessions():
        if stream.startswith(stream_of(namespace, "")) and stream != stream_of(namespace, ""):
            one = await _Replay(equipment, cassette, namespace, stream).run()
            total = Replayed(
                decisions=total.decisions + one.decisions,
                replies=total.replies + one.replies,
                divergences=total.divergences + one.divergences,
            )
    return total


class _Replay:
    """One session."""

    def __init__(
        self,
        equipment: Equipment,
        cassette: CassetteModel,
        namespace: Namespace,
        stream: SessionId,
    ) -> None:
        self._equipment = equipment
        self._cassette = cassette
        self._namespace = namespace
        self._stream = stream
        self._over: set[TurnId] = set()

    async def run(self) -> Replayed:
        entries = await self._equipment.bank.journal.read(self._stream)
        state, decisions, replies = State(), 0, 0
        divergences: list[Divergence] = []
        for event in (decode(entry.payload) for entry in entries):
            if isinstance(state.pending, Review) and isinstance(event, GuardDecided):
                decisions += 1
                divergences += await self._again(state.pending, event)
            elif isinstance(state.pending, Complete) and isinstance(event, ReplyProduced):
                replies += 1
                divergences += await self._again(state.pending, event)
            state = reduce(state, event).state
            if state.pending is None:
                self._over.add(event.turn_id)
        return Replayed(decisions=decisions, replies=replies, divergences=tuple(divergences))

    async def _again(
        self, command: Review | Complete, event: GuardDecided | ReplyProduced
    ) -> list[Divergence]:
        watched = _Watched(self._cassette)
        bank = await _as_of(self._equipment.bank, self._namespace, command, self._over)
        equipment = replace(self._equipment, bank=bank, model=watched, clock=StoppedClock(event.at))
        handlers = Handlers(equipment, self._namespace, session_of(self._stream))
        try:
            came = await handlers(command)
        except AssayError as error:
            unknown = self._unknown(watched, command)
            return unknown or [_divergence(command, type(error).__name__, "an event", str(error))]
        return self._unknown(watched, command) or _compared(command, event, came)

    def _unknown(self, watched: _Watched, command: Review | Complete) -> list[Divergence]:
        if watched.unknown is None:
            return []
        return [
            _divergence(command, f"prompt: {field}", recorded or "(absent)", asked or "(absent)")
            for field, asked, recorded in self._cassette.differences(watched.unknown)
        ]


async def _as_of(
    bank: Bank, namespace: Namespace, command: Review | Complete, over: set[TurnId]
) -> Bank:
    """What the bank held when a turn began, in memory; its cache is empty, so the cassette answers."""
    then = memory_bank(embedder=bank.embedder, clock=StoppedClock(command.said_at))
    changes = await bank.store.changes(namespace, after=0)
    own, moment = turn_of(command.turn_id), command.said_at
    await then.store.write(
        [
            record
            for record in changes.records
            if _is_known(
                record.origin.source_turn or TurnId(""),
                own,
                over,
                in_time=record.ingested_at <= moment,
            )
        ]
    )
    await then.archive.append(
        [
            turn
            for turn in await bank.archive.all(namespace)
            if _is_known(turn.id, own, over, in_time=turn.at <= moment)
        ]
    )
    await _copy_reviews(bank, then, namespace, moment)
    return then


def _is_known(part: TurnId, own: TurnId, over: set[TurnId], *, in_time: bool) -> bool:
    """Whether it was there: within a session its turns say so, for a clock may be set back."""
    turn = turn_of(part)
    is_ours = turn.rpartition("/")[0] == own.rpartition("/")[0]
    return turn != own and turn in over if is_ours else in_time


async def _copy_reviews(bank: Bank, then: Bank, namespace: Namespace, moment: datetime) -> None:
    reviews = Reviews(then.journal, namespace)
    for review in await Reviews(bank.journal, namespace).history():
        if review.at <= moment:
            await reviews.add(review)


def _compared(
    command: Review | Complete, event: GuardDecided | ReplyProduced, came: AnyEvent
) -> list[Divergence]:
    match event, came:
        case GuardDecided(), GuardDecided():
            was, now = _plain(event.decision), _plain(came.decision)
            return [
                _divergence(command, f"decision: {name}", str(was.get(name)), str(now.get(name)))
                for name in dict.fromkeys([*was, *now])
                if was.get(name) != now.get(name)
            ]
        case ReplyProduced(), ReplyProduced():
            if (event.text, event.tool_calls) == (came.text, came.tool_calls):
                return []
            return [_divergence(command, "reply", event.text, came.text)]
        case _:
            return [_divergence(command, "event", type(event).__name__, type(came).__name__)]


def _plain(decision: Decision) -> dict[str, object]:
    """Each part of a decision by its name; what it cost is none: a replay costs nothing."""
    parts = msgspec.to_builtins(msgspec.structs.replace(decision, spent=Ledger()))
    judgements = parts.pop("judgements", [])
    found: dict[str, object] = dict(parts)
    for judgement in judgements:
        for name, value in judgement.items():
            found[f"{judgement['record_id']}.{name}"] = value
    return found


def _divergence(command: Review | Complete, field: str, recorded: str, asked: str) -> Divergence:
    return Divergence(turn_id=command.turn_id, field=field, recorded=recorded, asked=asked)
