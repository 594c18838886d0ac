"""What people said about records: quarantined, vouched for, or left to the guard again.

Reviews are events of their own, kept in the user's stream of the journal, so that they survive a
restart and every process sees them. The records themselves are untouched.

*Quarantine* keeps a record out of every prompt until somebody reviews it. *Vouching* lets it into
every prompt it is a candidate of, whatever the guard finds; the decision says so.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, TypeAlias
from urllib.parse import quote

import msgspec

from assay.errors import ConflictingWrite, StoreCorrupt
from assay.guards.protocols import Decision, Judgement
from assay.stores.protocols import Journal, JournalEntry
from assay.stores.records import Candidate, Namespace, RecordId, SessionId

Verdict: TypeAlias = Literal["quarantined", "vouched", "guarded"]
"""``guarded`` is how every record starts: the guard alone decides."""

METHOD = "review"
"""The mechanism a judgement names when a person's word decided it."""

_ATTEMPTS = 8


class RecordReviewed(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="record_reviewed"
):
    """A person's word about one record; the last one stands.

    Attributes:
        record_id: The record.
        verdict: What is to become of it.
        at: When it was said, UTC.
    """

    record_id: RecordId
    verdict: Verdict
    at: datetime


class Verdicts(msgspec.Struct, frozen=True, kw_only=True):
    """The reviews that stand, by record; a record that is not named is left to the guard.

    Attributes:
        quarantined: In no prompt.
        vouched: In every prompt they are candidates of.
    """

    quarantined: dict[RecordId, RecordReviewed] = {}
    vouched: dict[RecordId, RecordReviewed] = {}

    def of(self, record_id: RecordId) -> Verdict:
        """What was last said about a record."""
        if record_id in self.quarantined:
            return "quarantined"
        return "vouched" if record_id in self.vouched else "guarded"

    def allowed(self, candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
        """Those of the candidates that are not quarantined, in their order."""
        return tuple(c for c in candidates if c.record.id not in self.quarantined)

    def applied(self, decision: Decision) -> Decision:
        """The decision with what was vouched for admitted, each with the reason.

        What the guard certified was about its own set; the certificate says what was added.
        """
        judged = tuple(self._judged(judgement) for judgement in decision.judgements)
        added = sum(a is not b for a, b in zip(judged, decision.judgements, strict=True))
        if not added:
            return decision
        words = f"{added} admitted on a person's word"
        unsure = any(not judgement.decided for judgement in judged)
        return msgspec.structs.replace(
            decision,
            judgements=judged,
            certificate="; ".join(part for part in (decision.certificate, words) if part),
            ask=decision.ask if unsure else "",
        )

    def _judged(self, judgement: Judgement) -> Judgement:
        review = self.vouched.get(judgement.record_id)
        if review is None or (judgement.admitted and not judgement.flagged):
            return judgement
        return msgspec.structs.replace(
            judgement,
            admitted=True,
            flagged=False,
            decided=True,
            reason=f"a person vouched for it on {review.at:%Y-%m-%d}; the guard alone would say: "
            f"{judgement.reason}",
            method=METHOD,
        )


_encoder = msgspec.json.Encoder()
_decoder: "msgspec.json.Decoder[RecordReviewed]" = msgspec.json.Decoder(RecordReviewed)


class Reviews:
    """The reviews of one user's records.

    Args:
        journal: Where they are kept.
        namespace: Whose records.
    """

    def __init__(self, journal: Journal, namespace: Namespace) -> None:
        self._journal = journal
        self._stream = own_stream(namespace)
        self._last = -1
        self._latest: dict[RecordId, RecordReviewed] = {}

    async def verdicts(self) -> Verdicts:
        """What stands now, the words of other processes included.

        Raises:
            StoreCorrupt: If the journal holds something that is no review.
        """
        for entry in await self._journal.read(self._stream, after=self._last):
            review = _decoded(entry)
            self._latest[review.record_id] = review
            self._last = entry.sequence
        return Verdicts(
            quarantined=_those(self._latest.values(), "quarantined"),
            vouched=_those(self._latest.values(), "vouched"),
        )

    async def history(self) -> list[RecordReviewed]:
        """Every review, oldest first."""
        return [_decoded(entry) for entry in await self._journal.read(self._stream)]

    async def add(self, review: RecordReviewed) -> None:
        """Keep a review.

        Raises:
            ConflictingWrite: If other processes were faster eight times in a row.
        """
        for attempt in range(_ATTEMPTS):
            await self.verdicts()
            entry = JournalEntry(self._last + 1, _encoder.encode(review))
            try:
                await self._journal.append(self._stream, [entry])
            except ConflictingWrite:  # another process was first
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return


def own_stream(namespace: Namespace) -> SessionId:
    """The user's stream: among the names of their sessions, but no session has an empty id."""
    return SessionId(f"{quote(namespace, safe='')}/")


def _decoded(entry: JournalEntry) -> RecordReviewed:
    try:
        return _decoder.decode(entry.payload)
    except msgspec.DecodeError as error:
        raise StoreCorrupt(
            f"entry {entry.sequence} of the reviews is no review of this version: {error}"
        ) from error


def _those(reviews: Iterable[RecordReviewed], verdict: Verdict) -> dict[RecordId, RecordReviewed]:
    return {review.record_id: review for review in reviews if review.verdict == verdict}
