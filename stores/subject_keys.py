"""One key per subject: what the journal's texts are encrypted with.

The key stands in the bank's own file and goes with its subject: with it every copy of an encrypted
page (in a log, in free space, in a snapshot of the file system) becomes unreadable. It is no
protection from somebody who holds the whole file.
"""

import os
import sqlite3
from typing import NamedTuple
from urllib.parse import quote, unquote

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from assay.errors import StoreCorrupt
from assay.stores.records import Namespace, SessionId

_KEY_BITS = 256
_NONCE_BYTES = 12
_ID_BYTES = 8


class SubjectKey(NamedTuple):
    """An AES-256-GCM key and its random id; each text is bound to its place in the journal."""

    id: bytes
    key: bytes

    def sealed(self, session: SessionId, sequence: int, payload: bytes) -> bytes:
        """Nonce and ciphertext of a payload."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + AESGCM(self.key).encrypt(nonce, payload, _place(session, sequence))

    def opened(self, session: SessionId, sequence: int, sealed: bytes) -> bytes:
        """The payload.

        Raises:
            StoreCorrupt: If it was not encrypted with this key for this place.
        """
        nonce, ciphertext = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            return AESGCM(self.key).decrypt(nonce, ciphertext, _place(session, sequence))
        except (InvalidTag, ValueError) as error:
            raise StoreCorrupt(
                f"entry {sequence} of session {session!r} is damaged; restore the bank from a backup"
            ) from error


def new_key() -> SubjectKey:
    """A random key under a random id."""
    return SubjectKey(os.urandom(_ID_BYTES), AESGCM.generate_key(_KEY_BITS))


def owner_of(session: SessionId) -> str:
    """Whose a stream of the journal is: what its name says before the first slash."""
    return session.partition("/")[0]


def owner_named(namespace: Namespace) -> str:
    """How the names of a namespace's streams begin, before the slash."""
    return quote(namespace, safe="")


def namespace_of(session: SessionId) -> Namespace:
    """The namespace whose stream this is, as :func:`owner_named` wrote it."""
    return Namespace(unquote(owner_of(session)))


def subject_key(connection: sqlite3.Connection, session: SessionId) -> SubjectKey | None:
    """The key of a stream's owner; read anew each time, as another process may erase it."""
    row = connection.execute(
        "SELECT id, key FROM subject_keys WHERE owner = ?", (owner_of(session),)
    ).fetchone()
    return None if row is None else SubjectKey(*row)


def key_for(connection: sqlite3.Connection, session: SessionId) -> SubjectKey:
    """The key of a stream's owner, made if there is none; inside a writing transaction."""
    known = subject_key(connection, session)
    if known is not None:
        return known
    made = new_key()
    connection.execute("INSERT INTO subject_keys VALUES (?, ?, ?)", (owner_of(session), *made))
    return made


def _place(session: SessionId, sequence: int) -> bytes:
    return f"{sequence}\0{session}".encode()
