"""What ``assay serve`` and ``assay worker`` share: settings, and the runtime they make of them."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import get_args

import msgspec

from assay.cli.places import bank_at
from assay.errors import ConfigError
from assay.runtime.facade import Runtime
from assay.runtime.http.upstream import checked_base_url
from assay.runtime.nats.address import address_of, masked
from assay.runtime.settings import ServeSettings, Settings
from assay.runtime.wiring import Evaluations, open_runtime
from assay.runtime.wiring import checked_places as checked_together
from assay.stores.banks import shown


def told(settings: Settings, given: Mapping[str, object]) -> Settings:
    """The settings with what the command line says of ``serve``; ``None``: it says nothing.

    Raises:
        ConfigError: If a value does not fit.
    """
    said = {name: value for name, value in given.items() if value is not None}
    asked, places = said.get("evaluations", "here"), get_args(Evaluations)
    if asked not in places:
        raise ConfigError(f"--evaluations: expected {' or '.join(places)}, got {asked!r}")
    if "base_url" in said and not settings.serve.allowed_urls:
        said["allowed_urls"] = said["base_url"]  # whoever types it means it
    served = msgspec.to_builtins(settings.serve) | said
    try:
        return msgspec.structs.replace(settings, serve=msgspec.convert(served, ServeSettings))
    except msgspec.ValidationError as error:
        raise ConfigError(f"an option does not fit: {str(error).replace('`', '')}") from error


def checked_places(served: ServeSettings) -> None:
    """Refuse a bank and a bus that cannot be used together, before anything is opened.

    Raises:
        ConfigError: If they cannot, or one is no place at all.
    """
    checked_together(bank_at(served.bank), served.bus or None, served.evaluations)
    if served.bus:
        address_of(served.bus)


def without_passwords(settings: Settings) -> Settings:
    """The settings as they may be shown."""
    served = settings.serve
    return msgspec.structs.replace(
        settings,
        serve=msgspec.structs.replace(
            served, bank=shown(served.bank) if served.bank else "", bus=masked(served.bus)
        ),
    )


async def base_url_of(served: ServeSettings) -> str | None:
    """The endpoint's base URL, if it may be used.

    Raises:
        ConfigError: If it may not.
    """
    if not served.base_url:
        return None
    allowed = [url.strip() for url in served.allowed_urls.split(",") if url.strip()]
    return await checked_base_url(served.base_url, allowed)


@asynccontextmanager
async def opened(settings: Settings, *, guard: str | None) -> AsyncGenerator[Runtime]:
    """The runtime that the settings name; raises as ``open_runtime`` does."""
    served = settings.serve
    checked_places(served)
    base_url = await base_url_of(served)
    async with open_runtime(
        model=served.model,
        bank=bank_at(served.bank),
        guard=guard,
        settings=settings,
        base_url=base_url,
        embedder=served.embedder,
        bus=served.bus or None,
        evaluations=served.evaluations,
    ) as runtime:
        yield runtime
