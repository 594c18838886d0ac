"""Where the bus is, as its URL says, and how it is shown."""

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from assay.errors import ConfigError

_SERVER = r"([^/@,]*@)?(\[[^/@,]*\]|[^/@,:]*)(:\d*)?"
_WELL_FORMED = re.compile(rf"\w+://{_SERVER}(,{_SERVER})*(/[^@]*)?")


class Address(NamedTuple):
    """Where the bus is.

    Attributes:
        servers: URLs of one cluster, as the client takes them.
        prefix: What every subject and stream of this installation begins with.
        shown: The servers without passwords, for messages.
    """

    servers: list[str]
    prefix: str
    shown: str


def address_of(url: str) -> Address:
    """Read ``nats://[user:password@]host[:port][,host...][/prefix]``; the prefix is ``assay`` if none is given.

    Raises:
        ConfigError: If it is none.
    """
    rest, _, prefix = url.partition("://")[2].partition("/")
    prefix = prefix.strip("/") or "assay"
    if not url.startswith(("nats://", "tls://")) or not rest:
        raise ConfigError(f"expected nats://host:4222 as the bus, got {masked(url)!r}")
    if "@" in prefix:
        raise ConfigError(
            f"the bus {masked(url)!r} cannot be read: a password with a / cannot be given in its URL"
        )
    if not re.fullmatch(r"[A-Za-z0-9_-]+", prefix):
        raise ConfigError(
            f"the path of a bus names its subjects, in letters, digits, - and _; got {prefix!r}"
        )
    scheme = url.partition("://")[0]
    servers = [f"{scheme}://{host}" for host in rest.split(",")]
    try:
        shown = ", ".join(f"{scheme}://{_host_of(server)}" for server in servers)
    except ValueError:
        # What it says may quote the password.
        raise ConfigError(f"the bus {masked(url)!r} has no valid port") from None
    return Address(servers, prefix, shown)


def masked(url: str) -> str:
    """A URL without user and password, however malformed it is."""
    if _WELL_FORMED.fullmatch(url):
        return re.sub(r"(//|,)[^/@,]*@", r"\1", url)
    # Where a password has special characters, nobody can tell what precedes the last @.
    scheme, separator, _ = url.partition("://")
    return (
        url if "@" not in url else f"{scheme * bool(separator)}{separator}{url.rpartition('@')[2]}"
    )


def _host_of(server: str) -> str:
    parts = urlsplit(server)
    return f"{parts.hostname}:{parts.port or 4222}"
