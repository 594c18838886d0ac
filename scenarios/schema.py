"""Questions with known answers: what a run may see, and the key it is scored with afterwards.

The two live in separate objects on purpose. Whatever selects memories is given an ``Example``;
only metrics and reports are given a ``Key``.
"""

from datetime import datetime

import msgspec

from assay.stores.records import ArchiveTurn, MemoryRecord, RecordId


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """One question over one bank, with nothing in it that tells which record is right.

    Attributes:
        id: Names the example in journals and reports; no selector is given it.
        question: What is asked.
        records: The whole bank under opaque ids, ordered by id.
        turns: The archive of past sessions, in order of time.
        now: When the question is asked; after every record and turn.
    """

    id: str
    question: str
    records: tuple[MemoryRecord, ...]
    turns: tuple[ArchiveTurn, ...]
    now: datetime


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about an example and never shown to a guard or a model.

    Attributes:
        family: Kind of question.
        cluster: Conversation it comes from; intervals resample whole clusters.
        useful: Records that answer the question.
        irrelevant: Records that do not bear on it.
        harmful: Records that mislead.
        expected: The expected answer, then its aliases.
        flags: What is known to be wrong with the example itself.
    """

    family: str
    cluster: str
    useful: frozenset[RecordId]
    irrelevant: frozenset[RecordId]
    harmful: frozenset[RecordId]
    expected: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """An example beside its key."""

    example: Example
    key: Key
