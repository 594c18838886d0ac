"""How values stand in PostgreSQL's rows: JSON bodies without a seal, times as microseconds.

No seal as in SQLite: the server checks its pages itself (``data_checksums``, on by default).
"""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from assay.errors import StoreCorrupt
from assay.stores.rows import microseconds

S = TypeVar("S", bound=msgspec.Struct)
Id = TypeVar("Id", bound=str)


def opened(kind: type[S], body: bytes) -> S:
    """The value of a row.

    Raises:
        StoreCorrupt: If it cannot be read.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise StoreCorrupt(f"a row of the bank cannot be read: {error}") from error


def possible(ids: Sequence[Id]) -> list[Id]:
    """Those of some ids that a row can have; nothing is kept under another one."""
    return [one for one in ids if "\0" not in one and not _has_surrogate(one)]


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def optional_microseconds(time: datetime | None) -> int | None:
    """Microseconds since 1970 in UTC, exactly; ``None`` for ``None``."""
    return None if time is None else microseconds(time)
