"""Reads what the pages show of one user, through the runtime and nothing else."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import Literal, NamedTuple, TypeAlias

from assay.errors import ConfigError, RecordNotFound
from assay.guards.keys import Question, decode_question
from assay.guards.protocols import Judgement, Ledger
from assay.runtime.facade import Runtime
from assay.runtime.http.inspector.asked import Asked
from assay.runtime.http.inspector.shown import Gauge, TurnShown, gauges, turn_shown
from assay.runtime.limits import checked_user, tenant_user_of
from assay.runtime.naming import close_names
from assay.runtime.reviews import RecordReviewed, Verdict, Verdicts
from assay.runtime.streams import namespace_in
from assay.runtime.turns import PastTurn
from assay.stores.protocols import CacheRow, Journal
from assay.stores.records import MemoryRecord, Namespace, RecordId, SessionId, TurnId

LATELY = 50
"""Turns looked back at for records a person may want to review."""

MOST_ROWS = 200
"""Memories on one page of the bank browser; the search narrows them down."""

COUNTED = 5_000
"""Cached answers counted; beyond, the page says that there are more."""

State: TypeAlias = Literal["holds", "replaced", "expired", "not yet"]


class Conversation(NamedTuple):
    """A conversation in a list.

    Attributes:
        session: Its id.
        turns: How many.
        last: What the user said last, and when.
        withheld: Records kept out of its prompts, over all turns.
    """

    session: SessionId
    turns: int
    last: PastTurn
    withheld: int


class Row(NamedTuple):
    """A record in the bank browser."""

    record: MemoryRecord
    state: State
    verdict: Verdict
    admitted: int
    withheld: int


class Appearance(NamedTuple):
    """A decision a record was a candidate of."""

    turn: PastTurn
    judgement: Judgement


class RecordShown(NamedTuple):
    """A record with its history.

    Attributes:
        row: The record itself.
        older: What it replaced, the newest first.
        newer: What replaced it, the oldest first.
        derived: Records computed from it.
        appearances: Decisions about it, the latest first.
        reviews: What people said about it, oldest first.
    """

    row: Row
    older: Sequence[MemoryRecord]
    newer: Sequence[MemoryRecord]
    derived: Sequence[MemoryRecord]
    appearances: Sequence[Appearance]
    reviews: Sequence[RecordReviewed]


class Waiting(NamedTuple):
    """A record the guard kept out lately, and nobody has reviewed."""

    row: Row
    last: Appearance


class ReviewShown(NamedTuple):
    """What people decided, and what waits for them."""

    quarantined: Sequence[Row]
    vouched: Sequence[Row]
    waiting: Sequence[Waiting]


class SpendingShown(NamedTuple):
    """What the user's turns cost.

    Attributes:
        turns: The latest, oldest first.
        total: Over all turns.
        gauges: The last turn's experiments beside the limits.
        cached: Answers in the cache, at most ``COUNTED``.
    """

    turns: Sequence[PastTurn]
    total: Ledger
    gauges: Sequence[Gauge]
    cached: int


class Reader:
    """One user's part of the bank.

    Args:
        runtime: Over the bank.
        namespace: Whose; nothing of another one is ever read.
        leaving: Whether what is read leaves the bank: records whose consent forbids an export are
            passed over then.

    Raises:
        ValueError: If no user can be called this.
    """

    def __init__(self, runtime: Runtime, namespace: str, *, leaving: bool = False) -> None:
        self._runtime = runtime
        self._leaving = leaving
        self._namespace = checked_user(namespace)

    @property
    def namespace(self) -> Namespace:
        """Whose."""
        return self._namespace

    async def conversations(self) -> list[Conversation]:
        """Every conversation, the latest first."""
        by_session: dict[SessionId, list[PastTurn]] = {}
        for turn in await self._runtime.turns(self._namespace):
            by_session.setdefault(turn.session, []).append(turn)
        found = [
            Conversation(session, len(turns), turns[-1], sum(map(_withheld, turns)))
            for session, turns in by_session.items()
        ]
        return sorted(found, key=lambda conversation: conversation.last.at, reverse=True)

    async def conversation(self, session: str) -> list[TurnShown]:
        """The turns of one conversation, oldest first, without what the guard asked.

        Raises:
            ConfigError: If there is none of this id.
        """
        turns = await self._runtime.turns(self._namespace)
        if not any(turn.session == session for turn in turns):
            known = dict.fromkeys(turn.session for turn in turns[-LATELY:])
            raise ConfigError(f"no conversation {session!r}{_nearest(session, known)}")
        records, verdicts = await self._everything(), await self._verdicts()
        budget = self._runtime.settings.budget
        own = [turn for turn in turns if turn.session == session]
        return [turn_shown(turn, records, verdicts, {}, budget) for turn in own]

    async def turn(self, turn_id: str) -> tuple[TurnShown, list[TurnId]]:
        """One turn with everything, and the ids of the turns of its conversation in order.

        Raises:
            ConfigError: If there is none of this id.
        """
        turns = await self._runtime.turns(self._namespace)
        found = next((turn for turn in turns if turn.id == turn_id), None)
        if found is None:
            raise ConfigError(f"no turn {turn_id!r}{_nearest(turn_id, (t.id for t in turns))}")
        keys = [i.key for i in found.decided.interventions] if found.decided else []
        answers = await self._runtime.bank.cache.get(self._namespace, keys)
        shown = turn_shown(
            found,
            await self._everything(),
            await self._verdicts(),
            answers,
            self._runtime.settings.budget,
        )
        return shown, [turn.id for turn in turns if turn.session == found.session]

    async def question(self, turn_id: str, key: str) -> tuple[TurnShown, Asked, Question]:
        """One intervention of a turn, with exactly what was asked.

        Raises:
            ConfigError: If the turn asked no such thing, or what it asked is kept no more.
        """
        shown, _ = await self.turn(turn_id)
        asked = next((a for a in shown.asked if a.key == key), None)
        if asked is None:
            raise ConfigError(f"turn {turn_id!r} asked nothing under {key!r}; open the turn again")
        async for row in self._rows():
            if row.key == key:
                return shown, asked, decode_question(row.request)
        raise ConfigError(
            "erased input: what was asked here is kept no more; erasing a record erases the "
            "questions that showed it"
        )

    async def rows(self, *, search: str = "", only: str = "") -> list[Row]:
        """Records, the latest first.

        Args:
            search: Words that all stand in text, origin or id, in any case.
            only: A state, a verdict or a writer; empty: all.
        """
        words = search.casefold().split()
        found = [
            row
            for row in await self._all_rows()
            if _fits(row, words) and only in {"", row.state, row.verdict, row.record.origin.writer}
        ]
        return found[::-1]

    async def record(self, record_id: str) -> RecordShown:
        """One record with its history.

        Raises:
            RecordNotFound: If there is none of this id, or it was erased.
        """
        rows = {row.record.id: row for row in await self._all_rows()}
        row = rows.get(RecordId(record_id))
        if row is None:
            raise RecordNotFound(record_id, self._namespace)
        records = [r.record for r in rows.values()]
        turns = await self._runtime.turns(self._namespace)
        reviews = await self._runtime.reviews(self._namespace)
        return RecordShown(
            row=row,
            older=_older(row.record, records),
            newer=_newer(row.record, records),
            derived=[r for r in records if row.record.id in r.derived_from],
            appearances=[a for a in _appearances(turns) if a.judgement.record_id == record_id],
            reviews=[review for review in reviews if review.record_id == record_id],
        )

    async def review(self) -> ReviewShown:
        """What is quarantined, what was vouched for, and what the guard kept out lately."""
        rows = {row.record.id: row for row in await self._all_rows()}
        turns = (await self._runtime.turns(self._namespace))[-LATELY:]
        last: dict[RecordId, Appearance] = {}
        for appearance in _appearances(turns):
            last.setdefault(appearance.judgement.record_id, appearance)
        return ReviewShown(
            quarantined=[row for row in rows.values() if row.verdict == "quarantined"],
            vouched=[row for row in rows.values() if row.verdict == "vouched"],
            waiting=[
                Waiting(rows[record_id], appearance)
                for record_id, appearance in last.items()
                if not appearance.judgement.admitted and _is_open(rows.get(record_id))
            ],
        )

    async def spending(self) -> SpendingShown:
        """What the user's turns cost, and what the cache holds."""
        turns = await self._runtime.turns(self._namespace)
        decided = [turn.decided.decision.spent for turn in turns if turn.decided]
        cached = 0
        async for _ in self._rows():
            cached += 1
            if cached == COUNTED:
                break
        return SpendingShown(
            turns=turns[-LATELY:],
            total=sum((turn.spent for turn in turns), Ledger()),
            gauges=gauges(decided[-1] if decided else Ledger(), self._runtime.settings.budget),
            cached=cached,
        )

    def _rows(self) -> AsyncIterator[CacheRow]:
        return self._runtime.bank.cache.rows(self._namespace)

    async def _everything(self) -> dict[RecordId, MemoryRecord]:
        changes = await self._runtime.bank.store.changes(self._namespace, after=0)
        shown = (r for r in changes.records if r.consent.export or not self._leaving)
        return {record.id: record for record in shown}

    async def _verdicts(self) -> Verdicts:
        return await self._runtime.verdicts(self._namespace)

    async def _all_rows(self) -> list[Row]:
        """Every record there is, in order of writing."""
        records = await self._everything()
        current = {record.id for record in await self._runtime.memories(self._namespace)}
        replaced = {record.supersedes for record in records.values()}
        verdicts = await self._verdicts()
        counts: Counter[tuple[RecordId, bool]] = Counter(
            (a.judgement.record_id, a.judgement.admitted)
            for a in _appearances(await self._runtime.turns(self._namespace))
        )
        now = self._runtime.now()
        return [
            Row(
                record=record,
                state="holds"
                if record.id in current
                else _state(record, is_replaced=record.id in replaced, now=now),
                verdict=verdicts.of(record.id),
                admitted=counts[record.id, True],
                withheld=counts[record.id, False],
            )
            for record in records.values()
        ]


