"""Words that occur nowhere else, in every spelling a file could hold them in."""

import base64
import json
from collections.abc import Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import assay
from assay.stores.embeddings import HashingEmbedder

EMBEDDER = HashingEmbedder(48)


def said(n: int) -> str:
    """The ``n``-th canary in a sentence."""
    return f"My locker in hall {n} opens with {_word(n)}."


def opened(path: Path) -> AbstractAsyncContextManager[assay.Runtime]:
    """A runtime over the bank in ``path`` with a small embedder."""
    return assay.open_runtime(model="scripted", bank=path, embedder=EMBEDDER, guard="vector")


def folder_bytes(path: Path) -> bytes:
    """Every file of a folder, one after the other."""
    return b"".join(file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file())


async def hits(content: bytes, numbers: Iterable[int]) -> list[int]:
    """Which canaries are in ``content``, as text or as the vector of their sentence."""
    return [
        n
        for n in numbers
        if any(s in content for s in _spellings(n)) or await _vector(n) in content
    ]


def _word(n: int) -> str:
    return f"kanárie{n * 7919}x{n}"


def _spellings(n: int) -> Iterator[bytes]:
    word = _word(n)
    yield word.encode()
    yield word.encode("utf-16-le")
    yield word.encode("utf-16-be")
    yield json.dumps(word)[1:-1].encode()
    for shift in range(3):
        # The part of a longer text's base64 that depends on the word alone.
        coded = base64.b64encode(b"\0" * shift + word.encode())
        yield coded[4 if shift else 0 : -4]


async def _vector(n: int) -> bytes:
    return (await EMBEDDER.embed([said(n)], kind="passage")).astype("<f4").tobytes()
