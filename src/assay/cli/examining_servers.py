"""The servers that services and workers share, looked at from here."""

from typing import NamedTuple

import anyio
import msgspec

from assay.errors import AssayError
from assay.runtime.clock import SystemClock
from assay.runtime.distributed.hub import open_hub
from assay.runtime.nats.address import masked
from assay.runtime.settings import Settings
from assay.runtime.wiring import Evaluations
from assay.stores.banks import is_in_database, shown

MOST_AHEAD = 5.0
"""Seconds this machine's clock may be off the database's before it is worth a word."""


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A server that was looked at.

    Attributes:
        holds: ``bank`` or ``bus``.
        place: Its URL without the password.
        usable: Whether it can be used from here.
        told: What it is, or what stands in the way and what to do.
        warning: What is worth a word though it can be used; empty: nothing.
    """

    holds: str
    place: str
    usable: bool
    told: str
    warning: str = ""


class Named(NamedTuple):
    """What ``assay serve`` would be given."""

    bank: str
    bus: str
    evaluations: Evaluations


def servers(bank: str, bus: str) -> tuple[Server, ...]:
    """Look at those that are named, by an option or by the settings; blocking.

    Args:
        bank: URL of a database; empty: that of the settings, if it is one.
        bus: URL of a bus; empty: that of the settings.
    """
    place, url, _ = named(bank, bus)
    found: list[Server] = []
    if place and is_in_database(place):
        found.append(anyio.run(_database, place))
    if url:
        found.append(anyio.run(_bus, url))
    return tuple(found)


def named(bank: str, bus: str) -> Named:
    """Bank and bus of the options, else of the settings; empty: none is named."""
    try:
        served = Settings.load().serve
    except AssayError:  # said elsewhere
        served = Settings().serve
    return Named(bank or served.bank, bus or served.bus, served.evaluations)


async def _database(url: str) -> Server:
    place = ""
    try:
        place = shown(url)
        from assay.stores.postgres.examining import look_at  # noqa: PLC0415  # needs an extra

        found = await look_at(url, clock=SystemClock())
    except AssayError as error:
        return Server(holds="bank", place=place, usable=False, told=str(error))
    return Server(
        holds="bank",
        place=place,
        usable=True,
        told=f"PostgreSQL {found.server}, pgvector {found.pgvector}",
        warning=_said_of_clock(found.ahead),
    )


async def _bus(url: str) -> Server:
    place = masked(url)
    try:
        async with open_hub(url):
            return Server(holds="bus", place=place, usable=True, told="NATS with JetStream")
    except AssayError as error:
        return Server(holds="bus", place=place, usable=False, told=str(error))


def _said_of_clock(ahead: float) -> str:
    if abs(ahead) <= MOST_AHEAD:
        return ""
    way = "ahead of" if ahead > 0 else "behind"
    return (
        f"this machine's clock is {abs(ahead):.0f} s {way} the database's: leases go by the "
        "database's, but memories are dated by this one; set it right (NTP)"
    )
