"""One ``erase``: records and everything in the bank that was made from them."""

import hashlib
from collections.abc import Sequence

import msgspec

from assay.stores.checks import checked_namespace
from assay.stores.protocols import Bank, Erased, Erasure, ReplacedEntry
from assay.stores.records import MemoryRecord, Namespace, RecordId, TurnId

_HASH_BYTES = 16


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What an erasure reached.

    Attributes:
        namespace: Whose it was.
        record_ids: Records erased, the derived ones included, in order of writing. Their full-text
            entries and vectors went with them; a tombstone refuses each id from now on.
        cache_rows: Cached answers dropped because a record or its turn was in their question.
        turns: Archived turns erased.
        entries: Entries of the journal whose text was erased.
        hashes: A hash of each record with the bank's own key: proves to who holds the bank what was
            erased, and tells nothing to anybody else.
    """

    namespace: Namespace
    record_ids: tuple[RecordId, ...]
    cache_rows: int
    turns: int = 0
    entries: int = 0
    hashes: tuple[str, ...] = ()


async def erase(  # one name per place
    bank: Bank,
    namespace: Namespace,
    record_ids: Sequence[RecordId],
    *,
    turn_ids: Sequence[TurnId] = (),
    entries: Sequence[ReplacedEntry] = (),
) -> Receipt:
    """Erase records, all records derived from them, and cached answers that showed one of them.

    Whatever crashes, it is done whole or not at all; what lies outside of the rows is finished at
    the next opening. Ids that are not there are passed over.

    Args:
        bank: Where.
        namespace: Whose; nothing of another one is reached.
        record_ids: Which.
        turn_ids: Archived turns that say what they say.
        entries: Journal entries that do, with what stands in their place.

    Raises:
        StoreError: If a place could not be reached.
    """
    everything = await bank.store.changes(checked_namespace(namespace), after=0)
    doomed = with_derived(everything.records, record_ids)
    # Ids erased before are asked for again: their cached answers may have been left behind.
    reach = tuple(dict.fromkeys([*doomed, *record_ids]))
    texts = [record.text for record in everything.records if record.id in set(doomed)]
    erasure = Erasure(
        namespace=namespace,
        record_ids=reach,
        turn_ids=tuple(turn_ids),
        entries=tuple(entries),
        cache_keys=await _answers_with(bank, namespace, texts),
    )
    [erased] = await bank.eraser.erase([erasure])
    return await _receipt(bank, namespace, erased)


async def erase_subjects(bank: Bank, namespaces: Sequence[Namespace]) -> list[Receipt]:
    """Erase all a bank holds of subjects: records, turns, cached answers, the journal's texts.

    Whatever crashes, all of them are erased or none.

    Returns:
        One receipt for each, in the order of ``namespaces``.

    Raises:
        StoreError: If a place could not be reached.
    """
    doomed = [Erasure(namespace=checked_namespace(n), whole=True) for n in namespaces]
    erased = await bank.eraser.erase(doomed)
    return [await _receipt(bank, n, one) for n, one in zip(namespaces, erased, strict=True)]


async def _receipt(bank: Bank, namespace: Namespace, erased: Erased) -> Receipt:
    key = await bank.eraser.secret()
    return Receipt(
        namespace=namespace,
        record_ids=tuple(erased.bodies),
        cache_rows=erased.cache_rows,
        turns=erased.turns,
        entries=erased.entries,
        hashes=tuple(keyed_hash(body, key) for body in erased.bodies.values()),
    )


def keyed_hash(content: bytes, key: bytes) -> str:
    """Hex of BLAKE2b with a key, 16 bytes."""
    return hashlib.blake2b(content, key=key, digest_size=_HASH_BYTES).hexdigest()


async def _answers_with(bank: Bank, namespace: Namespace, texts: Sequence[str]) -> tuple[str, ...]:
    """Cached answers of earlier releases do not list the turns they showed: looked for by text."""
    needles = [msgspec.json.encode(text)[1:-1] for text in texts]
    return tuple(
        [
            row.key
            async for row in bank.cache.rows(namespace)
            if any(needle in row.request or needle in row.value for needle in needles)
        ]
    )


def with_derived(records: Sequence[MemoryRecord], record_ids: Sequence[RecordId]) -> list[RecordId]:
    """Those of ``record_ids`` that are there and all that was derived from them, at any distance.

    Args:
        records: Every record of the namespace, in order of writing.
        record_ids: Where to start; a record may be derived from one that is gone already.

    Returns:
        Ids in order of writing.
    """
    reached = set(record_ids)
    # Until nothing is added: a record may be written before the one it says it was derived from.
    grown = True
    while grown:
        size = len(reached)
        reached |= {r.id for r in records if not reached.isdisjoint(r.derived_from)}
        grown = len(reached) > size
    return [record.id for record in records if record.id in reached]
