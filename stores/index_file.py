"""The file of one namespace's vectors: checked as a whole, replaced as a whole.

A single flipped bit in a vector would change what is found without any error, so nothing of a
file is used unless all of it is as written. Layout: magic, header length, JSON header, float32
rows, SHA-256 of everything before.
"""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from assay.errors import StoreCorrupt
from assay.stores.durable import sync
from assay.stores.protocols import FloatMatrix
from assay.stores.records import Namespace, RecordId

_MAGIC = b"ASSAYVX1"
_LENGTH_BYTES = 8
_DIGEST_BYTES = 32


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What the rows are, and of which state of which bank.

    Attributes:
        bank: Identity of the bank they were made from.
        namespace: Whose records they are.
        embedder: Name of the embedder that made them.
        dimension: Length of a row.
        version: The store's version they stand for.
        anchors: Ids of which one was written or erased at exactly that version.
        ids: The record of each row.
    """

    bank: str
    namespace: Namespace
    embedder: str
    dimension: int
    version: int
    anchors: tuple[RecordId, ...]
    ids: tuple[RecordId, ...]


class VectorFile(NamedTuple):
    """A file's content; ``vectors`` has shape ``(len(header.ids), header.dimension)``."""

    header: Header
    vectors: FloatMatrix


def read(path: Path) -> VectorFile:
    """The content of a file, wholly verified; blocks.

    Raises:
        FileNotFoundError: If it is not there.
        StoreCorrupt: If it is not what was written.
    """
    content = path.read_bytes()
    body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    if not body.startswith(_MAGIC) or hashlib.sha256(body).digest() != digest:
        raise StoreCorrupt(f"{path.name} is not what was written")
    start = len(_MAGIC) + _LENGTH_BYTES
    end = start + int.from_bytes(body[len(_MAGIC) : start], "little")
    try:
        header = msgspec.json.decode(body[start:end], type=Header)
        rows = np.frombuffer(body, dtype="<f4", offset=end)
        return VectorFile(header, rows.reshape(len(header.ids), header.dimension))
    except ValueError as error:
        raise StoreCorrupt(f"{path.name} cannot be read: {error}") from error


def write(path: Path, content: VectorFile) -> None:
    """Replace a file: a temporary one, synced, renamed, the folder synced; blocks.

    Raises:
        OSError: If it cannot be written; the old file is still there then.
    """
    header = msgspec.json.encode(content.header)
    rows = np.ascontiguousarray(content.vectors, dtype="<f4")
    digest = hashlib.sha256()
    _remove_stale(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            for part in (_MAGIC, len(header).to_bytes(_LENGTH_BYTES, "little"), header, rows.data):
                digest.update(part)
                file.write(part)
            file.write(digest.digest())
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync(path.parent)


def remove(path: Path) -> None:
    """Remove a file for good, if it is there; blocks."""
    _remove_stale(path)
    path.unlink(missing_ok=True)
    sync(path.parent)


def _remove_stale(path: Path) -> None:
    """Remove what a killed process left half written: it may hold vectors of erased records.

    Another process writing right now finds its file gone and tries again later.
    """
    for stale in path.parent.glob(f".{path.name}.*.new"):
        stale.unlink(missing_ok=True)
