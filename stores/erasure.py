"""One ``erase``: records and everything in the bank that was made from them."""

from collections.abc import Sequence

import msgspec

from assay.stores.checks import checked_namespace
from assay.stores.protocols import Bank
from assay.stores.records import MemoryRecord, Namespace, RecordId


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What an erasure reached.

    Attributes:
        record_ids: Records erased, the derived ones included, in order of writing. Their full-text
            entries and vectors went with them; a tombstone refuses each id from now on.
        cache_rows: Cached answers dropped because one of the records was in their question.
    """

    record_ids: tuple[RecordId, ...]
    cache_rows: int


async def erase(bank: Bank, namespace: Namespace, record_ids: Sequence[RecordId]) -> Receipt:
    """Erase records, all records derived from them, and cached answers that showed one of them.

    The cache goes first and the records last, so that an erasure cut short can be repeated: what
    is left to erase can still be found. Ids that are not there are passed over.

    Args:
        bank: Where.
        namespace: Whose; nothing of another one is reached.
        record_ids: Which.

    Raises:
        StoreError: If a place could not be reached; repeat it then.
    """
    checked_namespace(namespace)
    everything = await bank.store.changes(namespace, after=0)
    doomed = with_derived(everything.records, record_ids)
    # Ids erased before are asked for again: their cached answers may have been left behind.
    reach = list(dict.fromkeys([*doomed, *record_ids]))
    cache_rows = await bank.cache.forget(namespace, reach)
    await bank.store.erase(namespace, reach)
    return Receipt(record_ids=tuple(doomed), cache_rows=cache_rows)


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
