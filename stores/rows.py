"""How values stand in rows: JSON bodies with a seal, times as microseconds, namespace tokens."""

import hashlib
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec

from assay.errors import StoreCorrupt
from assay.stores.records import Namespace
from assay.stores.words import query_words, words

S = TypeVar("S", bound=msgspec.Struct)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(time: datetime) -> int:
    """Microseconds since 1970 in UTC, exactly."""
    return (time - _EPOCH) // _MICROSECOND


def seal(*parts: bytes | str) -> bytes:
    """Eight bytes over a row's values: SQLite itself does not notice a flipped bit in a value."""
    raw = [part.encode() if isinstance(part, str) else part for part in parts]
    # The lengths first, so that no two lists of parts give the same bytes.
    lengths = b"".join(len(part).to_bytes(8, "little") for part in raw)
    return hashlib.blake2b(lengths + b"".join(raw), digest_size=8).digest()


def check_seal(expected: bytes, *parts: bytes | str) -> None:
    """Compare a row with its seal.

    Raises:
        StoreCorrupt: If the row is not what was written.
    """
    if expected != seal(*parts):
        raise StoreCorrupt("a row of the bank is damaged; restore the bank from a backup")


def encoded(value: msgspec.Struct) -> bytes:
    """A value's JSON; equal values of one release give equal bytes."""
    return msgspec.json.encode(value)


def opened(kind: type[S], namespace: Namespace, body: bytes, sealed: bytes) -> S:
    """The value of a row.

    Raises:
        StoreCorrupt: If it is not what was written.
    """
    check_seal(sealed, namespace, body)
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise StoreCorrupt(f"a row of the bank cannot be read: {error}") from error


def owner_token(namespace: Namespace) -> str:
    """One word of the full-text index that stands for a namespace, whatever its name looks like."""
    return "n" + hashlib.blake2b(namespace.encode(), digest_size=16).hexdigest()


def indexed_words(text: str) -> str:
    """What the full-text index is given for a text."""
    return " ".join(words(text))


def match_expression(namespace: Namespace, text: str) -> str | None:
    """An FTS5 query for any word of ``text``; ``None`` if it has no word.

    Words hold letters and digits only and are quoted: nothing of the text acts as syntax.
    """
    quoted = " OR ".join(f'"{word}"' for word in query_words(text))
    return f"owner : {owner_token(namespace)} AND words : ({quoted})" if quoted else None


def one_int(connection: sqlite3.Connection, sql: str, values: Iterable[object] = ()) -> int:
    """The single number a query gives; 0 for NULL."""
    row = connection.execute(sql, tuple(values)).fetchone()
    return int(row[0]) if row is not None and row[0] is not None else 0
