"""What a conversation leaves behind, to compare two of them."""

from assay.runtime.events import AnyEvent
from assay.stores.protocols import Bank
from assay.stores.records import ArchiveTurn, MemoryRecord

from .crashing import without_spend
from .rooms import USER, journal_of


async def left_behind(
    bank: Bank,
) -> tuple[list[AnyEvent], list[MemoryRecord], list[ArchiveTurn]]:
    events = [without_spend(event) for event in await journal_of(bank)]
    records = (await bank.store.changes(USER, after=0)).records
    return events, records, await bank.archive.all(USER)
