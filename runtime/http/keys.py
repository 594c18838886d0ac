"""Which tenant an API key belongs to."""

import hashlib
import hmac
from collections.abc import Mapping

from assay.errors import ConfigError

SAFE = 16
"""Characters of a key from which on it is not guessed by trying."""


class Keys:
    """API keys and the tenants they open; compared in constant time, never shown.

    Args:
        tenants: API key to name of the tenant; several keys may open one.

    Raises:
        ConfigError: If there is no key, or one is empty or no header can carry it.
    """

    def __init__(self, tenants: Mapping[str, str]) -> None:
        if not tenants:
            raise ConfigError("the service needs at least one API key; pass --api-key")
        for key, tenant in tenants.items():
            _check(key, tenant)
        self._tenants = {_digest(key): tenant for key, tenant in tenants.items()}

    def tenant_of(self, key: str) -> str | None:
        """The tenant; ``None`` if it is no key of this service."""
        given, found = _digest(key), None
        for digest, tenant in self._tenants.items():
            if hmac.compare_digest(digest, given):
                found = tenant
        return found


def _check(key: str, tenant: str) -> None:
    whose = f"the key of tenant {tenant!r}" if tenant else "the API key"
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(f"{whose} may hold visible ASCII characters only")
    if not key:
        raise ConfigError(f"{whose} is empty; take a long one")


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def tenants_of(named: str, env: Mapping[str, str]) -> dict[str, str]:
    """API key to tenant, from ``NAME=VARIABLE`` between commas (``serve.tenants``).

    Raises:
        ConfigError: If a part is malformed, or a variable is not set.
    """
    keys: dict[str, str] = {}
    for part in filter(None, map(str.strip, named.split(","))):
        tenant, _, variable = (piece.strip() for piece in part.rpartition("="))
        if not tenant or not variable:
            raise ConfigError("serve.tenants: expected NAME=VARIABLE between commas")
        if not env.get(variable):
            # A key typed here by mistake is not repeated; it does not look like a variable.
            named = f" {variable}" if variable.isidentifier() and variable.isupper() else ""
            raise ConfigError(
                f"serve.tenants: set the environment variable{named} to the key of {tenant!r}"
            )
        if env[variable] in keys:
            raise ConfigError(f"serve.tenants: {tenant!r} has the key of another tenant")
        keys[env[variable]] = tenant
    return keys
