"""Which endpoints the service may ask: from a list, and at no address inside the network by surprise."""

import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

import anyio

from assay.errors import ConfigError
from assay.runtime.models.endpoints import DEFAULT_URL, checked_url

_HERE = ("localhost", "127.0.0.1", "::1")


async def checked_base_url(url: str, allowed: Iterable[str]) -> str:
    """The URL itself. Redirects are never followed, so what is checked here is what is asked.

    Args:
        url: Root of an OpenAI-compatible API.
        allowed: URLs that may be used; none: OpenAI's, and those of this machine.

    Raises:
        ConfigError: If it is not on the list, or its name stands for an address that no endpoint
            has: a link-local one (where clouds keep credentials), or a private or local one under a
            public name.
    """
    known = [each.rstrip("/") for each in allowed]
    for each in (url, *known):
        checked_url(each)  # none of them is repeated below if it holds a password
    host = urlsplit(url).hostname or ""
    is_default = url.rstrip("/") == DEFAULT_URL or host in _HERE
    if url.rstrip("/") not in known and (known or not is_default):
        listed = ", ".join(known) or f"{DEFAULT_URL} and this machine"
        raise ConfigError(
            f"the base URL {url!r} is not allowed (allowed: {listed}); add it to serve.allowed_urls"
        )
    for address in await _addresses(host):
        _check(host, address)
    return url


async def _addresses(host: str) -> list[str]:
    try:
        found = await anyio.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ConfigError(f"the host {host!r} has no address: {error.strerror}") from error
    return [str(entry[4][0]) for entry in found]


def _check(host: str, address: str) -> None:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if ip.is_link_local or ip.is_multicast or ip.is_unspecified:
        raise ConfigError(f"the host {host!r} stands for {address}, where no endpoint is")
    says_so = host in _HERE or _is_address(host) or "." not in host
    if (ip.is_private or ip.is_loopback) and not says_so:
        raise ConfigError(
            f"the host {host!r} stands for {address}, an address inside this network; "
            "name the address itself if it is meant"
        )


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
