"""The journal's names of sessions: one stream of entries each."""

from typing import Literal
from urllib.parse import quote, unquote

from assay.stores.records import Namespace, SessionId


def stream_of(user: Namespace, session_id: SessionId | Literal[""]) -> SessionId:
    """The journal's name of a session; no two (user, session) pairs share one.

    With an empty session id: what the names of all sessions of the user begin with.
    """
    return SessionId(f"{quote(user, safe='')}/{quote(session_id, safe='')}")


def namespace_in(stream: SessionId) -> Namespace | None:
    """The user's namespace in the journal's name of a session; ``None``: it is no session of turns."""
    namespace, separator, session = stream.partition("/")
    return Namespace(unquote(namespace)) if separator and session else None


def session_of(stream: SessionId) -> SessionId:
    """The session id in the journal's name of a session."""
    return SessionId(unquote(stream.partition("/")[2]))