def _state(record: MemoryRecord, *, is_replaced: bool, now: datetime) -> State:
    if record.valid_from is not None and now < record.valid_from:
        return "not yet"
    return "replaced" if is_replaced else "expired"


def _withheld(turn: PastTurn) -> int:
    return len(turn.decided.decision.withheld) if turn.decided else 0


def _appearances(turns: Sequence[PastTurn]) -> list[Appearance]:
    """Every judgement, the latest turn first."""
    return [
        Appearance(turn, judgement)
        for turn in reversed(turns)
        if turn.decided
        for judgement in turn.decided.decision.judgements
    ]


def _is_open(row: Row | None) -> bool:
    return row is not None and row.verdict == "guarded" and row.state == "holds"


def _fits(row: Row, words: Sequence[str]) -> bool:
    record = row.record
    origin = record.origin
    text = f"{record.text} {origin.writer} {origin.channel} {record.id}".casefold()
    return all(word in text for word in words)


def _older(record: MemoryRecord, records: Iterable[MemoryRecord]) -> list[MemoryRecord]:
    by_id: dict[RecordId | None, MemoryRecord] = {each.id: each for each in records}
    found: list[MemoryRecord] = []
    at = by_id.get(record.supersedes)
    while at is not None and at not in found:
        found.append(at)
        at = by_id.get(at.supersedes)
    return found


def _newer(record: MemoryRecord, records: Iterable[MemoryRecord]) -> list[MemoryRecord]:
    after: dict[RecordId | None, MemoryRecord] = {r.supersedes: r for r in records}
    found: list[MemoryRecord] = []
    at = after.get(record.id)
    while at is not None and at not in found:
        found.append(at)
        at = after.get(at.id)
    return found


def _nearest(given: str, known: Iterable[str]) -> str:
    names = list(islice(reversed(list(known)), LATELY))
    return close_names(given, names) if names else "; this user has none yet"


async def users_of(journal: Journal, tenant: str) -> dict[str, int]:
    """The users of a tenant who ever spoke, with the number of their conversations; the latest first.

    Args:
        journal: Of the bank.
        tenant: Whose users; empty: of a bank without tenants.
    """
    streams = reversed(await journal.sessions())
    owners = [tenant_user_of(name) for name in map(namespace_in, streams) if name is not None]
    return dict(Counter(owner.user for owner in owners if owner.tenant == tenant))
