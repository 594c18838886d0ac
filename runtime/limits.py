"""What is refused before anything happens."""

from typing import NamedTuple

from assay.stores.checks import checked_characters, checked_text
from assay.stores.records import Namespace, SessionId

MESSAGE_BYTES = 65_536
"""Longest message, in bytes of UTF-8; longer texts are documents, not messages."""

RECORD_BYTES = 8_192
"""Longest text of one record, in bytes of UTF-8."""

NAME_BYTES = 512
"""Longest user name and session id, in bytes of UTF-8."""


def checked_message(text: str) -> str:
    """The message itself.

    Raises:
        ValueError: If it is empty, has a NUL or half a surrogate pair, or is over the limit.
    """
    return _within("message", checked_text("message", text), MESSAGE_BYTES)


def checked_output(text: str) -> str:
    """The output of a tool itself, which may be empty; raises as ``checked_message`` does."""
    return _within("tool output", checked_characters("tool output", text), MESSAGE_BYTES)


def checked_record_text(text: str) -> str:
    """The text of a record itself; raises as ``checked_message`` does."""
    return _within("record text", checked_text("record text", text), RECORD_BYTES)


def checked_user(user: str) -> Namespace:
    """The namespace of a user; raises as ``checked_message`` does."""
    return Namespace(_within("user", checked_text("user", user), NAME_BYTES))


def checked_session(session_id: str) -> SessionId:
    """The id of a session; raises as ``checked_message`` does."""
    return SessionId(_within("session id", checked_text("session id", session_id), NAME_BYTES))


def checked_request(request: str) -> str:
    """The name of a request itself, which may be empty; raises as ``checked_message`` does."""
    return _within("request", checked_characters("request", request), NAME_BYTES)


SEPARATOR = "\x1f"
"""Between tenant and user in the name of a namespace; a unit separator, which no name needs."""


class TenantUser(NamedTuple):
    """Whose a namespace is."""

    tenant: str
    user: str


def namespace_of(tenant: str, user: str) -> Namespace:
    """The namespace of a user of a tenant; no two pairs share one.

    Names are taken as they are: case and Unicode form make a difference.

    Args:
        tenant: Whose user; empty: a bank without tenants, where the namespace is the user's name.
        user: The name the tenant gives its user.

    Raises:
        ValueError: If a name is empty, too long, or holds a NUL or a unit separator.
    """
    for what, name in (("tenant", tenant), ("user", user)):
        if SEPARATOR in name:
            raise ValueError(f"{what} {name!r} holds a unit separator (U+001F); take it out")
    if not tenant:
        return checked_user(user)
    checked_text("tenant", tenant)
    checked_text("user", user)
    return Namespace(_within("tenant and user", f"{tenant}{SEPARATOR}{user}", NAME_BYTES))


def tenant_user_of(namespace: Namespace) -> TenantUser:
    """The tenant and the user of a namespace."""
    tenant, separator, user = namespace.partition(SEPARATOR)
    return TenantUser(tenant, user) if separator else TenantUser("", namespace)


def _within(what: str, text: str, limit: int) -> str:
    size = len(text.encode())
    if size > limit:
        raise ValueError(
            f"{what} is {size:,} bytes, the limit is {limit:,}; send less, or in parts"
        )
    return text
