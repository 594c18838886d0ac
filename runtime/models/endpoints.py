"""Which endpoint: its URL, checked, and the key that goes with it."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import SplitResult, urlsplit

from assay.errors import ConfigError

DEFAULT_URL = "https://api.openai.com/v1"
LOCAL_KEY = "not-needed"
"""Sent to endpoints on this machine, which usually want some key and check none."""

_SHOWN = 40
_SECRET = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A model at an OpenAI-compatible API.

    Attributes:
        name: The model's name there.
        base_url: Root of the API, without a trailing slash.
        key: The API key; never shown.
    """

    name: str
    base_url: str
    key: str = field(repr=False)

    @classmethod
    def of(cls, name: str, *, base_url: str | None, env: Mapping[str, str]) -> Self:
        """Check what a user gave.

        Raises:
            ConfigError: If the URL is no plain http(s) URL, or a remote endpoint has no key.
        """
        url = (base_url or env.get("OPENAI_BASE_URL") or DEFAULT_URL).rstrip("/")
        parts = checked_url(url)
        key = env.get("OPENAI_API_KEY") or (LOCAL_KEY if _is_local(parts.hostname or "") else "")
        if not key:
            raise ConfigError(f"no key for {url}: set OPENAI_API_KEY")
        if not key.isascii() or not key.isprintable():
            raise ConfigError("OPENAI_API_KEY holds characters no key has; check how it was set")
        return cls(name=name, base_url=url, key=key)

    def without_key(self, text: str) -> str:
        """A text of the endpoint's that may be told: some echo the key."""
        # A shorter one is no secret, and stands in ordinary words.
        return text.replace(self.key, "[key]") if len(self.key) >= _SECRET else text

    def start_of(self, content: bytes) -> str:
        """How an answer begins, quoted and without the key."""
        start = content[:4096].decode(errors="backslashreplace")
        return repr(self.without_key(start)[:_SHOWN])

    @property
    def identity(self) -> str:
        """Name and URL; part of every cache key."""
        return f"openai:{self.name}@{self.base_url}"

    @property
    def limit_field(self) -> str:
        """What it calls the most tokens of an answer; only OpenAI itself retired the old name."""
        return "max_completion_tokens" if self.base_url == DEFAULT_URL else "max_tokens"


def checked_url(url: str) -> SplitResult:
    """The parts of a base URL.

    Raises:
        ConfigError: If it is no plain http(s) URL; names its host at most.
    """
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises on a port that is no number
    except ValueError as error:
        # What a user typed may hold a key anywhere, so it is never repeated.
        raise ConfigError("the base URL is malformed; expected http://HOST:PORT/v1") from error
    if parts.username is not None or parts.password is not None:
        raise ConfigError("the base URL holds a user or password; set OPENAI_API_KEY instead")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"expected a base URL like http://HOST:PORT/v1, got scheme {parts.scheme[:20]!r} and "
            f"{'a' if parts.hostname else 'no'} host"
        )
    if parts.query or parts.fragment:
        raise ConfigError(
            f"expected a base URL without a query or fragment, got one at {parts.hostname!r}; "
            "a key goes into OPENAI_API_KEY"
        )
    return parts


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
