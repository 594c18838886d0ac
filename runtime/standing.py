"""Which past turns may still be shown: not those whose statement was forgotten, corrected or quarantined."""

from collections.abc import Sequence

from assay.runtime.commands import Shown
from assay.runtime.remember import ids_from, turn_of
from assay.runtime.reviews import Reviews, Verdicts
from assay.stores.hybrid import EvidenceSearch
from assay.stores.protocols import Bank
from assay.stores.records import ArchiveTurn, Namespace, RecordId, SessionId

RECENT_TURNS = 40
"""Turns looked at for the recent part of a prompt; the budget of tokens cuts further."""


class Standing:
    """The past turns of one namespace that still stand.

    The archive itself is never edited. What was erased or superseded is read once from the store
    and then kept up to date.

    Attributes:
        said: What people had said about the records, as of the last call of ``recent``.

    Args:
        bank: Where the turns and the changes are.
        namespace: Whose.
    """

    def __init__(self, bank: Bank, namespace: Namespace) -> None:
        self._bank = bank
        self._namespace = namespace
        self._version = 0
        self._withdrawn: set[RecordId] = set()
        self._reviews = Reviews(bank.journal, namespace)
        self.said = Verdicts()
        self._search = EvidenceSearch(bank.archive, bank.embedder, namespace)

    async def verdicts(self) -> Verdicts:
        """What people said about the records of this namespace, until now."""
        return await self._reviews.verdicts()

    async def recent(self, session: SessionId, shown: Sequence[Shown]) -> list[ArchiveTurn]:
        """The last turns of a session that still stand, oldest first.

        A reply falls with the statement it answered, and with the records it may have drawn on.

        Args:
            session: Which one.
            shown: What its recent replies drew on.
        """
        turns = await self._bank.archive.recent(self._namespace, session, limit=RECENT_TURNS)
        await self._catch_up()
        standing = self._those_that_stand(turns)
        withdrawn = self._withdrawn | self.said.quarantined.keys()
        if not withdrawn:
            return standing
        fallen = {turn_of(turn.id) for turn in turns if turn not in standing}
        fallen |= {s.turn_id for s in shown if not withdrawn.isdisjoint(s.record_ids)}
        return [t for t in standing if t.speaker != "assistant" or turn_of(t.id) not in fallen]

    async def evidence(self, texts: Sequence[str], *, limit: int) -> list[list[ArchiveTurn]]:
        """For each text the turns that bear on it; they stand as of the last call of ``recent``.

        What the assistant said is no evidence: it repeats what it was shown.
        """
        found = await self._search(texts, limit=2 * limit)
        return [self._those_that_stand(_witnesses(turns))[:limit] for turns in found]

    def _those_that_stand(self, turns: Sequence[ArchiveTurn]) -> list[ArchiveTurn]:
        withdrawn = self._withdrawn | self.said.quarantined.keys()
        if not withdrawn:
            return list(turns)
        return [turn for turn in turns if withdrawn.isdisjoint(ids_from(turn))]

    async def _catch_up(self) -> None:
        changes = await self._bank.store.changes(self._namespace, after=self._version)
        self._withdrawn.update(changes.erased)
        self._withdrawn.update(r.supersedes for r in changes.records if r.supersedes is not None)
        self._version = changes.version
        self.said = await self.verdicts()


def _witnesses(turns: Sequence[ArchiveTurn]) -> list[ArchiveTurn]:
    return [turn for turn in turns if turn.speaker != "assistant"]
