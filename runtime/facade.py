"""The runtime as an application holds it: sessions, and the memories of each user."""

from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import TypeVar
from weakref import WeakValueDictionary

from assay.errors import RecordNotFound
from assay.guards.protocols import ChatModel
from assay.runtime.commands import Retrieve, Review
from assay.runtime.distributed.hub import Hub
from assay.runtime.distributed.remote_turns import RemoteTurns
from assay.runtime.distributed.wire import Outfit
from assay.runtime.equipment import Equipment
from assay.runtime.erasing import streams_of, words_of
from assay.runtime.events import decode
from assay.runtime.handlers import Handlers
from assay.runtime.jobs import JobQueue
from assay.runtime.limits import (
    checked_message,
    checked_record_text,
    checked_session,
    checked_user,
    tenant_user_of,
)
from assay.runtime.local_turns import LocalTurns
from assay.runtime.models.cassette import CassetteModel, cassette_of
from assay.runtime.remember import record_id
from assay.runtime.replaying import Replayed, replay_journal
from assay.runtime.reply import PastDecision, Recall, past_decisions
from assay.runtime.reviews import RecordReviewed, Reviews, Verdict, Verdicts
from assay.runtime.session import Session, Turns
from assay.runtime.settings import Settings
from assay.runtime.streams import namespace_in, session_of, stream_of
from assay.runtime.turns import PastTurn, past_turns
from assay.stores.erasure import Receipt, erase, erase_subjects, with_derived
from assay.stores.protocols import Bank, Clock
from assay.stores.records import (
    ArchiveTurn,
    Consent,
    MemoryRecord,
    Namespace,
    Origin,
    RecordId,
    SessionId,
    TurnId,
)

_ALL = Consent()

_Past = TypeVar("_Past", PastTurn, PastDecision)


