"""One process at a time tells the others what the journals of all sessions got."""

import anyio

from assay.errors import BusError, LeaseLost, StoreError
from assay.runtime.distributed.hub import Hub
from assay.runtime.floor import Floor
from assay.stores.protocols import Bank
from assay.stores.records import SessionId

RELAY = SessionId("relay of news")
"""The lease of whoever tells; no session of turns is called so."""

_LEASE_SECONDS = 10.0
_LONGEST_WAIT = 5.0


async def relaying(bank: Bank, hub: Hub, owner: str) -> None:
    """Tell whenever no other process does, until it is cancelled.

    While the database is away nobody tells; what was written is told later. Ends when the bus is
    closed, or the bank has nothing to tell from.
    """
    if bank.outbox is None:
        return
    floor = Floor(
        bank.journal,
        bank.leases,
        RELAY,
        owner=owner,
        seconds=_LEASE_SECONDS,
        longest_wait=_LONGEST_WAIT,
    )
    while True:
        try:
            async with floor.held():
                await hub.relay(bank.outbox)
        except (LeaseLost, StoreError):
            await anyio.sleep(_LONGEST_WAIT)
        except BusError:
            return