class Runtime:
    """Sessions over one bank, one model and one guard; made by ``assay.open_runtime``."""

    def __init__(self, equipment: Equipment) -> None:
        self._equipment = equipment
        self._sessions: WeakValueDictionary[tuple[Namespace, SessionId], Session] = (
            WeakValueDictionary()
        )
        self._turns: WeakValueDictionary[tuple[Namespace, SessionId], LocalTurns] = (
            WeakValueDictionary()
        )

    @property
    def bank(self) -> Bank:
        """The open bank."""
        return self._equipment.bank

    @property
    def model(self) -> ChatModel:
        """What answers in this process."""
        return self._equipment.model

    @property
    def outfit(self) -> Outfit:
        """What it makes turns with."""
        return Outfit(self.model.identity, self._equipment.guard.name)

    @property
    def is_shared(self) -> bool:
        """Whether other processes may take turns over the same bank."""
        return self.bank.leases is not None

    @property
    def hub(self) -> Hub | None:
        """The bus between processes; ``None``: there is none."""
        return self._equipment.hub

    @property
    def owner(self) -> str:
        """The name of this process among those that share the bank."""
        return self._equipment.owner

    @property
    def jobs(self) -> JobQueue | None:
        """Where turns are handed out; ``None``: they run in this process."""
        return self._equipment.jobs

    @property
    def settings(self) -> Settings:
        """What it was opened with."""
        return self._equipment.settings

    @property
    def clock(self) -> Clock:
        """What it takes the time from."""
        return self._equipment.clock

    def now(self) -> datetime:
        """The time of its clock, UTC."""
        return self._equipment.clock.now()

    def session(self, *, user: str, session_id: str | None = None) -> Session:
        """A conversation with a user.

        Args:
            user: Whose memory it uses; nothing of another user is ever seen.
            session_id: An earlier id goes on with that session; ``None`` begins a new one.

        Raises:
            ValueError: If a name is empty, too long, or has a NUL.
        """
        namespace = checked_user(user)
        name = self._equipment.new_session() if session_id is None else session_id
        key = namespace, checked_session(name)
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = Session(self._turns_of(*key), *key)
        return session

    def _turns_of(self, namespace: Namespace, session_id: SessionId) -> Turns:
        local, jobs = self.local_turns(namespace, session_id), self._equipment.jobs
        if jobs is None:
            return local
        turn = self.settings.turn
        return RemoteTurns(
            local,
            jobs,
            namespace=namespace,
            session_id=session_id,
            outfit=self.outfit,
            new_id=self._equipment.new_job,
            clock=self._equipment.clock,
            seconds=turn.seconds,
            queue_seconds=turn.queue_seconds,
        )

    def local_turns(self, namespace: Namespace, session_id: SessionId) -> LocalTurns:
        """The turns of a session that run in this process; one object per session, so one at a time."""
        key = namespace, session_id
        turns = self._turns.get(key)
        if turns is None:
            turns = self._turns[key] = LocalTurns(self._equipment, *key)
        return turns

    async def memories(self, user: str) -> list[MemoryRecord]:
        """The user's records that hold now, in order of writing."""
        return await self.bank.store.current(checked_user(user), at=self._equipment.clock.now())

    async def recall(self, user: str, question: str) -> Recall:
        """What may be told of the user's memory to answer a question: retrieved and guarded.

        For agents that keep their own conversation: nothing is said, remembered or journalled.

        Args:
            user: Whose memory.
            question: As the user would put it.

        Raises:
            ValueError: If the question is empty, too long, or has a NUL.
            GuardError: If the guard cannot decide and the policy is to fail.
            RecordNotFound: If a candidate was erased meanwhile; ask again.
        """
        namespace = checked_user(user)
        handlers = Handlers(self._equipment, namespace, SessionId("recall"))
        now = self._equipment.clock.now()
        retrieve = Retrieve(
            turn_id=TurnId("recall"), text=checked_message(question), said_at=now, at=now
        )
        found = (await handlers.retrieve(retrieve)).found
        review = Review(turn_id=retrieve.turn_id, text=question, said_at=now, at=now, found=found)
        decision = (await handlers.review(review)).decision
        records = await self._still_there(namespace, [one.record_id for one in found])
        admitted = {judgement.record_id for judgement in decision.admitted}
        # Whoever asks hands them to a model of their own, and nobody knows where that is.
        kept = tuple(
            record
            for record in records
            if record.id in admitted and not record.consent.no_external_model
        )
        return Recall(records=kept, decision=decision)

    async def remember(  # what a record says of itself
        self,
        user: str,
        text: str,
        *,
        origin: Origin,
        claimed_at: datetime | None = None,
        consent: Consent = _ALL,
    ) -> RecordId:
        """Write one record directly, as an import does; the same text from the same origin is one record.

        Args:
            user: Whose memory.
            text: The statement.
            origin: Who says so; never taken from the text.
            claimed_at: The time its writer claims for it.
            consent: What it may be used for; of the first write, if it is written again.

        Raises:
            ValueError: If the text or the time cannot be kept.
            StoreError: If it cannot be written.
        """
        namespace = checked_user(user)
        source = "\0".join((origin.writer, origin.channel, origin.source_turn or "", text))
        known = record_id(namespace, TurnId(f"remember\0{source}\0{claimed_at}"), 0)
        record = MemoryRecord(
            id=known,
            namespace=namespace,
            text=checked_record_text(text),
            origin=origin,
            ingested_at=self._equipment.clock.now(),
            claimed_at=claimed_at,
            consent=consent,
        )
        try:
            await self.bank.store.get(namespace, [known])
        except RecordNotFound:
            await self.bank.store.write([record])
        return known

    async def correct(self, user: str, record_id_: str, text: str) -> MemoryRecord:
        """Replace a record by a new one; the old one stays as history.

        The correction goes into the archive too, as something the user said.

        Args:
            user: Whose memory.
            record_id_: The record that is wrong.
            text: What holds instead.

        Raises:
            RecordNotFound: If there is no such record.
            ValueError: If the text cannot be kept, or the record was corrected before.
        """
        namespace, old = checked_user(user), RecordId(record_id_)
        checked_record_text(text)
        now = self._equipment.clock.now()
        [record] = await self.bank.store.get(namespace, [old])
        if old not in {current.id for current in await self.bank.store.current(namespace, at=now)}:
            raise ValueError(f"record {old!r} does not hold any more; correct the one that does")
        turn = _correction_turn(record, text, now)
        new = MemoryRecord(
            id=record_id(namespace, turn.id, 0),
            namespace=namespace,
            text=text,
            origin=Origin(writer="user", channel="correction", source_turn=turn.id),
            consent=record.consent,
            ingested_at=now,
            supersedes=old,
        )
        await self.bank.archive.append([turn])
        await self.bank.store.write([new])
        return new

    async def forget(self, user: str, record_id_: str) -> Receipt:
        """Erase a record for good, with all that holds its words.

        Its earlier versions, what was derived from them, cached answers, past turns, texts of the
        journal; of the bus, the user's jobs that failed for good.

        Raises:
            RecordNotFound: If there is no such record.
            BusError: If the bank is erased and the bus could not be.
        """
        namespace, record = checked_user(user), RecordId(record_id_)
        await self.bank.store.get(namespace, [record])
        history = await self._versions(namespace, record)
        everything = (await self.bank.store.changes(namespace, after=0)).records
        doomed = set(with_derived(everything, history))
        words = await words_of(self.bank, namespace, [r for r in everything if r.id in doomed])
        receipt = await erase(
            self.bank, namespace, history, turn_ids=words.turn_ids, entries=words.entries
        )
        if self.hub is not None:
            await self.hub.drop_dead_letters(namespace)
        return receipt

    async def erase_user(self, user: str) -> Receipt:
        """Erase all that is kept of a user: records, turns, the journal's texts, cached answers.

        The user may come back, in new sessions; the sessions erased say ``ErasedInput``.

        Raises:
            ValueError: If the name is empty, too long, or has a NUL.
            BusError: If the bank is erased and the bus could not be; erase again.
        """
        [receipt] = await self._erase_users([checked_user(user)])
        return receipt

    async def erase_tenant(self, tenant: str) -> list[Receipt]:
        """Erase all that is kept of every user of a tenant, or nothing; gives one receipt each."""
        return await self._erase_users(await self.users_of(tenant))

    async def users_of(self, tenant: str) -> list[Namespace]:
        """The namespaces of a tenant's users, as ``user`` of the other methods, sorted."""
        everyone = set(await self.bank.eraser.namespaces())
        streams = map(namespace_in, await self.bank.journal.sessions())
        everyone |= {namespace for namespace in streams if namespace is not None}
        return sorted(n for n in everyone if tenant_user_of(n).tenant == tenant)

    async def quarantine(self, user: str, record_id_: str) -> RecordReviewed:
        """Keep a record out of every prompt until somebody reviews it; it stays in the bank.

        Raises:
            RecordNotFound: If there is no such record.
        """
        return await self._review(user, record_id_, "quarantined")

    async def vouch(self, user: str, record_id_: str) -> RecordReviewed:
        """Un-withhold a record: it enters every prompt it is a candidate of, and the decision says why.

        Raises:
            RecordNotFound: If there is no such record.
        """
        return await self._review(user, record_id_, "vouched")

    async def release(self, user: str, record_id_: str) -> RecordReviewed:
        """Leave a record to the guard again: neither quarantined nor vouched for.

        Raises:
            RecordNotFound: If there is no such record.
        """
        return await self._review(user, record_id_, "guarded")

    async def reviews(self, user: str) -> list[RecordReviewed]:
        """What people said about the user's records, oldest first."""
        return await Reviews(self.bank.journal, checked_user(user)).history()

    async def verdicts(self, user: str) -> Verdicts:
        """What stands of it now."""
        return await Reviews(self.bank.journal, checked_user(user)).verdicts()

    async def turns(self, user: str, session_id: str | None = None) -> list[PastTurn]:
        """The user's past turns, oldest first.

        Args:
            user: Whose.
            session_id: Of one conversation only; ``None``: of all.

        Raises:
            ValueError: If a name is empty, too long, or has a NUL.
        """
        namespace = checked_user(user)
        wanted = None if session_id is None else checked_session(session_id)
        found: list[tuple[datetime, PastTurn]] = []
        for session in await self._sessions_of(namespace):
            if wanted in {None, session}:
                entries = await self.bank.journal.read(stream_of(namespace, session))
                events = [decode(entry.payload) for entry in entries]
                found += _timed(past_turns(session, events))
        return _oldest_first(found)

    async def replay(self, user: str, cassette: Path | None = None) -> Replayed:
        """Take every turn of a user again, offline, and name where it comes out differently.

        Args:
            user: Whose turns.
            cassette: Recorded answers; ``None`` takes those the bank keeps.

        Raises:
            ConfigError: If the cassette cannot be used, or the bank keeps no answers.
        """
        namespace = checked_user(user)
        recorded = (
            await CassetteModel.open(cassette)
            if cassette
            else CassetteModel(await cassette_of(self.bank.cache, namespace))
        )
        return await replay_journal(self._equipment, recorded, namespace)

    async def _sessions_of(self, namespace: Namespace) -> list[SessionId]:
        return [session_of(stream) for stream in await streams_of(self.bank, namespace)]

    async def decisions(self, user: str) -> list[PastDecision]:
        """Every decision made for a user, oldest first."""
        namespace = checked_user(user)
        found: list[tuple[datetime, PastDecision]] = []
        for session in await self._sessions_of(namespace):
            entries = await self.bank.journal.read(stream_of(namespace, session))
            events = [decode(entry.payload) for entry in entries]
            found += _timed(past_decisions(session, events))
        return _oldest_first(found)

    async def _erase_users(self, namespaces: Sequence[Namespace]) -> list[Receipt]:
        for known in (self._sessions, self._turns):
            for key in [key for key in known if key[0] in namespaces]:
                known.pop(key, None)
        receipts = await erase_subjects(self.bank, namespaces)
        if self.hub is not None:
            for namespace in namespaces:
                await self.hub.drop(namespace)
        return receipts

    async def _still_there(
        self, namespace: Namespace, ids: Sequence[RecordId]
    ) -> list[MemoryRecord]:
        """Records that were asked about; of one that was erased meanwhile no answer is kept."""
        try:
            return await self.bank.store.get(namespace, ids)
        except RecordNotFound:
            await self.bank.cache.forget(namespace, ids)
            raise

    async def _review(self, user: str, record_id_: str, verdict: Verdict) -> RecordReviewed:
        namespace, record = checked_user(user), RecordId(record_id_)
        await self.bank.store.get(namespace, [record])
        review = RecordReviewed(record_id=record, verdict=verdict, at=self._equipment.clock.now())
        await Reviews(self.bank.journal, namespace).add(review)
        return review

    async def _versions(self, namespace: Namespace, record: RecordId) -> Sequence[RecordId]:
        """The record and all it supersedes: with the correction gone, the mistake may not come back."""
        everything = await self.bank.store.changes(namespace, after=0)
        before = {known.id: known.supersedes for known in everything.records}
        versions = [record]
        while (older := before.get(versions[-1])) is not None and older not in versions:
            versions.append(older)
        return versions


def _timed(past: Sequence[_Past]) -> list[tuple[datetime, _Past]]:
    """Of one session in its own order, each with the latest time so far: clocks are set back."""
    return list(zip(accumulate((one.at for one in past), max), past, strict=True))


def _oldest_first(timed: list[tuple[datetime, _Past]]) -> list[_Past]:
    return [one for _, one in sorted(timed, key=lambda pair: pair[0])]


def _correction_turn(record: MemoryRecord, text: str, now: datetime) -> ArchiveTurn:
    """What the user said by correcting, in a session of its own."""
    session = SessionId(f"correction of {record.id}")
    return ArchiveTurn(
        id=TurnId(f"correction/{record.id}/{now.isoformat()}"),
        namespace=record.namespace,
        session=session,
        position=0,
        speaker="user",
        text=text,
        at=now,
    )
